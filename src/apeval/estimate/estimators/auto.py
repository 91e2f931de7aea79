"""`auto`, the default: the construction that fits how the episodes were drawn."""

from __future__ import annotations

from apeval.estimate.binomial import clopper_pearson
from apeval.estimate.estimator import AUTO, estimator
from apeval.estimate.estimators import family_t, log_t, weighted_count
from apeval.estimate.sample import Sample
from apeval.estimate.weighted import probability
from apeval.problem.types import BoolArray


@estimator(
    AUTO,
    description="the default: exact (Clopper-Pearson) for plain Monte Carlo, weighted-count where "
    "the estimate is mostly Monte Carlo's, family-t where episodes branched, log-t elsewhere",
)
def interval(sample: Sample, hit: BoolArray, confidence: float) -> tuple[float, float]:
    """Chosen by rule."""
    if sample.unweighted:
        return clopper_pearson(int(hit.sum()), sample.n, confidence)
    if sample.genealogy is not None:
        return family_t.interval(sample, hit, confidence)
    if probability(sample, hit) > 0.0 and sample.counting:
        return weighted_count.interval(sample, hit, confidence)
    return log_t.interval(sample, hit, confidence)
