"""`weighted-count`: Fay and Feuer's interval of a sum of weighted counts."""

from __future__ import annotations

from apeval.estimate.estimator import estimator
from apeval.estimate.sample import Sample
from apeval.estimate.weighted import bound_by_nominal, next_counted, of_mass, probability
from apeval.problem.types import BoolArray


@estimator(
    "weighted-count",
    description="Fay and Feuer's interval of weighted counts; never shorter than a Poisson count's",
)
def interval(sample: Sample, hit: BoolArray, confidence: float) -> tuple[float, float]:
    """Weighted counts of the event; of its contrary where that is the rarer one and all weights are
    about 1, so that the two add up to 1."""
    p = probability(sample, hit)
    if p <= 0.0:
        return 0.0, bound_by_nominal(sample, hit, confidence)
    frequent = p > 0.5 and sample.counting
    rarer = sample.weights[hit != frequent] / sample.n
    lo, hi = of_mass(rarer, confidence, next_counted(sample))
    return (1.0 - hi, 1.0 - lo) if frequent else (lo, hi)
