"""`log-t`: Student's interval of log v, whose upper end counts one more failure."""

from __future__ import annotations

import numpy as np

from apeval.estimate.estimator import estimator
from apeval.estimate.quantiles import student_quantile
from apeval.estimate.sample import Sample
from apeval.estimate.weighted import bound_by_nominal, effective, next_counted, stratified
from apeval.problem.types import BoolArray

_THIN, _THINNEST = 5.0, 2.0  # effective failures below which a log-t interval says too much


@estimator(
    "log-t",
    description="Student's interval of the logarithm, for sums of skewed weights",
)
def interval(sample: Sample, hit: BoolArray, confidence: float) -> tuple[float, float]:
    """The event's mean and its strata's spread, on a logarithmic scale."""
    values = sample.weights * hit
    mean, error = stratified(sample, values)
    if mean <= 0.0:
        return 0.0, bound_by_nominal(sample, hit, confidence)
    ess = effective(sample, values, hit)
    lo, _ = _log_t(mean, error, ess, confidence)
    # Sums of skewed weights miss upwards: a sample without its heavy failures has a low mean and
    # a small variance at once. The upper end therefore counts one more failure, as heavy as the
    # heaviest seen (docs/results/intervals has the coverage with it and without), or as one that
    # was counted would be.
    heaviest = max(float(values.max()) / sample.n, next_counted(sample))
    _, hi = _log_t(mean + heaviest, float(np.hypot(error, heaviest)), ess, confidence)
    if ess < _THIN:  # too few failures to speak for those that were not seen
        hi = max(hi, bound_by_nominal(sample, hit, confidence))
        lo = 0.0 if ess < _THINNEST else lo
    return lo, hi


def _log_t(mean: float, error: float, ess: float, confidence: float) -> tuple[float, float]:
    """Student's interval for log v: a sum of positive skewed weights is nearer log-normal than
    normal, and its variance is known only as well as the effective sample size allows."""
    half = student_quantile(0.5 + confidence / 2, max(ess - 1.0, 1.0)) * error / mean
    return min(1.0, mean * float(np.exp(-half))), min(1.0, mean * float(np.exp(min(half, 700.0))))
