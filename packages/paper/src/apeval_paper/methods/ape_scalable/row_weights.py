"""How much each remembered transition counts in the fit of π_E,θ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from apeval.problem.types import FloatArray, IntArray
from apeval_paper.methods.ape_scalable.memory import Remembered

_NEGLIGIBLE = 1e-6  # of the largest weight


@dataclass(frozen=True)
class RowWeights:
    """Weights of all rows, and how far they are to be believed."""

    weight: FloatArray
    """Summing to 1 over the rows of a decision that every failing episode takes, (N,)."""
    ess: FloatArray
    """The effective number of data behind each row, (N,)."""
    alpha: float
    """The smallest exponent that weights were tempered with."""


def steered_weights(
    rows: Remembered, gain: FloatArray, bins: IntArray, target_ess: float
) -> RowWeights:
    """W ρ (r + v(s')): the paper's target π_E,gt · (r + v(s'))/v(s) over what sampled, in states
    that count by W·v(s), as often as failing episodes pass through them under π_E,gt.

    Args:
        rows: The transitions.
        gain: log(r + v(s')), (N,).
        bins: The time bin of each row, (N,).
        target_ess: Weights of a bin are tempered until this many transitions count.
    """
    log_w = np.where(rows.known, rows.log_W + rows.log_rho + gain, -np.inf)
    whole = float(logsumexp(log_w[rows.t == 0]))
    weight, ess, alpha = np.zeros(len(rows)), np.ones(len(rows)), 1.0
    for g in np.unique(bins):
        mine = np.flatnonzero((bins == g) & np.isfinite(log_w))
        if len(mine) == 0:
            continue
        passing = np.exp(min(float(logsumexp(log_w[mine])) - whole, 0.0))
        a, w = _tempered(log_w[mine], target_ess)
        weight[mine], ess[mine], alpha = passing * w, 1.0 / (w @ w), min(alpha, a)
    return RowWeights(_without_negligible(weight), ess, alpha)


def failure_weights(rows: Remembered, target_ess: float) -> RowWeights:
    """p(τ)/q(τ) · 1{failure} of the whole episode, at every one of its decisions."""
    ends = np.flatnonzero(~rows.open)
    log_w = np.where(rows.r[ends] > 0.0, (rows.log_W + rows.log_rho)[ends], -np.inf)
    failing = np.flatnonzero(np.isfinite(log_w))
    alpha, w = _tempered(log_w[failing], target_ess)
    each = np.zeros(len(ends))
    each[failing] = w
    weight = each[np.searchsorted(ends, np.arange(len(rows)))]
    return RowWeights(_without_negligible(weight), np.full(len(rows), 1.0 / (w @ w)), alpha)


def _tempered(log_w: FloatArray, target_ess: float) -> tuple[float, FloatArray]:
    """Weights w^α, normalised, with the largest α in [0, 1] that lets min(target, n/2) count."""
    alpha = temper(log_w, min(target_ess, 0.5 * len(log_w)))
    return alpha, _normalised(alpha * log_w)


def _without_negligible(w: FloatArray) -> FloatArray:
    return np.where(w < _NEGLIGIBLE * w.max(), 0.0, w)


def temper(log_w: FloatArray, wanted: float) -> float:
    """The largest α in [0, 1] at which Σ(w^α)² of the normalised weights is ≤ 1/wanted.

    >>> temper(np.log(np.array([1.0, 1.0, 1e-9])), 2.0)
    1.0
    """

    def enough(alpha: float) -> bool:
        w = _normalised(alpha * log_w)
        return bool(1.0 / (w @ w) >= wanted * (1.0 - 1e-9))

    if enough(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def _normalised(log_w: FloatArray) -> FloatArray:
    w: FloatArray = np.exp(log_w - logsumexp(log_w))
    return w
