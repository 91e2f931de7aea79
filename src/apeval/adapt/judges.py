"""What counts as a failure, and how near it was: from words, or from functions that ask by name.

`fails` and `margin` are functions of one step. They say by the names of their parameters what they
want to know of it; older ones, whose parameters have names of their own, are told (obs), (obs,
info) or (obs, terminated, truncated, info) by position.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from apeval.errors import ProblemError
from apeval.problem.argument_copies import own
from apeval.problem.specification.event import FailureEvent


@dataclass(slots=True)  # not frozen, which costs microseconds each time
class StepRecord:
    """What one environment step was. In a vector environment each is an array, a row per
    episode."""

    obs: Any
    """The observation after the step, as the environment gave it: without observation noise."""
    reward: Any
    """The step's reward."""
    total_reward: Any
    """The return so far: the sum of the episode's rewards, this one included."""
    action: Any
    """The action that was applied, with its disturbances."""
    info: Any
    terminated: Any
    truncated: Any
    env: Any
    """The environment itself, as it was made; look at it, do not change it."""


NAMES = tuple(field.name for field in fields(StepRecord))
_BY_POSITION = {
    1: ("obs",),
    2: ("obs", "info"),
    4: ("obs", "terminated", "truncated", "info"),
}


@dataclass(frozen=True)
class StepJudge:
    """A user's function of a step.

    Args:
        function: The function.
        positional: What it gets by position.
        named: What it gets by name.
    """

    function: Callable[..., Any]
    positional: tuple[str, ...] = ()
    named: tuple[str, ...] = ()

    def __call__(self, step: StepRecord) -> Any:
        """Its word on the step; arrays are copies of its own."""
        given = [own(getattr(step, name)) for name in self.positional]
        return self.function(*given, **{name: own(getattr(step, name)) for name in self.named})

    def asks(self, name: str) -> bool:
        """Whether it wants to know this of a step."""
        return name in self.positional or name in self.named


def as_judge(what: str, given: Any) -> StepJudge:
    """What a user may give as `fails` or `margin`, as a judge of one step.

    Args:
        what: The argument's name, for errors.
        given: ``"terminated"``, ``"truncated"``, ``"info.crashed"``, or a function.

    Returns:
        The judge.

    Raises:
        ProblemError: It is none of these, or asks for what there is not.

    Examples:
        >>> slow = as_judge("fails", lambda total_reward: total_reward < -3.0)
        >>> slow(StepRecord(None, -1.0, -4.0, 0, {}, False, False, None))
        True
    """
    if isinstance(given, str) and given in ("terminated", "truncated"):
        return StepJudge(_itself, (given,))
    if isinstance(given, str) and given.startswith("info.") and len(given) > 5:
        return StepJudge(_FromInfo(what, given.removeprefix("info.")), ("info",))
    if isinstance(given, FailureEvent):
        raise ProblemError(
            f"{what} is a specification: from_env takes one as fails=, and apeval.Problem as "
            "failed=; elsewhere give a function of a step"
        )
    if isinstance(given, str) or not callable(given):
        raise ProblemError(
            f"{what} is {given!r}: give 'terminated', 'truncated', 'info.NAME' or a function of "
            f"what it wants to know, such as lambda obs: abs(obs[0]) > 2.4 ({_known()})"
        )
    return _by_parameters(what, given)


def _itself(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class _FromInfo:
    """A value of `info`."""

    what: str
    name: str

    def __call__(self, info: Any) -> Any:
        if self.name not in info:
            held = ", ".join(sorted(map(str, info))) or "nothing"
            raise ProblemError(f"{self.what}: info has no '{self.name}'; it holds {held}")
        return info[self.name]


def _by_parameters(what: str, function: Callable[..., Any]) -> StepJudge:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a built-in without a signature
        return StepJudge(function, ("obs",))
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    wanted = [p.name for p in plain if p.default is p.empty]
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        if set(wanted + named) <= set(NAMES):
            taken = {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
            rest = [name for name in NAMES if name not in taken]
            return StepJudge(function, tuple(wanted), (*named, *rest))
    elif not wanted and not named:  # its own defaults are all it needs: it is told one thing
        wanted = [plain[0].name if plain[0].name in NAMES else "obs"] if plain else []
        if wanted:
            return StepJudge(function, tuple(wanted))
    if wanted + named and set(wanted + named) <= set(NAMES):
        return StepJudge(function, tuple(wanted), tuple(named))
    places = _BY_POSITION.get(len(wanted), ())
    if places and set(named) <= set(NAMES) and all(map(_may_be, wanted, places)):
        return StepJudge(function, places, tuple(named))
    raise _no_such(what, wanted + named)


def _may_be(name: str, place: str) -> bool:
    """Whether a parameter of any name may be told what has this place: not where its name is, or
    is nearly, that of something else."""
    near = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.75)
    return not near or near[0] == place


def _no_such(what: str, wanted: list[str]) -> ProblemError:
    count = len(wanted)
    if not count:
        return ProblemError(f"{what} is a function of 0 arguments: let it ask for {_known()}")
    strange = next((name for name in wanted if name not in NAMES), wanted[0])
    near = difflib.get_close_matches(strange, NAMES, n=1, cutoff=0.6)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    arguments = f"{count} argument{'s'[: count != 1]}"
    return ProblemError(
        f"{what} is a function of {arguments} ({', '.join(wanted)}), and there is no '{strange}'."
        f"{hint} It may ask, by the names of its parameters, for {_known()}; a setting of its own "
        "needs a default"
    )


def _known() -> str:
    return f"{', '.join(NAMES[:-1])} and {NAMES[-1]}"
