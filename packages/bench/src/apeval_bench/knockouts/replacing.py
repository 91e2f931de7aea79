"""Replace a constant, function or method of `ape` while something runs, and put it back.

What is replaced must exist and the replacement must look like it: a knock-out of something that was
renamed or removed is an error, never a run of the method as it is.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from apeval.errors import ApevalError

PACKAGE = "apeval.learn.ape"


@dataclass(frozen=True)
class Replacement:
    """Something else in the place of `target`."""

    target: str
    """Module within the package, then the attribute: ``relax._ETAS``, ``learner.ApeLearner._x``."""
    make: Callable[[Any], Any]
    """The replacement, from what stands there."""
    says: str
    """The replacement in words; part of what identifies a measured run."""


def put(target: str, value: Any) -> Replacement:
    """A constant in the place of another."""
    return Replacement(target, lambda was: value, repr(value))


def use(target: str, make: Callable[[Any], Any], says: str) -> Replacement:
    """A function made from the one that stands there."""
    return Replacement(target, make, says)


@dataclass(frozen=True)
class KnockOut:
    """A heuristic, or several, and what stands in their place."""

    name: str
    heuristic: str
    """What is taken away, in words …"""
    instead: str
    """… and what is done instead."""
    changes: Sequence[Replacement] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the method that differ."""
    needs: frozenset[str] = frozenset()
    """Traits without which a problem cannot tell."""
    margin: bool = True
    """Whether the margin is still seen."""
    kind: str = "heuristic"
    """heuristic: taken out; other value: a number changed; group: several taken out."""

    @property
    def identity(self) -> dict[str, Any]:
        """What a measured run depends on."""
        changes = {change.target.split(".", 1)[1]: change.says for change in self.changes}
        return {"name": self.name, **changes, **self.settings, "margin": self.margin}


AS_IT_IS = KnockOut("as it is", "", "")


def together(name: str, heuristic: str, instead: str, members: Sequence[KnockOut]) -> KnockOut:
    """Several knock-outs at once; where two touch the same thing the last one counts."""
    changes: dict[str, Replacement] = {}
    settings: dict[str, Any] = {}
    for member in members:
        changes |= {change.target: change for change in member.changes}
        settings |= member.settings
    return KnockOut(
        name, heuristic, instead, tuple(changes.values()), settings,
        margin=all(member.margin for member in members), kind="group",
    )  # fmt: skip


@contextmanager
def applied(knock_out: KnockOut) -> Iterator[None]:
    """`ape` with the replacements in place.

    Raises:
        ApevalError: What is to be replaced is not there, or the replacement does not fit.
    """
    with ExitStack() as stack:
        for change in knock_out.changes:
            stack.enter_context(_replaced(knock_out.name, change))
        yield


@contextmanager
def _replaced(name: str, change: Replacement) -> Iterator[None]:
    owner, attribute = located(name, change.target)
    was = inspect.getattr_static(owner, attribute)
    new = change.make(was)
    _compare(name, change.target, was, new)
    setattr(owner, attribute, new)
    try:
        yield
    finally:
        setattr(owner, attribute, was)


def located(name: str, target: str) -> tuple[Any, str]:
    """The module or class that holds a target, and the attribute's name."""
    module, *path = target.split(".")
    gone = ApevalError(
        f"the knock-out {name!r} replaces {PACKAGE}.{target}, which does not exist: name what "
        "stands in its place in apeval_bench/knockouts, or delete the knock-out"
    )
    try:
        owner: Any = importlib.import_module(f"{PACKAGE}.{module}")
    except ModuleNotFoundError:
        raise gone from None
    for part in path[:-1]:
        owner = getattr(owner, part, None)
    if not path or owner is None or path[-1] not in vars(owner):
        raise gone
    return owner, path[-1]


def _compare(name: str, target: str, was: Any, new: Any) -> None:
    """A number for a number, a tuple for a tuple, a function for one with the same parameters."""
    if inspect.isfunction(was):
        fits = callable(new) and list(_parameters(new)) == list(_parameters(was))
    elif isinstance(was, bool | int | float):
        fits = isinstance(new, bool | int | float) and new != was
    else:
        fits = isinstance(new, type(was)) and new is not was
    if not fits:
        raise ApevalError(
            f"the knock-out {name!r} cannot put {new!r} in the place of {PACKAGE}.{target}, which "
            f"is {was!r}"
        )


def _parameters(function: Callable[..., Any]) -> Sequence[str]:
    return tuple(inspect.signature(function).parameters)
