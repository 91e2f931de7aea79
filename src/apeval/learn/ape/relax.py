"""How far to go from π_E,gt towards the fit, and how many episodes stay with π_E,gt.

The variance of an estimate from q is Σ w·f·(p/q) over past failures, minus a constant. A fit is
evaluated on failures that it was not fitted to (two halves), over a grid that contains plain
Monte Carlo. Where chance that nobody controls decides with nature, the best q lies between
π_E,gt and the distribution of failures, and this finds it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.learn.ape.mixture_fit import Fit
from apeval.learn.ape.rows import Rows
from apeval.problem.types import BoolArray, FloatArray

_ETAS = (0.5, 0.7, 0.85, 1.0)
_WORTH_LEARNING = 0.8  # of Monte Carlo's variance: less of a gain may be none
_NOMINAL = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75)


@dataclass(frozen=True)
class Choice:
    """η of the fit, the share of π_E,gt, and the relative variance per episode that is
    predicted."""

    eta: float
    nominal: float
    variance: float

    @property
    def monte_carlo(self) -> bool:
        """Nothing learned is worth sampling from."""
        return self.nominal >= 1.0


def choose(
    halves: tuple[Fit, Fit],
    in_first: BoolArray,
    rows: Rows,
    weight: FloatArray,
    defensive: float,
    ladder: FloatArray,
) -> Choice:
    """The best of the grid for failures `rows` with weights that sum to v̂; `in_first` says which
    half an episode belongs to, `ladder` holds the exploration's log q/p."""
    v = float(weight.sum())
    monte_carlo = Choice(1.0, 1.0, max(0.0, (1.0 - v) / v))
    best = Choice(1.0, 1.0, _WORTH_LEARNING * monte_carlo.variance)
    explored = defensive * np.exp(ladder)
    for eta in _ETAS:
        learned = _unseen(halves, eta, in_first, rows)
        for nominal in _NOMINAL:
            q = nominal + explored + (1.0 - nominal - defensive) * learned
            variance = max(0.0, float((weight / q).sum()) / v**2 - 1.0)
            if variance < best.variance:
                best = Choice(eta, nominal, variance)
    return monte_carlo if best.monte_carlo else best


def _unseen(halves: tuple[Fit, Fit], eta: float, in_first: BoolArray, rows: Rows) -> FloatArray:
    """q/p of every episode under the half that it was not fitted in."""
    first, second = (half.relaxed(eta).log_ratio(rows) for half in halves)
    ratio: FloatArray = np.exp(np.where(in_first, second, first))
    return ratio
