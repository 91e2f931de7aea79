"""How far to go from π_E,gt towards the fit, and how many episodes stay with π_E,gt.

The variance of an estimate from q is Σ w·f·(p/q) over past failures, minus a constant. A fit is
evaluated on failures that it was not fitted to (two halves), over a grid that contains plain
Monte Carlo. Where chance that nobody controls decides with nature, the best q lies between
π_E,gt and the distribution of failures, and this finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.mixture_fit import MixtureFit
from apeval.problem.types import BoolArray, FloatArray

_ETAS = (0.5, 0.7, 0.85, 1.0)
_WORTH_LEARNING = 0.8  # of Monte Carlo's variance: less of a gain may be none
_RARE = ((0.1, 0.7), (0.2, 0.85))  # rates of failures below which η ends earlier
NOMINAL = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75)
_LARGEST = 700.0  # exponent that a number can hold
_DELAYS = (0.1, 0.25, 0.5)


@dataclass(frozen=True)
class ProposalChoice:
    """η of the fit, the share of π_E,gt, and what is predicted: the relative variance of an
    episode, and what the episode costs."""

    eta: float
    nominal: float
    variance: float
    cost: float = 1.0
    delayed: float = 0.0
    """The share of the fit's episodes in which it begins later."""

    @property
    def price(self) -> float:
        """The work-normalised variance: relative variance times cost of an episode."""
        return self.variance * self.cost

    @property
    def monte_carlo(self) -> bool:
        """Nothing learned is worth sampling from."""
        return self.nominal >= 1.0


@dataclass(frozen=True)
class EpisodeCosts:
    """Of an episode, in units of the budget: of one from π_E,gt, which no roulette ends; of one
    from the widened proposals, which watches for what nobody expects; and of one from a fit."""

    whole: float
    watching: float
    learned: float

    def of(self, nominal: float, defensive: float) -> float:
        """Of an episode from a mixture with these shares of π_E,gt and the widened proposals."""
        rest = 1.0 - nominal - defensive
        return nominal * self.whole + defensive * self.watching + rest * self.learned


def furthest_eta(rate: float) -> float:
    """How far from π_E,gt a proposal may go under which failures have this rate.

    The best q is proportional to p·√P(failure | disturbances). Where failures become the rule, P is
    1 there and q is their distribution; where they stay rare, chance decides, and the root takes
    about half of the way back. Few failures cannot tell: those that a proposal that goes too far
    misses are just the heavy ones.
    """
    return next((eta for below, eta in _RARE if rate < below), 1.0)


def choose(
    halves: tuple[MixtureFit, MixtureFit],
    in_first: BoolArray,
    rows: DecisionRows,
    weight: FloatArray,
    defensive: float,
    explored: FloatArray,
    costs: EpisodeCosts,
    furthest: float,
    times: int,
) -> ProposalChoice:
    """The best of the grid for failures `rows` with weights that sum to v̂, up to the furthest η;
    `in_first` says which half an episode belongs to. A share `defensive` of the episodes explores,
    with q/p = `explored` as its part of the mixture. Fits may begin later at any of so many
    times."""
    v = float(weight.sum())
    monte_carlo = ProposalChoice(1.0, 1.0, max(0.0, (1.0 - v) / v), costs.whole)
    best, price = monte_carlo, _WORTH_LEARNING * monte_carlo.price

    def compare(eta: float, delayed: float, learned: FloatArray) -> None:
        nonlocal best, price
        for nominal in NOMINAL:
            rest = 1.0 - nominal - defensive
            if rest <= 0.0:
                continue
            q = nominal + explored + rest * learned
            variance = max(0.0, float((weight / q).sum()) / v**2 - 1.0)
            cost = costs.of(nominal, defensive)
            if variance * cost < price:
                best = ProposalChoice(eta, nominal, variance, cost, delayed)
                price = best.price

    for eta in (eta for eta in _ETAS if eta <= furthest):
        compare(eta, 0.0, _unseen([half.relaxed(eta) for half in halves], in_first, rows))
    if times > 1 and not best.monte_carlo:
        relaxed = [half.relaxed(best.eta) for half in halves]
        at_once = _unseen(relaxed, in_first, rows)
        later = _unseen([half.begun_later(times) for half in relaxed], in_first, rows)
        for delayed in _DELAYS:
            compare(best.eta, delayed, (1.0 - delayed) * at_once + delayed * later)
    return best


def _unseen(halves: Sequence[MixtureFit], in_first: BoolArray, rows: DecisionRows) -> FloatArray:
    """q/p of every episode under the half that it was not fitted in."""
    first, second = (half.log_ratio(rows) for half in halves)
    return finite_ratio(np.where(in_first, second, first))


def finite_ratio(log_ratio: FloatArray) -> FloatArray:
    """q/p; where that is beyond all numbers, so large that p/q is nothing."""
    ratio: FloatArray = np.exp(np.minimum(log_ratio, _LARGEST))
    return ratio
