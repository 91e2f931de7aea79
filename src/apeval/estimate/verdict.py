"""Is the failure probability below a bound? Shown, refuted or undecided."""

from __future__ import annotations

import math
from dataclasses import dataclass

from apeval import validate
from apeval.errors import ApevalError
from apeval.estimate.interval import Estimate, one_sided
from apeval.estimate.sample import Sample

SHOWN, REFUTED, UNDECIDED = "shown", "refuted", "undecided"
_NEARLY_EQUAL = 0.02  # a bound within 2 % of the estimate: no budget promises a decision


@dataclass(frozen=True)
class Verdict:
    """The answer to "is it below `below`?", from one-sided bounds at the run's confidence."""

    below: float
    verdict: str
    """shown: the upper bound lies below; refuted: the lower bound lies above; or undecided."""
    lower: float
    upper: float
    times: float | None
    """When undecided: how many times the frozen stage's episodes would decide, if the estimate
    stays where it is; None where it lies too near the bound to say."""


def check_bound(below: float, confidence: float) -> float:
    """The bound; questions that have no answer are refused."""
    below = validate.fraction("below", below, "1e-5")
    if confidence <= 0.5:
        raise ApevalError(f"a verdict needs a confidence above 0.5; got {confidence}")
    return below


def judge(sample: Sample, numbers: Estimate, below: float, confidence: float) -> Verdict:
    """The verdict of a frozen sample."""
    lower, upper = one_sided(sample, confidence)
    if upper < below:
        return Verdict(below, SHOWN, lower, upper, None)
    if lower > below:
        return Verdict(below, REFUTED, lower, upper, None)
    return Verdict(below, UNDECIDED, lower, upper, _times(numbers.value, lower, upper, below))


def _times(value: float, lower: float, upper: float, below: float) -> float | None:
    """Bounds close in on the estimate like 1/√n; without failures, on 0 like 1/n."""
    if value <= 0.0:
        return upper / below
    distance = abs(math.log(below / value))
    if distance < _NEARLY_EQUAL:
        return None
    reach = math.log(upper / value) if below > value else math.log(value / max(lower, 1e-300))
    return max(1.1, (reach / distance) ** 2)
