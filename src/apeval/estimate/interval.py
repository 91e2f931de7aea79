"""The failure probability from a frozen sample: estimate, standard error, interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.estimate.estimator import find_estimator
from apeval.estimate.sample import Sample
from apeval.estimate.weighted import effective, effective_size, of_mass, probability, stratified
from apeval.problem.types import BoolArray

__all__ = [
    "Estimate",
    "bounds",
    "effective_size",
    "estimate",
    "one_sided",
    "probability",
    "stratified",
]


@dataclass(frozen=True)
class Estimate:
    """v̂(s0) = mean of weight × failure, with its interval at `confidence`."""

    value: float
    standard_error: float
    interval: tuple[float, float]
    confidence: float
    ess: float
    """Effective sample size of the failures, (Σw)²/Σw²."""
    unresolved_mass: float
    """Nominal probability of episodes whose outcome is unknown."""


def estimate(sample: Sample, confidence: float) -> Estimate:
    """The trajectory-weight estimate. Unresolved episodes widen the interval: the lower end
    takes all of them as survived, the upper end as failed, the estimate as survived.

    Args:
        sample: The episodes of a frozen stage, or of several combined.
        confidence: Of the two-sided interval.

    Returns:
        Estimate, standard error, interval and effective sample size.
    """
    w = sample.weights
    mean = probability(sample, sample.failed)
    _, error = stratified(sample, w * sample.failed)
    if sample.unweighted:
        error = float(np.sqrt(mean * (1.0 - mean) / sample.n))
    return Estimate(
        value=mean,
        standard_error=error,
        interval=bounds(sample, sample.failed, confidence),
        confidence=confidence,
        ess=effective(sample, w, sample.failed),
        unresolved_mass=probability(sample, sample.unresolved),
    )


def one_sided(sample: Sample, confidence: float) -> tuple[float, float]:
    """A lower and an upper bound of the failure probability, each at `confidence` by itself.

    Args:
        sample: Episodes with their weights.
        confidence: Of each bound.

    Returns:
        Lower and upper bound.
    """
    return bounds(sample, sample.failed, 2.0 * confidence - 1.0)


def bounds(sample: Sample, hit: BoolArray, confidence: float) -> tuple[float, float]:
    """The interval of the probability of any event among the episodes, such as one kind of
    failure; it widens upwards by the unresolved episodes, which might all belong to it.

    Args:
        sample: Episodes with their weights.
        hit: Whether the event happened in each, (n,).
        confidence: Of the two-sided interval.

    Returns:
        Lower and upper end.
    """
    interval = find_estimator(sample.estimator).interval
    lo, hi = interval(sample, hit, confidence)
    unknown = sample.unresolved & ~hit
    if not unknown.any():
        return lo, hi
    if sample.unweighted:
        return lo, interval(sample, hit | unknown, confidence)[1]
    # the upper end of a sum of two: their distances from the means add up as squares do (Zou and
    # Donner, 2008). One heavy unresolved episode does not make the failures' own weights heavy.
    known = float((sample.weights * hit).mean())
    parts = sample.weights[unknown] / sample.n
    mass = float(parts.sum())
    beyond = np.hypot(hi - known, of_mass(parts, confidence)[1] - mass)
    return lo, min(1.0, known + mass + float(beyond))
