"""`family-t`: Student's interval of log v for episodes that branched off each other."""

from __future__ import annotations

import numpy as np

from apeval.estimate.estimator import estimator
from apeval.estimate.quantiles import student_quantile
from apeval.estimate.sample import Sample
from apeval.estimate.weighted import bound_by_nominal, effective, stratified
from apeval.problem.types import BoolArray

_THIN, _THINNEST = 5.0, 2.0  # effective families below which Monte Carlo's own bound helps


@estimator(
    "family-t",
    description="Student's interval of the logarithm, with the variance between families of "
    "episodes that branched off each other",
)
def interval(sample: Sample, hit: BoolArray, confidence: float) -> tuple[float, float]:
    """The unbiased variance of `Genealogy`, with a degree of freedom for every effective family but
    one; where these are few, the upper end is at the most Monte Carlo's with the roots alone."""
    values = sample.weights * hit
    mean, error = stratified(sample, values)
    if mean <= 0.0:
        return 0.0, bound_by_nominal(sample, hit, confidence)
    ess = effective(sample, values, hit)
    half = student_quantile(0.5 + confidence / 2, max(ess - 1.0, 1.0)) * error / mean
    lo, hi = mean * float(np.exp(-half)), mean * float(np.exp(min(half, 700.0)))
    if ess < _THIN:
        hi = min(hi, max(bound_by_nominal(sample, hit, confidence), mean))
        lo = 0.0 if ess < _THINNEST else lo
    return min(1.0, lo), min(1.0, hi)
