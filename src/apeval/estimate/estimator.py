"""What every estimator is: an interval construction that is found by its name.

The estimate itself is the mean of weight × event for all of them: it is unbiased whatever was
learned, and probabilities of kinds, modes and merged runs add up. An estimator says how far that
mean may be from the truth.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apeval.errors import unknown
from apeval.estimate.sample import AUTO, Sample
from apeval.problem.types import BoolArray

__all__ = ["AUTO", "Estimator", "estimator", "estimators", "find_estimator"]

Interval = Callable[[Sample, BoolArray, float], tuple[float, float]]
"""(sample, hit (n,), confidence) to the ends of an interval for the probability of the event that
`hit` marks, 0 ≤ low ≤ high ≤ 1. It takes any sample: weighted or not, in one stage or several, with
no event or with nothing else."""


@dataclass(frozen=True)
class Estimator:
    """A registered estimator."""

    name: str
    description: str
    interval: Interval


_ESTIMATORS: dict[str, Estimator] = {}


def estimator(name: str, *, description: str) -> Callable[[Interval], Interval]:
    """Register an interval construction.

    Args:
        name: What `evaluate(estimator=…)` selects it by.
        description: One line for who chooses.
    """

    def decorate(interval: Interval) -> Interval:
        _ESTIMATORS[name] = Estimator(name, description, interval)
        return interval

    return decorate


def estimators() -> dict[str, Estimator]:
    """All registered estimators, by name: one module each in `apeval.estimate.estimators`."""
    package = importlib.import_module("apeval.estimate.estimators")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_ESTIMATORS.items()))


def find_estimator(name: Any) -> Estimator:
    """An estimator by name."""
    if isinstance(name, str) and name in _ESTIMATORS:
        return _ESTIMATORS[name]
    known = estimators()
    if not isinstance(name, str) or name not in known:
        raise unknown("estimator", name, known)
    return known[name]
