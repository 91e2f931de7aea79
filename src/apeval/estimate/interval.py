"""The failure probability from a frozen sample: estimate, standard error, interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv
from scipy.stats import t as student

from apeval.estimate.binomial import clopper_pearson
from apeval.estimate.sample import Sample
from apeval.problem.types import BoolArray, FloatArray

_THIN, _THINNEST = 5.0, 2.0  # effective failures below which a log-t interval says too much


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
    takes all of them as survived, the upper end as failed, the estimate as survived."""
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
        ess=effective_size(w[sample.failed]),
        unresolved_mass=probability(sample, sample.unresolved),
    )


def probability(sample: Sample, hit: BoolArray) -> float:
    """The mean of weight × event. Where the event is nearly certain, chance can carry the mean of
    the weights beyond 1, which no probability is."""
    return min(stratified(sample, sample.weights * hit)[0], 1.0)


def one_sided(sample: Sample, confidence: float) -> tuple[float, float]:
    """A lower and an upper bound of the failure probability, each at `confidence` by itself."""
    return bounds(sample, sample.failed, 2.0 * confidence - 1.0)


def bounds(sample: Sample, hit: BoolArray, confidence: float) -> tuple[float, float]:
    """The interval of the probability of any event among the episodes, such as one kind of
    failure; it widens upwards by the unresolved episodes, which might all belong to it."""
    lo, hi = _interval(sample, hit, confidence)
    unknown = sample.unresolved & ~hit
    if not unknown.any():
        return lo, hi
    if sample.unweighted:
        return lo, _interval(sample, hit | unknown, confidence)[1]
    # the upper end of a sum of two: their distances from the means add up as squares do (Zou and
    # Donner, 2008). One heavy unresolved episode does not make the failures' own weights heavy.
    known = float((sample.weights * hit).mean())
    parts = sample.weights[unknown] / sample.n
    mass = float(parts.sum())
    beyond = np.hypot(hi - known, _of_mass(parts, confidence)[1] - mass)
    return lo, min(1.0, known + mass + float(beyond))


def _of_mass(parts: FloatArray, confidence: float, next_one: float = 0.0) -> tuple[float, float]:
    """The interval of a sum of weighted counts, from the weights of those that happened (Fay and
    Feuer, 1997): exact for equal weights, where it is Garwood's for a Poisson count. The upper end
    counts one more, as heavy as the heaviest seen or as `next_one`, whichever is more.

    >>> [round(end, 4) for end in _of_mass(np.full(5, 0.01), 0.95)]
    [0.0162, 0.1167]
    >>> [float(f"{end:.3e}") for end in _of_mass(np.full(5, 1e-300), 0.95)]
    [1.623e-300, 1.167e-299]
    >>> [round(end, 3) for end in _of_mass(np.zeros(0), 0.95, next_one=0.01)]
    [0.0, 0.037]
    """

    def end(level: float, unit: float, more: float) -> float:
        relative = parts / unit  # squares of the parts themselves might be too small for a number
        total, square = float(relative.sum()) + more, float(relative @ relative) + more
        return min(1.0, unit * square / total * float(gammaincinv(total**2 / square, level)))

    heaviest = float(parts.max(initial=0.0))
    most = max(heaviest, next_one)
    low = end(0.5 - confidence / 2.0, heaviest, 0.0) if heaviest > 0.0 else 0.0
    return low, end(0.5 + confidence / 2.0, most, 1.0) if most > 0.0 else 0.0


def stratified(sample: Sample, values: FloatArray) -> tuple[float, float]:
    """Mean of the values (≥ 0) and its standard error; components are strata of fixed size.

    Within a stratum the values are a hit or a zero, times the size of a hit. The share of hits
    enters the variance by the rule of succession, (k + 1)/(m + 2): a proposal that always hit in
    m episodes may still miss once in about m, and an interval that says otherwise is too short.
    """
    variance = 0.0
    for j, m in enumerate(sample.counts):
        hits = values[(sample.component == j) & (values > 0.0)]
        k = len(hits)
        if k == 0:
            continue
        p = (k + 1.0) / (m + 2.0)
        size = float(hits.mean())
        spread = float(hits.var(ddof=1)) if k > 1 else size**2
        variance += (m / sample.n) ** 2 * (p * spread + p * (1.0 - p) * size**2) / m
    return float(values.mean()), float(np.sqrt(variance))


def effective_size(w: FloatArray) -> float:
    """(Σw)²/Σw², 0 for no weight.

    >>> effective_size(np.ones(5))
    5.0
    """
    if not (w > 0.0).any():
        return 0.0
    relative = w / w.max()
    return float(relative.sum()) ** 2 / float((relative * relative).sum())


def _interval(sample: Sample, hit: BoolArray, confidence: float) -> tuple[float, float]:
    if sample.unweighted:
        return clopper_pearson(int(hit.sum()), sample.n, confidence)
    values = sample.weights * hit
    mean, error = stratified(sample, values)
    if mean <= 0.0:
        return 0.0, _bound_by_nominal(sample, hit, confidence)
    if sample.counting:
        return _counted(sample, hit, confidence)
    ess = effective_size(values[hit])
    lo, _ = _log_t(mean, error, ess, confidence)
    # Sums of skewed weights miss upwards: a sample without its heavy failures has a low mean and
    # a small variance at once. The upper end therefore counts one more failure, as heavy as the
    # heaviest seen (docs/results/intervals has the coverage with it and without), or as one that
    # was counted would be.
    heaviest = max(float(values.max()) / sample.n, _next_counted(sample))
    _, hi = _log_t(mean + heaviest, float(np.hypot(error, heaviest)), ess, confidence)
    if ess < _THIN:  # too few failures to speak for those that were not seen
        hi = max(hi, _bound_by_nominal(sample, hit, confidence))
        lo = 0.0 if ess < _THINNEST else lo
    return lo, hi


def _counted(sample: Sample, hit: BoolArray, confidence: float) -> tuple[float, float]:
    """Weighted counts of the event, or of its contrary where that is the rarer one."""
    frequent = probability(sample, hit) > 0.5
    rarer = sample.weights[hit != frequent] / sample.n
    lo, hi = _of_mass(rarer, confidence, _next_counted(sample))
    return (1.0 - hi, 1.0 - lo) if frequent else (lo, hi)


def _next_counted(sample: Sample) -> float:
    """What one more failure would add at the most in a stage that the nominal drew alone."""
    mine = sample.alone[sample.component]
    return float(sample.weights[mine].max(initial=0.0)) / sample.n


def _log_t(mean: float, error: float, ess: float, confidence: float) -> tuple[float, float]:
    """Student's interval for log v: a sum of positive skewed weights is nearer log-normal than
    normal, and its variance is known only as well as the effective sample size allows."""
    half = float(student.ppf(0.5 + confidence / 2, max(ess - 1.0, 1.0))) * error / mean
    return min(1.0, mean * float(np.exp(-half))), min(1.0, mean * float(np.exp(min(half, 700.0))))


def _bound_by_nominal(sample: Sample, hit: BoolArray, confidence: float) -> float:
    """The nominal component alone is a Monte Carlo run: its upper bound, whatever was learned."""
    mine = sample.nominal[sample.component]
    n, k = int(mine.sum()), int((mine & hit).sum())
    return clopper_pearson(k, n, confidence)[1] if n else 1.0
