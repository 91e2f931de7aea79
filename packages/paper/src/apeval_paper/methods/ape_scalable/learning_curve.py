"""The three curves that the paper plots, while a learner learns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_Z_95 = 1.959964


@dataclass(frozen=True)
class Point:
    """The three curves at one moment of learning."""

    steps: int
    value: float
    """v_ψ(s0), the TD value."""
    estimate: float
    """Mean of ∏ρ · 1{failure} over all episodes so far, each weighted by its own proposal."""
    interval: tuple[float, float]
    """95 % interval of the estimate (log-normal); (0, 1) before the first failure."""
    rate: float
    """Sampled failure rate of the latest episodes."""


def mean_and_interval(weights: float, squares: float, n: int) -> tuple[float, tuple[float, float]]:
    """Mean of n weights from their sum and their sum of squares, and its 95 % interval.

    Log-normal, as weights are skewed: log v̂ has variance log(1 + (s.e./v̂)²).

    >>> mean_and_interval(0.0, 0.0, 10)
    (0.0, (0.0, 1.0))
    """
    mean = weights / n
    if mean == 0.0:
        return 0.0, (0.0, 1.0)
    relative = max(squares / n / mean**2 - 1.0, 0.0) / n
    factor = float(np.exp(_Z_95 * np.sqrt(np.log1p(relative))))
    return mean, (mean / factor, min(1.0, mean * factor))
