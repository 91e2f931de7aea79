"""The episodes of frozen proposals, reduced to what an estimate needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp

from apeval.estimate.genealogy import Genealogy
from apeval.problem.types import BoolArray, FloatArray, IntArray

AUTO = "auto"
"""The name of the default estimator."""
_MOSTLY = 0.9  # of the estimate: the rest may have weights of any size


@dataclass(frozen=True)
class Sample:
    """n episodes from a trajectory-level mixture of M frozen adversaries."""

    component: IntArray
    """Which adversary drew each episode, (n,)."""
    log_p: FloatArray
    """log p(τ), the nominal density, (n,)."""
    log_q: FloatArray
    """log q_j(τ) under every component, (n, M)."""
    kind: IntArray
    """0, or the kind of failure, (n,)."""
    unresolved: BoolArray
    """Cut before its outcome was known, (n,)."""
    length: IntArray
    """Decisions, (n,)."""
    margin: FloatArray
    """The smallest margin of each episode, (n,); NaN where the problem has none."""
    log_share: FloatArray | None = None
    """log λ of each episode's stage, (n,), where several stages count (`combine`)."""
    estimator: str = AUTO
    """Which interval construction its estimates have, by name."""
    genealogy: Genealogy | None = None
    """Which episodes branched off each other; None where all are independent."""

    @property
    def steps(self) -> int:
        """Decisions that were simulated."""
        copied = 0 if self.genealogy is None else int(self.genealogy.copied.sum())
        return int(self.length.sum()) - copied

    @property
    def n(self) -> int:
        """Number of episodes; those with weight zero count."""
        return len(self.kind)

    @property
    def failed(self) -> BoolArray:
        """Whether each episode failed."""
        return np.asarray(self.kind > 0)

    @cached_property
    def counts(self) -> IntArray:
        """Episodes per component, (M,)."""
        return np.bincount(self.component, minlength=self.log_q.shape[1])

    @cached_property
    def log_weights(self) -> FloatArray:
        """log of p(τ) / Σ_j (n_j/n) q_j(τ): with the actual counts the mean of weight ×
        indicator is unbiased, although episodes are allotted to components and not drawn."""
        with np.errstate(divide="ignore"):
            log_share = np.log(self.counts / self.n)
        q = np.asarray(logsumexp(self.log_q + log_share, axis=1))
        log_w: FloatArray = self.log_p - q
        return log_w if self.log_share is None else log_w + self.log_share

    @cached_property
    def weights(self) -> FloatArray:
        """Likelihood ratios; bounded by n/n_j where component j is nominal."""
        w: FloatArray = np.exp(self.log_weights)
        return w

    @cached_property
    def nominal(self) -> BoolArray:
        """Which components sampled as π_E,gt itself would, (M,)."""
        same = []
        for column in self.log_q.T:
            stage = column > -np.inf  # elsewhere the component was not on offer
            same.append(np.array_equal(column[stage], self.log_p[stage]))
        return np.array(same) & (self.counts > 0)

    @cached_property
    def counting(self) -> bool:
        """Whether the estimate is mostly Monte Carlo's: nine tenths of it from stages that the
        nominal drew alone, where no weight is heavier than the others."""
        share = 0.0
        for j in np.flatnonzero(self.alone):
            mine = np.flatnonzero(self.component == j)
            share += 1.0 if self.log_share is None else float(np.exp(self.log_share[mine[0]]))
        return share >= _MOSTLY

    @cached_property
    def alone(self) -> BoolArray:
        """Which components are the nominal with a stage of its own, (M,)."""
        return np.array(
            [
                bool(same and (self.log_q[self.component != j, j] == -np.inf).all())
                for j, same in enumerate(self.nominal)
            ]
        )

    @cached_property
    def unweighted(self) -> bool:
        """Plain Monte Carlo: one component, and it is the nominal."""
        return self.log_q.shape[1] == 1 and bool(np.array_equal(self.log_p, self.log_q[:, 0]))

    def first(self, n: int) -> Sample:
        """The first n episodes, as if the stage had ended there.

        Args:
            n: How many.

        Returns:
            A sample with the same mixture.
        """
        cut: dict[str, Any] = {k: getattr(self, k)[:n] for k in _FIELDS}
        log_share = None if self.log_share is None else self.log_share[:n]
        genealogy = None
        if self.genealogy is not None and n < self.n:
            # failures come last in a population: they go on standing for the whole estimate
            genealogy = self.genealogy.take(slice(n))
            w = self.weights * self.failed
            kept, all_of_them = float(w[:n].sum()), float(w.sum())
            scale = np.log(self.n / n) + (np.log(kept / all_of_them) if kept > 0.0 else 0.0)
            cut["log_q"] = cut["log_q"] + scale
        elif self.genealogy is not None:
            genealogy = self.genealogy
        return Sample(**cut, log_share=log_share, estimator=self.estimator, genealogy=genealogy)


_MORE = ("log_share", "estimator", "genealogy")
_FIELDS = tuple(f.name for f in fields(Sample) if f.name not in _MORE)


def join(samples: Sequence[Sample]) -> Sample:
    """Several samples from the same mixture as one.

    Args:
        samples: At least one, all with the same components.

    Returns:
        Their episodes in this order.
    """
    arrays: dict[str, Any] = {k: np.concatenate([getattr(s, k) for s in samples]) for k in _FIELDS}
    return Sample(**arrays, estimator=samples[0].estimator)


def combine(stages: Sequence[tuple[float, Sample]]) -> Sample:
    """Samples from different proposals as one, whose estimate is Σ λ_b · mean_b, Σ λ_b = 1.

    With λ_b fixed before stage b is drawn this is unbiased, whatever each stage learned from
    those before it: every mean_b has the expectation v given all that came earlier.

    Args:
        stages: Pairs of λ_b and the sample of stage b.

    Returns:
        One sample; `log_share` has what each stage counts.
    """
    width = sum(sample.log_q.shape[1] for _, sample in stages)
    columns, components, shares, first = [], [], [], 0
    for share, sample in stages:
        log_q = np.full((sample.n, width), -np.inf)
        log_q[:, first : first + sample.log_q.shape[1]] = sample.log_q
        columns.append(log_q)
        components.append(sample.component + first)
        within = 0.0 if sample.log_share is None else sample.log_share
        shares.append(np.full(sample.n, np.log(share)) + within)
        first += sample.log_q.shape[1]
    rest = {
        k: np.concatenate([getattr(sample, k) for _, sample in stages])
        for k in ("log_p", "kind", "unresolved", "length", "margin")
    }
    genealogy = None
    if any(sample.genealogy is not None for _, sample in stages):
        genealogy = Genealogy.join(
            [sample.genealogy or Genealogy.alone(sample.n) for _, sample in stages]
        )
    return Sample(
        genealogy=genealogy,
        component=np.concatenate(components),
        log_q=np.concatenate(columns),
        log_share=np.concatenate(shares),
        estimator=stages[-1][1].estimator,
        **rest,
    )
