"""Numbers that say how far an estimate can be trusted; `warnings` puts them into words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from apeval.estimate.explored import Explored, Missed, missed, unseen_kinds
from apeval.estimate.interval import Estimate, effective_size
from apeval.estimate.pareto import pareto_k
from apeval.estimate.sample import Sample
from apeval.problem.types import FloatArray

ENOUGH = 20.0
"""Effective failures that speak for themselves."""
_HARDLY = math.log(0.5)  # of π_E,gt's density, that of a learned part that leaves a failure out


@dataclass(frozen=True)
class Diagnostics:
    """What is known about the quality of a frozen sample."""

    ess: float
    """Effective sample size of the failures, (Σw)²/Σw²."""
    largest_share: float | None
    """The heaviest failure's share of the estimate; where failures branched off each other, that of
    all that descend from one episode. None without failures."""
    pareto_k: float | None
    """Tail index of the failures' weights; None for equal weights and for too few."""
    nominal_only_share: float | None
    """Share of the estimate from failures that the nominal part of the proposal produces more
    often than the learned part, unless it has seen enough of them; None where the proposal lacks
    one of the two, or where the estimate is mostly Monte Carlo's."""
    explored_failures: int | None
    """Failing episodes that learning reported; None where the method reports none."""
    explored_estimate: float | None
    """Learning's own rough estimate; None where the method reports none."""
    explored_standard_error: float | None
    """Of `explored_estimate`."""
    missed_share: float | None
    """Share of the explored probability that the frozen proposal hardly produces."""


@dataclass(frozen=True)
class Findings:
    """The numbers, and what the comparison with learning found."""

    numbers: Diagnostics
    missed: Missed | None
    unseen_kinds: tuple[int, ...]


def diagnose(sample: Sample, estimate: Estimate, explored: Explored | None = None) -> Findings:
    """All diagnostics of a frozen sample."""
    w = sample.weights[sample.failed]
    lost = None if explored is None else missed(explored, sample)
    numbers = Diagnostics(
        ess=estimate.ess,
        largest_share=_largest(sample) if (w > 0.0).any() else None,
        pareto_k=None if sample.unweighted or sample.genealogy is not None else pareto_k(w),
        nominal_only_share=nominal_only(sample, sample.weights * sample.failed),
        explored_failures=None if explored is None else len(explored.kind),
        explored_estimate=None if explored is None else explored.estimate,
        explored_standard_error=None if explored is None else explored.standard_error,
        missed_share=None if explored is None else 0.0 if lost is None else lost.share,
    )
    return Findings(
        numbers, lost, () if explored is None else tuple(unseen_kinds(explored, sample))
    )


def _largest(sample: Sample) -> float:
    """The heaviest failure's share; where failures descend from each other, a family's."""
    w = sample.weights * sample.failed
    if sample.genealogy is not None:
        w = sample.genealogy.families(w)[1]
    return float(w.max() / w.sum())


def detection_limit(sample: Sample, confidence: float) -> float | None:
    """A failure mode that the learned adversary never produces, but more likely than this, would
    have been seen by the nominal part at the given confidence; None without a nominal part."""
    n = int(sample.counts[sample.nominal].sum())
    if sample.genealogy is not None:
        n += int(sample.genealogy.root.sum())
    return float(-math.expm1(math.log1p(-confidence) / n)) if n else None


def nominal_only(sample: Sample, weights: FloatArray) -> float | None:
    """Share of Σ weights from episodes that the nominal part of the proposal produces more often
    than the learned part, not only because it draws more; 0 where the nominal part has seen enough
    of them to speak for them itself, None where the proposal lacks one of the two, or where
    the estimate is mostly Monte Carlo's."""
    learned = ~sample.nominal & (sample.counts > 0)
    both = not sample.counting and learned.any() and sample.nominal.any()
    if not both or not weights.sum() > 0.0:
        return None
    with np.errstate(divide="ignore"):
        log_share = np.log(sample.counts / sample.n)
    by_learned = logsumexp((sample.log_q + log_share)[:, learned], axis=1)
    by_nominal = logsumexp((sample.log_q + log_share)[:, sample.nominal], axis=1)
    share = float(sample.counts[learned].sum() / sample.n)
    hardly = (by_learned < by_nominal) & (by_learned - np.log(share) < sample.log_p + _HARDLY)
    alone = weights * hardly
    return 0.0 if effective_size(alone) >= ENOUGH else float(alone.sum() / weights.sum())
