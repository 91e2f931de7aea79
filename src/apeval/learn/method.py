"""What every method is: a config, and a learner that ends in a frozen proposal."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from apeval.errors import ApevalError, unknown
from apeval.learn.population import Forecast, Score
from apeval.plugins import METHODS, plugged
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray
from apeval.remedies import Note
from apeval.simulate.adversary import Mixture
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Simulation


@dataclass(frozen=True)
class Exploration:
    """What learning drew, for comparison with the frozen stage; only failures are looked at."""

    episodes: Episodes
    """The episodes drawn while learning, or the failing ones alone."""
    log_weights: FloatArray
    """log p(τ)/q(τ) of each, with q the law, or the mixture of laws, that they were drawn from."""
    drawn: int
    """How many were drawn, failing or not: Σ w·1{failed}/drawn estimates v(s0)."""


@dataclass(frozen=True)
class CountedBatch:
    """A batch drawn while learning, from a proposal that was frozen for it, that counts in the
    estimate with a share set before it was drawn."""

    episodes: Episodes
    proposal: Mixture
    share: float


@dataclass(frozen=True)
class PopulationPlan:
    """How a method that branches episodes wants them drawn, in place of a frozen stage."""

    score: Score
    """How near to failure a state is."""
    each: float | None
    """What a particle costs with all its branches, in the budget's unit; None where unknown."""
    most: int
    """Particles of a population at the most."""
    forecast: Forecast | None
    """What a pilot says of the way to failure; None where it came to none."""


@dataclass(frozen=True)
class Basis:
    """What a frozen proposal π_E ∝ π_E,gt · (r + v(s')) is built on. If that v is right, its v(s0)
    equals the estimate; where they are far apart, the proposal is not what it should be."""

    what: str
    """What `value` is, in words."""
    value: float


class Learner(ABC):
    """One method at work on one problem. It learns within its share of the budget, then gives
    the frozen proposal that the estimate is drawn from."""

    @abstractmethod
    def advance(self, simulation: Simulation) -> bool:
        """Learn a little more; False when learning is over.

        Args:
            simulation: Simulates episodes within the learning budget and counts them.

        Returns:
            False when learning is over; `proposal` is asked for then.
        """

    @abstractmethod
    def proposal(self) -> Mixture:
        """The frozen proposal."""

    def phase(self) -> str:
        """What the next `advance` will do, for who watches: exploring or learning."""
        return "learning"

    def counted(self) -> list[CountedBatch]:
        """Batches of learning that count in the estimate; the frozen stage has the rest of 1."""
        return []

    def populations(self) -> PopulationPlan | None:
        """How episodes are to branch off each other; None: they are drawn from `proposal`, each
        by itself."""
        return None

    def value(self) -> float | None:
        """The learned v(s0), where the method learns one."""
        return None

    def basis(self) -> Basis | None:
        """The v(s0) that the frozen proposal is built on, where it is built on values: a result
        that is far from it is not trusted."""
        return None

    def curve(self) -> list[tuple[int, float]]:
        """(steps, learned v(s0)) along the way."""
        return []

    def exploration(self) -> Exploration | None:
        """What was drawn while learning, where the method weighs it."""
        return None

    def value_function(self, estimate: float) -> dict[str, Any] | None:
        """v(s, t) with v(s0) = estimate, as numbers that a reader can evaluate, where the method
        learns one.

        Args:
            estimate: The run's estimate, which v(s0) is set to.

        Returns:
            What `LogValue.from_json` reads, or None.
        """
        return None

    def warnings(self) -> list[Note]:
        """What went wrong while learning, in plain words; a note that a larger budget would mend
        says so by `more`, others name their remedy."""
        return []


@dataclass(frozen=True)
class Method:
    """A registered method."""

    name: str
    description: str
    config: type[Any]
    """A frozen dataclass: the method's settings with their defaults and meanings."""
    start: Callable[[Problem, Any], Learner]
    suits: Callable[[Problem], str | None]
    """Why the method cannot treat a problem, or None where it can."""


ELSEWHERE = {"ape-discrete": "paper", "ape-scalable": "scalable", "cem-discrete": "paper"}
"""Methods of other packages of this repository, with the extra that has each: for the message where
it is missing."""
_PACKAGE = "apeval.learn"
_METHODS: dict[str, Method] = {}
L = TypeVar("L", bound=Callable[[Problem, Any], Learner])


def method(
    name: str,
    *,
    description: str,
    config: type[Any],
    suits: Callable[[Problem], str | None] = lambda problem: None,
) -> Callable[[L], L]:
    """Register a learner's class or factory as a method.

    Args:
        name: What users type.
        description: One line for `apeval list`.
        config: The dataclass of its settings.
        suits: Says why a problem cannot be treated, or None where it can.

    Returns:
        A decorator that returns what it is given.
    """

    def decorate(start: L) -> L:
        _METHODS[name] = Method(name, description, config, start, suits)
        return start

    return decorate


def methods() -> dict[str, Method]:
    """All registered methods, by name: one module or package each beside this file, and those of
    installed packages."""
    package = importlib.import_module(_PACKAGE)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{_PACKAGE}.{module.name}")
    for entry_point in plugged(METHODS).values():
        entry_point.load()
    return dict(sorted(_METHODS.items()))


def find_method(name: str) -> Method:
    """A method by name; only the module that has it is loaded, all where there is none.

    Args:
        name: As it was registered. A module of the core is named like it, with _ for -; one of
            another package is named by its entry point.

    Raises:
        ApevalError: The package that has it is not installed.
        UnknownNameError: No method has this name.
    """
    if isinstance(name, str) and name not in _METHODS:
        module = name.replace("-", "_")
        if module.isidentifier() and importlib.util.find_spec(f"{_PACKAGE}.{module}"):
            importlib.import_module(f"{_PACKAGE}.{module}")
        elif name in plugged(METHODS):
            plugged(METHODS)[name].load()
        elif name in ELSEWHERE:
            raise ApevalError(
                f"{name} is in a package that is not installed: "
                f"pip install 'apeval[{ELSEWHERE[name]}]'"
            )
    if isinstance(name, str) and name in _METHODS:
        return _METHODS[name]
    known = methods()
    if not isinstance(name, str) or name not in known:
        raise unknown("method", name, known)
    return known[name]
