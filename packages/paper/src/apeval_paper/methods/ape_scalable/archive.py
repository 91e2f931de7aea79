"""Failing episodes of all adversaries so far, with balance weights over all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from apeval.learn.whitened import to_z
from apeval.problem.types import Array, FloatArray, IntArray
from apeval.simulate.adversary import Adversary, Situation
from apeval.simulate.episodes import Episodes

_KEPT = 2_000  # failing episodes
_NEGLIGIBLE = 1e-6  # of the largest weight


@dataclass
class _Failures:
    """The failing episodes of one batch."""

    now: Situation
    a_E: Array
    z: FloatArray
    episode: IntArray
    log_p: FloatArray
    log_q: FloatArray
    """log q_k(τ) of every adversary k so far, (n, K)."""

    def density(self, adversary: Adversary) -> FloatArray:
        """log q(τ) of the disturbances, (n,)."""
        terms = adversary.log_prob(self.now, self.a_E)
        return np.bincount(self.episode, terms, len(self.log_p)).astype(np.float64)


@dataclass(frozen=True)
class Weighted:
    """Rows of failing episodes, their episodes' tempered weights, and how many count."""

    now: list[Situation]
    z: FloatArray
    weight: FloatArray
    ess: float
    alpha: float


class Archive:
    """w(τ) = p(τ) / Σ_k (n_k/N) q_k(τ): bounded wherever some adversary went often."""

    def __init__(self, first: Adversary) -> None:
        self.adversaries = [first]
        self.counts = [0]
        self._batches: list[_Failures] = []

    @property
    def n(self) -> int:
        """Failing episodes kept."""
        return sum(len(b.log_p) for b in self._batches)

    def add_adversary(self, adversary: Adversary) -> None:
        """From now on episodes also come from this one."""
        self.adversaries.append(adversary)
        self.counts.append(0)
        for batch in self._batches:
            batch.log_q = np.column_stack([batch.log_q, batch.density(adversary)])

    def add(self, batch: Episodes, drawn_by: list[int]) -> None:
        """Book a batch whose component j is the adversary drawn_by[j]."""
        for j, k in enumerate(drawn_by):
            self.counts[k] += int((batch.component == j).sum())
        failing = np.flatnonzero(batch.failed)
        if len(failing) == 0:
            return
        rows = np.isin(batch.episode, failing)
        now, a_E = batch.situation.take(rows), batch.a_E[rows]
        episode = np.searchsorted(failing, batch.episode[rows])
        log_p = np.bincount(episode, now.law.log_prob(a_E), len(failing)).astype(np.float64)
        new = _Failures(now, a_E, to_z(now.law, a_E), episode, log_p, np.empty((len(failing), 0)))
        new.log_q = np.column_stack([new.density(q) for q in self.adversaries])
        self._batches.append(new)
        while self.n > _KEPT and len(self._batches) > 1:
            self._batches.pop(0)

    def weighted(self, target_ess: float) -> Weighted:
        """Weights w^α, self-normalised, with the largest α in [0, 1] that lets min(target, n/2)
        failures count."""
        log_p = np.concatenate([b.log_p for b in self._batches])
        log_q = np.concatenate([b.log_q for b in self._batches])
        with np.errstate(divide="ignore"):
            share = np.log(np.array(self.counts) / sum(self.counts))
        log_w = log_p - np.asarray(logsumexp(log_q + share, axis=1))
        alpha = temper(log_w, min(target_ess, 0.5 * len(log_w)))
        w = _normalised(alpha * log_w)
        shift = np.cumsum([0] + [len(b.log_p) for b in self._batches])
        episode = np.concatenate(
            [b.episode + k for b, k in zip(self._batches, shift[:-1], strict=True)]
        )
        weight = np.where(w < _NEGLIGIBLE * w.max(), 0.0, w)[episode]
        return Weighted(
            now=[b.now for b in self._batches],
            z=np.concatenate([b.z for b in self._batches]),
            weight=weight,
            ess=float(1.0 / (w @ w)),
            alpha=alpha,
        )


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
