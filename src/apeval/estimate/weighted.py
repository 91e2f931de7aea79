"""Weighted means of an event, and what they rest on: the parts that estimators share."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincinv

from apeval.estimate.binomial import clopper_pearson
from apeval.estimate.sample import Sample
from apeval.problem.types import BoolArray, FloatArray


def probability(sample: Sample, hit: BoolArray) -> float:
    """The mean of weight × event. Where the event is nearly certain, chance can carry the mean of
    the weights beyond 1, which no probability is.

    Args:
        sample: Episodes with their weights.
        hit: Whether the event happened in each, (n,).

    Returns:
        A probability, at most 1.
    """
    return min(stratified(sample, sample.weights * hit)[0], 1.0)


def stratified(sample: Sample, values: FloatArray) -> tuple[float, float]:
    """Mean of the values (≥ 0) and its standard error; components are strata of fixed size.

    Within a stratum the values are a hit or a zero, times the size of a hit. The share of hits
    enters the variance by the rule of succession, (k + 1)/(m + 2): a proposal that always hit in
    m episodes may still miss once in about m, and an interval that says otherwise is too short.
    Episodes that branched off each other count by families (`Genealogy.variance`).

    Args:
        sample: Episodes with their weights and components.
        values: Weight × event of each, (n,).

    Returns:
        Mean and standard error.
    """
    variance = 0.0
    descended = _descended(sample)
    if descended.any() and sample.genealogy is not None:
        variance = sample.genealogy.variance(np.where(descended, values, 0.0) / sample.n)
    for j, m in enumerate(sample.counts):
        mine = sample.component == j
        if descended[mine].any():
            continue
        hits = values[mine & (values > 0.0)]
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

    Args:
        w: Weights, (n,).

    Returns:
        Between 0 and n.

    Examples:
        >>> effective_size(np.ones(5))
        5.0
    """
    if not (w > 0.0).any():
        return 0.0
    relative = w / w.max()
    return float(relative.sum()) ** 2 / float((relative * relative).sum())


def effective(sample: Sample, values: FloatArray, hit: BoolArray) -> float:
    """The effective size of the values (≥ 0) where `hit`; those of one family count as one.

    Args:
        sample: Episodes with their families.
        values: Shape (n,).
        hit: Which of them count, (n,).

    Returns:
        An effective number of episodes or families.
    """
    if sample.genealogy is None:
        return effective_size(values[hit])
    descended = _descended(sample)
    together = sample.genealogy.families(np.where(descended & hit, values, 0.0))[1]
    return effective_size(np.concatenate([together, values[~descended & hit]]))


def _descended(sample: Sample) -> BoolArray:
    if sample.genealogy is None:
        return np.zeros(sample.n, bool)
    return np.asarray(sample.genealogy.population >= 0)


def of_mass(parts: FloatArray, confidence: float, next_one: float = 0.0) -> tuple[float, float]:
    """The interval of a sum of weighted counts, from the weights of those that happened (Fay and
    Feuer, 1997): exact for equal weights, where it is Garwood's for a Poisson count. The upper end
    counts one more, as heavy as the heaviest seen or as `next_one`, whichever is more.

    Args:
        parts: What each failure adds to the estimate, (k,).
        confidence: Of the two-sided interval.
        next_one: What one more failure would add.

    Returns:
        Lower and upper end.

    Examples:
        >>> [round(end, 4) for end in of_mass(np.full(5, 0.01), 0.95)]
        [0.0162, 0.1167]
        >>> [float(f"{end:.3e}") for end in of_mass(np.full(5, 1e-300), 0.95)]
        [1.623e-300, 1.167e-299]
        >>> [round(end, 3) for end in of_mass(np.zeros(0), 0.95, next_one=0.01)]
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


def next_counted(sample: Sample) -> float:
    """What one more failure would add at the most in a stage that the nominal drew alone.

    Args:
        sample: Episodes of one or more stages.

    Returns:
        A part of the estimate; 0 where no stage was the nominal's alone.
    """
    mine = sample.alone[sample.component]
    return float(sample.weights[mine].max(initial=0.0)) / sample.n


def bound_by_nominal(sample: Sample, hit: BoolArray, confidence: float) -> float:
    """The nominal component alone, with the roots of populations, is a Monte Carlo run: its upper
    bound, whatever was learned.

    Args:
        sample: Episodes with their components.
        hit: Whether the event happened in each, (n,).
        confidence: Of the two-sided interval.

    Returns:
        The upper end.
    """
    mine = sample.nominal[sample.component]
    if sample.genealogy is not None:
        mine = mine | sample.genealogy.root
    n, k = int(mine.sum()), int((mine & hit).sum())
    return clopper_pearson(k, n, confidence)[1] if n else 1.0
