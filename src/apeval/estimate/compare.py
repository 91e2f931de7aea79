"""Two failure probabilities side by side: interval of their ratio and of their difference."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from apeval.estimate.interval import Estimate, estimate
from apeval.estimate.sample import Sample

Side = Callable[[float], Estimate]
"""A run's estimate at any confidence."""

_THIN = 5.0  # effective failures below which only each run's own bounds are used
MORE, LESS, UNDECIDED = "more often", "less often", "undecided"


@dataclass(frozen=True)
class Comparison:
    """v_A against v_B, from independent runs."""

    ratio: float | None
    """v_A/v_B; None where no failure of B was seen."""
    ratio_interval: tuple[float, float]
    """The upper end is infinite where B may never fail, as far as its run can tell."""
    difference: float
    difference_interval: tuple[float, float]
    confidence: float
    verdict: str
    """A fails more often or less often than B, if the ratio's interval leaves out 1; else
    undecided."""
    times: float | None
    """When undecided: how many times both runs' episodes would decide if the estimates stay."""


def side(sample: Sample) -> Side:
    """A sample as one side of a comparison."""
    return lambda confidence: estimate(sample, confidence)


def compare(a: Side, b: Side, confidence: float) -> Comparison:
    """Intervals from those of the two runs.

    The error of a ratio (or difference) of independent estimates is recovered from the distances
    between each estimate and its own bounds, on the logarithmic scale for the ratio (MOVER: Zou
    and Donner, 2008; Donner and Zou, 2012): that keeps each interval's asymmetry. With few
    failures in a run, or none, there are no such distances; then the two intervals, each of
    confidence 1 − α/2, are set against each other end by end (Bonferroni), which is wider.

    >>> from apeval.estimate.binomial import clopper_pearson
    >>> def counted(k, n):
    ...     return lambda c: Estimate(k / n, 0.0, clopper_pearson(k, n, c), c, float(k), 0.0)
    >>> result = compare(counted(40, 1000), counted(20, 1000), 0.95)
    >>> result.verdict, [round(r, 1) for r in result.ratio_interval]
    ('more often', [1.2, 3.6])
    """
    at_a, at_b = a(confidence), b(confidence)
    thin = min(at_a.ess, at_b.ess) < _THIN
    if thin:
        half = 1.0 - (1.0 - confidence) / 2.0
        lo, hi = _end_by_end(a(half).interval, b(half).interval)
    else:
        lo, hi = _mover_ratio(at_a, at_b)
    verdict = verdict_of(lo, hi)
    ratio = at_a.value / at_b.value if at_b.value > 0.0 else None
    return Comparison(
        ratio=ratio,
        ratio_interval=(lo, hi),
        difference=at_a.value - at_b.value,
        difference_interval=_mover_difference(at_a, at_b),
        confidence=confidence,
        verdict=verdict,
        times=times_to_decide(ratio, lo, hi) if verdict == UNDECIDED and not thin else None,
    )


def verdict_of(lo: float, hi: float) -> str:
    """What an interval of the ratio says."""
    return MORE if lo > 1.0 else LESS if hi < 1.0 else UNDECIDED


def _end_by_end(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return (a[0] / b[1] if b[1] > 0.0 else 0.0), (a[1] / b[0] if b[0] > 0.0 else math.inf)


def _mover_ratio(a: Estimate, b: Estimate) -> tuple[float, float]:
    down_a, up_a = _distances(a)
    down_b, up_b = _distances(b)
    ratio = a.value / b.value
    return (
        ratio * math.exp(-min(math.hypot(down_a, up_b), 700.0)),
        ratio * math.exp(min(math.hypot(up_a, down_b), 700.0)),
    )


def _distances(numbers: Estimate) -> tuple[float, float]:
    """How far down and up the interval reaches, as logarithms."""
    lo, hi = numbers.interval
    down = math.log(numbers.value / lo) if lo > 0.0 else math.inf
    return down, math.log(hi / numbers.value)


def _mover_difference(a: Estimate, b: Estimate) -> tuple[float, float]:
    difference = a.value - b.value
    (lo_a, hi_a), (lo_b, hi_b) = a.interval, b.interval
    return (
        difference - math.hypot(a.value - lo_a, hi_b - b.value),
        difference + math.hypot(hi_a - a.value, b.value - lo_b),
    )


def times_to_decide(ratio: float | None, lo: float, hi: float) -> float | None:
    """How many times the episodes would decide: ends close in on the ratio like 1/√n."""
    if ratio is None or ratio <= 0.0 or abs(math.log(ratio)) < 0.02:
        return None
    reach = math.log(hi / ratio) if ratio < 1.0 else math.log(ratio / max(lo, 1e-300))
    return max(1.1, (reach / math.log(ratio)) ** 2)
