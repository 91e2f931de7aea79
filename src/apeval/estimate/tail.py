"""The tail curve P(margin ≤ m): how near to failure episodes come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.estimate.interval import bounds, probability
from apeval.estimate.sample import Sample

_POINTS = 20


@dataclass(frozen=True)
class TailPoint:
    """A point of the tail curve: P(margin ≤ m) with its interval."""

    margin: float
    """m."""
    probability: float
    """P(margin ≤ m); at m = 0 it is the estimate."""
    interval: tuple[float, float]
    """Of `probability`."""


def tail_curve(sample: Sample, confidence: float) -> tuple[TailPoint, ...]:
    """At 0, the failure itself, and at quantiles of the margins that the frozen stage saw: there
    the sample has something to say. Empty where the problem has no margin."""
    m = sample.margin[~sample.unresolved]
    if len(m) == 0 or not np.isfinite(m).any():
        return ()
    levels = np.quantile(m[np.isfinite(m)], np.linspace(0.02, 0.98, _POINTS), method="lower")
    grid = np.unique(np.append(levels, 0.0))
    return tuple(_point(sample, float(level), confidence) for level in grid)


def _point(sample: Sample, level: float, confidence: float) -> TailPoint:
    below = np.asarray(sample.margin <= level)
    return TailPoint(level, probability(sample, below), bounds(sample, below, confidence))
