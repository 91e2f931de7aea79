"""Exploration: wider versions of π_E,gt, from itself to far beyond, that need no learning.

How far is measured in β, the distance that a whole episode's disturbances are pushed together:
a failure of probability Φ(−β) lies about β away, however many decisions share the way. Half of
the proposals widen every decision on its own, half push all decisions the same way (`Persistent`):
where the effect of disturbances adds up over time, independent ones cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.proposal_part import ContinuousPart, DiscretePart, ProposalPart
from apeval.problem.types import FloatArray, IntArray

_WIDER = (0.0, 2.0, 4.0, 6.0)
_PUSHES = (1.7, 2.8, 4.4)
_FEW = 3  # components in which a push finds its direction easily


@dataclass(frozen=True, eq=False)
class Wider(ContinuousPart):
    """z ~ N(0, σ² I), the initial disturbance too."""

    sigma: float

    def _ratio(self, z: FloatArray) -> FloatArray:
        power = 0.5 * (1.0 - self.sigma**-2)
        total: FloatArray = power * (z * z).sum(axis=1) - z.shape[1] * np.log(self.sigma)
        return total

    def row_ratio(self, rows: DecisionRows) -> FloatArray:
        return self._ratio(rows.e)

    def start_ratio(self, z_0: FloatArray) -> FloatArray:
        return self._ratio(z_0)

    def start(self, u: FloatArray) -> FloatArray:
        z: FloatArray = self.sigma * ndtri(u)
        return z

    def draw(
        self, x: FloatArray, t: IntArray, u: FloatArray, whole: FloatArray | None
    ) -> FloatArray:
        z: FloatArray = self.sigma * ndtri(u)
        return z


@dataclass(frozen=True, eq=False)
class Persistent(ContinuousPart):
    """z_t = ε_t + b, with one b ~ N(0, τ² I) for the whole episode."""

    tau: float
    persistent: ClassVar[bool] = True  # type: ignore[misc]

    def row_ratio(self, rows: DecisionRows) -> FloatArray:
        raise TypeError("a persistent push has a density of whole episodes only")

    def log_ratio(self, rows: DecisionRows) -> FloatArray:
        """With b integrated out; S is the sum of an episode's L decisions."""
        length = np.bincount(rows.episode, minlength=rows.n)
        spread = 1.0 + self.tau**2 * length
        total: FloatArray = -0.5 * rows.e.shape[1] * np.log(spread)
        for j in range(rows.e.shape[1]):
            S = rows.total(rows.e[:, j])
            total += 0.5 * self.tau**2 * S * S / spread
        return total

    def draw(
        self, x: FloatArray, t: IntArray, u: FloatArray, whole: FloatArray | None
    ) -> FloatArray:
        if whole is None:
            raise TypeError("a persistent push needs the episode's own random numbers")
        z: FloatArray = ndtri(u) + self.tau * ndtri(whole)
        return z


@dataclass(frozen=True, eq=False)
class Flatter(DiscretePart):
    """q ∝ p^{1/σ²}, tilted by exp(c·score_a) towards one end of the outcomes' order."""

    sigma: float
    tilt: float

    def probabilities(self, x: FloatArray, t: IntArray, p: FloatArray) -> FloatArray:
        score = np.linspace(-1.0, 1.0, p.shape[1])
        with np.errstate(divide="ignore"):
            log_q = np.log(p) / self.sigma**2 + self.tilt * score
        log_q -= log_q.max(axis=1, keepdims=True)
        q = np.exp(log_q)
        share: FloatArray = q / q.sum(axis=1, keepdims=True)
        return share

    def row_ratio(self, rows: DecisionRows) -> FloatArray:
        return outcome_ratio(self.probabilities(rows.x, rows.t, rows.p), rows)


def outcome_ratio(q: FloatArray, rows: DecisionRows) -> FloatArray:
    """log q/p of the outcomes that came."""
    k, at = rows.e[:, 0].astype(np.int64), np.arange(len(rows.e))
    ratio: FloatArray = np.log(q[at, k] / rows.p[at, k])
    return ratio


def widened_proposals(d: int, decisions: float) -> tuple[list[ProposalPart], FloatArray]:
    """Proposals and shares for d-dimensional disturbances in episodes of so many decisions."""
    wider: list[ProposalPart] = [
        Wider(float(np.sqrt(1.0 + b * b / (decisions * d)))) for b in _WIDER
    ]
    near = float(np.sqrt(decisions * np.sqrt(d)))
    pushes: list[ProposalPart] = [Persistent(b / near) for b in _PUSHES]
    if d > _FEW:  # the right direction is one of many: only a long push has a long part along it
        pushes += [Persistent(b / float(np.sqrt(decisions))) for b in _PUSHES]
    return wider + pushes, _halves(len(wider), len(pushes))


def flattened_proposals() -> tuple[list[ProposalPart], FloatArray]:
    """Proposals and shares for outcomes."""
    flatter: list[ProposalPart] = [Flatter(sigma, 0.0) for sigma in (1.0, 1.4, 2.0, 3.0)]
    tilted: list[ProposalPart] = [Flatter(1.4, c) for c in (-1.5, -0.7, 0.7, 1.5)]
    return flatter + tilted, _halves(len(flatter), len(tilted))


def _halves(first: int, second: int) -> FloatArray:
    return np.concatenate([np.full(first, 0.5 / first), np.full(second, 0.5 / second)])
