"""Stopping at a wanted precision, with an interval that allows for the stopping."""

from __future__ import annotations

import math
from dataclasses import dataclass

from apeval import validate
from apeval.estimate.interval import Estimate

_FEWEST = 30  # failures before the first look
_FIRST, _GROWTH = 64, 1.2  # episodes until failures are looked for, and between such searches
_NEAREST, _FARTHEST, _SPARE = 1.1, 4.0, 1.05  # of the episodes so far, until the next look
_WIDEST = 1e100  # times as wide as wanted; its square is a number still
_SPENT = 1.5  # α is divided by this at every look; chosen from measured coverage


@dataclass(frozen=True)
class PrecisionTarget:
    """Stop when the interval's half-width is at most `error` times the estimate.

    A stop by width goes with a small variance, which goes with a small mean: looking again and
    again would cover less than it says. Looks are therefore few (each is placed where the last
    one predicts success) and each interval has confidence 1 − α/1.5.
    """

    error: float

    def __post_init__(self) -> None:
        validate.target_error(self.error)

    def confidence(self, wanted: float) -> float:
        """The confidence of every look's interval, so that the last one's has `wanted`."""
        return of_a_look(wanted)

    def reached(self, numbers: Estimate) -> bool:
        """Whether the interval is narrow enough."""
        return half_width(numbers) <= self.error

    def next_look(self, n: int, failures: int, numbers: Estimate | None) -> int:
        """How many episodes the stage should have at its next look, after one at n."""
        if n == 0:
            return _FIRST
        if failures < _FEWEST or numbers is None:
            return math.ceil(n * _GROWTH)
        too_wide = min(half_width(numbers) / self.error, _WIDEST)
        needed = _SPARE * n * too_wide**2
        return math.ceil(min(max(needed, _NEAREST * n), _FARTHEST * n))

    def due(self, failures: int) -> bool:
        """Whether there are enough failures to look at all."""
        return failures >= _FEWEST


def of_a_look(wanted: float) -> float:
    """The confidence of each interval where somebody looks at a few, one after the other, and
    stops when he likes what he sees, so that the last one's has `wanted`."""
    return 1.0 - (1.0 - wanted) / _SPENT


def half_width(numbers: Estimate) -> float:
    """Half of the interval's width, relative to the estimate; infinite without failures."""
    lo, hi = numbers.interval
    return (hi - lo) / (2.0 * numbers.value) if numbers.value > 0.0 else math.inf
