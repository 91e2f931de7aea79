"""Diagnostics that speak: what a reader must know before believing the number."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from apeval.estimate.interval import Estimate
from apeval.estimate.sample import Sample

ENOUGH_ESS = 30.0
_HEAVY_SHARE = 0.2
_MISSED_SHARE = 0.1
_DISAGREEMENT = 0.1


def sample_warnings(
    sample: Sample, numbers: Estimate, value: float | None, spent: str
) -> list[str]:
    """Plain-language warnings about a frozen sample, each with a remedy.

    `spent` is the run's budget in words, such as "9,000 steps".
    """
    found = _unresolved(sample, numbers)
    if numbers.value <= 0.0:
        return [
            *found,
            f"no failure in {sample.n:,} episodes of the frozen stage: only the upper end of the "
            f"interval says something. Spend more than {spent}",
        ]
    return found + _thin(sample, numbers, spent) + _missed(sample) + _disagreement(numbers, value)


def detection_limit(sample: Sample, confidence: float) -> float | None:
    """A failure mode that the learned adversary never produces, but more likely than this, would
    have been seen by the nominal part at the given confidence; None without a nominal part."""
    n = int(sample.counts[sample.nominal].sum())
    return float(-math.expm1(math.log1p(-confidence) / n)) if n else None


def _unresolved(sample: Sample, numbers: Estimate) -> list[str]:
    cut = int(sample.unresolved.sum())
    if not cut:
        return []
    return [
        f"{cut:,} of {sample.n:,} episodes were cut before their outcome was known (nominal "
        f"probability {numbers.unresolved_mass:.2e}): the interval allows for all of them failing. "
        "Give the problem a horizon, or a larger cap or budget"
    ]


def _thin(sample: Sample, numbers: Estimate, spent: str) -> list[str]:
    """Too few failures, or one that outweighs the rest."""
    texts = []
    if numbers.ess < ENOUGH_ESS:
        times = ENOUGH_ESS / max(numbers.ess, 1.0)
        texts.append(
            f"the estimate rests on {numbers.ess:.1f} effective failures (at least "
            f"{ENOUGH_ESS:.0f} are wanted): spend about {math.ceil(times)} times {spent}"
        )
    w = sample.weights[sample.failed]
    share = float(w.max() / w.sum())
    if share > _HEAVY_SHARE and len(w) > 1:
        texts.append(
            f"one episode carries {share:.0%} of the estimate, so the interval may be too short: "
            f"spend several times {spent}"
        )
    return texts


def _missed(sample: Sample) -> list[str]:
    """Failures that only the nominal part finds: a mode that the adversary did not learn."""
    learned = ~sample.nominal & (sample.counts > 0)
    if not learned.any() or not sample.nominal.any():
        return []
    w = sample.weights * sample.failed
    with np.errstate(divide="ignore"):
        log_share = np.log(sample.counts / sample.n)
    by_learned = logsumexp((sample.log_q + log_share)[:, learned], axis=1)
    by_nominal = logsumexp((sample.log_q + log_share)[:, sample.nominal], axis=1)
    alone = sample.failed & (by_learned < by_nominal)
    share = float(w[alone].sum() / w.sum())
    if share <= _MISSED_SHARE:
        return []
    return [
        f"{share:.0%} of the estimate comes from {int(alone.sum())} failures that the learned "
        "adversary hardly produces: it misses a failure mode. Raise the budget, or its learning "
        "share"
    ]


def _disagreement(numbers: Estimate, value: float | None) -> list[str]:
    lo, hi = numbers.interval
    if value is None or lo <= value <= hi:
        return []
    if abs(value - numbers.value) <= _DISAGREEMENT * numbers.value:
        return []
    return [
        f"the learned v(s0) = {value:.3e} lies outside the interval of the trajectory-weight "
        f"estimate ({lo:.3e} … {hi:.3e}): TD has not converged, as with rewards that come late. "
        "The estimate does not depend on it"
    ]
