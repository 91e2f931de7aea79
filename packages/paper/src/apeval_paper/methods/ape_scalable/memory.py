"""D: every transition of all adversaries so far, with weights over all of them together."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from scipy.special import logsumexp

from apeval.learn.whitened import to_z
from apeval.problem.types import Array, BoolArray, FloatArray, IntArray
from apeval.simulate.adversary import Adversary, Situation
from apeval.simulate.episodes import Episodes

_KEPT = 20_000  # transitions; the oldest episodes are forgotten first


@dataclass(frozen=True)
class Remembered:
    """Rows (s, a_A, a_E, r, s') of whole episodes, in order; s' is the next row's s."""

    s: Array
    a_A: Array
    z: FloatArray
    """a_E, whitened, (N, d_E)."""
    t: IntArray
    r: FloatArray
    """r(s, s'), (N,)."""
    open: BoolArray
    """Whether the episode goes on at s', the next row, (N,)."""
    known: BoolArray
    """Whether the outcome of the transition is known: not where an episode was cut, (N,)."""
    log_W: FloatArray
    """log of p/q of the decisions before this one, q being all adversaries together, (N,)."""
    log_rho: FloatArray
    """log p/q of this decision, (N,)."""
    own_log_W: FloatArray
    """The same with q being what drew the row's batch, known before any of it was seen, and with
    the batch's own weight, (N,)."""
    own_log_rho: FloatArray
    """log ρ of Eq. scalable_ape_is_weight, as it was when the row was drawn, (N,)."""

    def __len__(self) -> int:
        return len(self.t)


@dataclass
class _Batch:
    """The rows of one batch, and what each adversary thinks of them."""

    now: Situation
    a_E: Array
    z: FloatArray
    first: IntArray
    """Row → first row of its episode."""
    r: FloatArray
    open: BoolArray
    known: BoolArray
    log_p: FloatArray
    """log π_E,gt, row by row, (N,)."""
    log_q: FloatArray
    """log q_k, row by row, (N, K)."""
    own_log_W: FloatArray
    own_log_rho: FloatArray


class Memory:
    """Episodes come from adversaries q_k, n_k of each. Given what came before it, the decision of
    a remembered episode has the density Σ_k n_k q_k(before) q_k(a_E | s) / Σ_k n_k q_k(before):
    the conditional law of the mixture, whose product over an episode is the mixture's.

    π_E,θ is fitted with weights over all adversaries together, bounded wherever one of them went
    often. They are too low at data that an adversary was fitted to: its density is high just
    there. So v_ψ is fitted with the weights that rows were drawn with, the paper's stored ρ, which
    no later fit touches; a batch counts as often as failures were known when it was drawn.
    """

    def __init__(self, adversaries: list[Adversary]) -> None:
        self.adversaries = list(adversaries)
        self.counts = [0] * len(adversaries)
        self.failures = 0
        self._batches: list[_Batch] = []

    def add_adversary(self, adversary: Adversary) -> None:
        """From now on episodes also come from this one."""
        self.adversaries.append(adversary)
        self.counts.append(0)
        for batch in self._batches:
            log_q = adversary.log_prob(batch.now, batch.a_E)
            batch.log_q = np.column_stack([batch.log_q, log_q])

    def add(self, batch: Episodes, drawn_by: list[int]) -> None:
        """Remember a batch whose component j is the adversary drawn_by[j]."""
        for j, k in enumerate(drawn_by):
            self.counts[k] += int((batch.component == j).sum())
        log_g = np.log1p(float(self.failures))
        self.failures += int(batch.failed.sum())
        now, rows = batch.situation, np.arange(len(batch.t))
        last = np.searchsorted(batch.episode, batch.episode, side="right") - 1
        ends = rows == last
        first = np.searchsorted(batch.episode, batch.episode)
        log_p = now.law.log_prob(batch.a_E)
        log_q = np.column_stack([q.log_prob(now, batch.a_E) for q in self.adversaries])
        mine = np.bincount(batch.component, minlength=len(drawn_by))
        by = np.array(drawn_by)[mine > 0]
        share = np.log(mine[mine > 0] / batch.n)
        own_log_W, own_log_rho = _weights(log_p, log_q[:, by], share, first)
        self._batches.append(
            _Batch(
                now=now,
                a_E=batch.a_E,
                z=to_z(now.law, batch.a_E),
                first=first,
                r=(ends & batch.failed[batch.episode]).astype(np.float64),
                open=~ends,
                known=~(ends & batch.unresolved[batch.episode]),
                log_p=log_p,
                log_q=log_q,
                own_log_W=log_g + own_log_W,
                own_log_rho=own_log_rho,
            )
        )
        while sum(len(b.z) for b in self._batches) > _KEPT and len(self._batches) > 1:
            self._batches.pop(0)

    def rows(self) -> Remembered:
        """All rows, with weights over the adversaries that sampled."""
        counts = np.array(self.counts, np.float64)
        used = counts > 0.0
        share = np.log(counts[used] / counts.sum())
        found = [_weighted(b, used, share) for b in self._batches]
        return Remembered(
            *[np.concatenate([getattr(m, f.name) for m in found]) for f in fields(Remembered)]
        )


def _weighted(b: _Batch, used: BoolArray, share: FloatArray) -> Remembered:
    log_W, log_rho = _weights(b.log_p, b.log_q[:, used], share, b.first)
    return Remembered(
        b.now.s, b.now.a_A, b.z, b.now.t, b.r, b.open, b.known, log_W, log_rho, b.own_log_W,
        b.own_log_rho,
    )  # fmt: skip


def _weights(
    log_p: FloatArray, log_q: FloatArray, log_share: FloatArray, first: IntArray
) -> tuple[FloatArray, FloatArray]:
    """log p/q of the decisions before each row, and of its own, for a mixture of episodes."""
    after = np.asarray(logsumexp(_within(log_q, first, True) + log_share, axis=1))
    before = np.asarray(logsumexp(_within(log_q, first, False) + log_share, axis=1))
    log_W: FloatArray = _within(log_p[:, None], first, False)[:, 0] - before
    log_rho: FloatArray = log_p - (after - before)
    return log_W, log_rho


def _within(terms: FloatArray, first: IntArray, inclusive: bool) -> FloatArray:
    """Sums over the rows of the same episode so far, (N, K)."""
    total = np.concatenate([np.zeros((1, terms.shape[1])), np.cumsum(terms, axis=0)])
    end = np.arange(len(terms)) + int(inclusive)
    so_far: FloatArray = total[end] - total[first]
    return so_far
