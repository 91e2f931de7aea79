"""All episodes that may still teach something, weighted as one sample from all their proposals."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from apeval.learn.ape.decision_rows import DecisionRows, join
from apeval.learn.ape.log_sum import log_sum
from apeval.learn.ape.mixture_fit import MixtureFit, effective
from apeval.problem.types import BoolArray, FloatArray, IntArray

_KEPT = 3_000  # episodes: fits do not gain from more
_ELITES = 10  # a level is fitted to so many at least


@dataclass
class EpisodeMemory:
    """Episodes below the level, with log q_k/p for every fit k that ever sampled."""

    rows: DecisionRows | None = None
    failed: BoolArray = field(default_factory=lambda: np.zeros(0, bool))
    margin: FloatArray = field(default_factory=lambda: np.zeros(0))
    kind: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    batch: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    fits: list[MixtureFit] = field(default_factory=list)
    ratios: list[FloatArray] = field(default_factory=list)
    proposals: list[dict[int, float]] = field(default_factory=list)
    """Batch → shares of the fits."""
    sizes: list[int] = field(default_factory=list)
    """Batch → episodes sampled; 0 once forgotten."""
    drawn: list[int] = field(default_factory=list)
    """Batch → episodes sampled."""

    def add_fit(self, fit: MixtureFit) -> int:
        """Remember a fit; returns its number."""
        self.fits.append(fit)
        self.ratios.append(np.zeros(0) if self.rows is None else fit.log_ratio(self.rows))
        return len(self.fits) - 1

    def add(
        self, rows: DecisionRows, kind: IntArray, margin: FloatArray, proposal: dict[int, float]
    ) -> None:
        """Remember a batch; a failure has a kind of its own from 1 on."""
        new = [fit.log_ratio(rows) for fit in self.fits]
        self.ratios = [np.concatenate(pair) for pair in zip(self.ratios, new, strict=True)]
        self.rows = rows if self.rows is None else join(self.rows, rows)
        self.failed = np.concatenate([self.failed, kind > 0])
        self.margin = np.concatenate([self.margin, margin])
        self.kind = np.concatenate([self.kind, kind])
        self.batch = np.concatenate([self.batch, np.full(rows.n, len(self.sizes))])
        self.proposals.append(proposal)
        self.sizes.append(rows.n)
        self.drawn.append(rows.n)

    def log_weights(self) -> FloatArray:
        """log p/q̄, q̄ the mixture of the proposals in the proportion of their episodes."""
        used, share = self._shares(self.sizes)
        return -_mix([self.ratios[k] for k in used], share)

    def mixed(self, shares: dict[int, float]) -> FloatArray:
        """log q/p of a mixture of fits, for the episodes remembered."""
        return _mix([self.ratios[k] for k in shares], list(shares.values()))

    def weigh(self, rows: DecisionRows) -> FloatArray:
        """log p/q̄ of any episodes, q̄ the mixture of all proposals there ever were."""
        used, share = self._shares(self.drawn)
        return -_mix([self.fits[k].log_ratio(rows) for k in used], share)

    def nearness(self, rows: DecisionRows) -> FloatArray:
        """log p/q̄ of any episodes' decisions, whatever the roulette."""
        used, share = self._shares(self.drawn)
        return -_mix([self.fits[k].decision_ratio(rows) for k in used], share)

    def _shares(self, sizes: list[int]) -> tuple[list[int], list[float]]:
        share = np.zeros(len(self.fits))
        for size, proposal in zip(sizes, self.proposals, strict=True):
            for k, s in proposal.items():
                share[k] += size * s
        used = np.flatnonzero(share)
        return used.tolist(), (share[used] / share.sum()).tolist()

    def forget(self, level: float) -> None:
        """Drop what lies above the level for good, and the oldest learned batches beyond the
        number that fits can use."""
        if self.rows is None:
            return
        keep = self.failed | (self.margin <= level)
        if not np.isnan(self.margin).all() and keep.sum() < _ELITES:
            keep[np.argsort(self.margin)[:_ELITES]] = True
        oldest = 2  # the pilot and the widened proposals stay: they alone saw everything
        while keep.sum() > _KEPT and oldest < len(self.sizes) - 3:
            keep &= self.batch != oldest
            self.sizes[oldest] = 0
            oldest += 1
        self.rows = self.rows.take(keep)
        self.failed, self.margin = self.failed[keep], self.margin[keep]
        self.batch = self.batch[keep]
        self.kind = self.kind[keep]
        self.ratios = [ratio[keep] for ratio in self.ratios]

    def probability(self) -> float:
        """The failure probability that these episodes show: rough, and biased low."""
        w = np.exp(self.log_weights()[self.failed]) if self.failed.any() else np.zeros(0)
        return float(w.sum()) / sum(self.sizes)

    def failure_size(self) -> float:
        """Effective number of failures."""
        if not self.failed.any():
            return 0.0
        log_w = self.log_weights()[self.failed]
        return effective(np.exp(log_w - log_w.max()))


def _mix(columns: list[FloatArray], shares: list[float]) -> FloatArray:
    if len(columns) == 1:
        return np.asarray(columns[0] + np.log(shares[0]))
    return log_sum(np.stack(columns, axis=1) + np.log(shares))


def tempered(log_w: FloatArray, least: float) -> tuple[FloatArray, float]:
    """w^α with the largest α ≤ 1 that leaves so many effective episodes; and α."""
    log_w = log_w - log_w.max()
    low, high = 0.0, 1.0
    if effective(np.exp(log_w)) >= least:
        low = 1.0
    else:
        for _ in range(30):
            middle = 0.5 * (low + high)
            enough = effective(np.exp(middle * log_w)) >= least
            low, high = (middle, high) if enough else (low, middle)
    return np.exp(low * log_w), low
