"""Two failure probabilities from episodes in pairs: what both have in common drops out.

Pair i has the contributions x_i = w·1{A fails} and y_i = w·1{B fails} from the same random numbers.
Where the policies are alike, x and y are large together, and the error of x̄/ȳ or of x̄ − ȳ is that
of the few pairs in which they differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from apeval.estimate.anytime import anytime_multiple
from apeval.estimate.compare import (
    UNDECIDED,
    Comparison,
    compare,
    side,
    times_to_decide,
    verdict_of,
)
from apeval.estimate.quantiles import normal_probability, student_quantile
from apeval.estimate.sample import Sample
from apeval.estimate.weighted import effective_size, of_mass
from apeval.problem.types import FloatArray

_THIN = 5.0  # effective failures below which only each policy's own bounds are used
_ENOUGH = 20.0  # effective failures of both from which an interval may be looked at any time
_UNSEEN = 5.0  # see `_quantile`


@dataclass(frozen=True)
class PairedAnswer(Comparison):
    """v_A against v_B, from episodes in pairs."""

    correlation: float | None
    """Of the two estimates; None where one of them has no failure."""
    worth: float | None
    """So many times as many episodes unpaired samples of the same kind would need for a ratio of
    the same standard error; None where it cannot be told."""


def compare_pairs(
    a: Sample, b: Sample, confidence: float, planned: int | None = None
) -> PairedAnswer:
    """Ratio and difference of two samples whose episodes are pairs, in the same order.

    The ratio's error is that of the residuals x_i/x̄ − y_i/ȳ (the delta method, on the logarithmic
    scale), the difference's that of x_i − y_i; components are strata. Upwards the interval counts
    one more pair in which A alone fails, downwards one in which B alone does: pairs that differ may
    be so few that none was seen. Unresolved episodes widen it by all that they may be.

    Args:
        a: Episodes of A.
        b: Episodes of B: episode i has the random numbers and the component of A's.
        confidence: Of the intervals.
        planned: How many pairs there may be in the end, fixed before the first: then the intervals
            hold at all looks at once (`anytime_multiple`), and with too few failures they say
            nothing. None: they hold at this look.
    """
    x, y = a.weights * a.failed, b.weights * b.failed
    if min(effective_size(x), effective_size(y)) < (_THIN if planned is None else _ENOUGH):
        return _with_few(a, b, confidence, planned)
    v_A, v_B = float(x.mean()), float(y.mean())
    u_A, u_B = _unresolved(a, confidence), _unresolved(b, confidence)
    down, up = _distances(x / v_A, y / v_B, a, confidence, planned)
    lo = v_A / (v_B + u_B) * math.exp(-min(down, 700.0))
    hi = (v_A + u_A) / v_B * math.exp(min(up, 700.0))
    below, above = _distances(x, y, a, confidence, planned)
    verdict = verdict_of(lo, hi)
    alone = _variance(x / v_A, a), _variance(y / v_B, a)
    together = _variance(x / v_A - y / v_B, a)
    return PairedAnswer(
        ratio=v_A / v_B,
        ratio_interval=(lo, hi),
        difference=v_A - v_B,
        difference_interval=(v_A - v_B - below - u_B, v_A - v_B + above + u_A),
        confidence=confidence,
        verdict=verdict,
        times=times_to_decide(v_A / v_B, lo, hi) if verdict == UNDECIDED else None,
        correlation=_correlation(*alone, together),
        worth=sum(alone) / together if together > 0.0 else None,
    )


def _with_few(a: Sample, b: Sample, confidence: float, planned: int | None) -> PairedAnswer:
    """Each policy's own bounds, which hold whatever the pairs have in common; at any time
    nothing."""
    found = vars(compare(side(a), side(b), confidence))
    if planned is not None:
        found |= {"ratio_interval": (0.0, math.inf), "difference_interval": (-1.0, 1.0)}
        found |= {"verdict": UNDECIDED, "times": None}
    return PairedAnswer(**found, correlation=None, worth=None)


def _distances(
    x: FloatArray, y: FloatArray, sample: Sample, confidence: float, planned: int | None
) -> tuple[float, float]:
    """How far the interval of x̄ − ȳ reaches down and up."""
    n, r = len(x), x - y
    error = math.sqrt(_variance(r, sample))
    times = _quantile(r, confidence, planned)
    reach = []
    for own, most in ((y, float((-r).max())), (x, float(r.max()))):
        one_more = max(most, float(own.sum()) / effective_size(own)) / n
        reach.append(one_more + times * math.hypot(error, one_more))
    return reach[0], reach[1]


def _quantile(r: FloatArray, confidence: float, planned: int | None) -> float:
    """Standard errors that the interval reaches, by Student's distribution.

    The variance rests on (Σr²)²/Σr⁴ residuals in effect, k. With k + 5 degrees of freedom the end
    that counts one more is Garwood's for a Poisson count to within 4 %, for k equal residuals from
    none to a hundred: 3.57 for 3.69 at k = 0, 11.5 for 11.7 at 5, 30.4 for 30.9 at 20.
    """
    tail = 0.5 + confidence / 2.0
    if planned is not None:
        tail = normal_probability(anytime_multiple(len(r), planned, confidence))
    return student_quantile(tail, effective_size(r * r) + _UNSEEN)


def _variance(values: FloatArray, sample: Sample) -> float:
    """Of the mean of the values; components are strata of fixed size."""
    total = 0.0
    for j, m in enumerate(sample.counts):
        if m:
            mine = values[sample.component == j]
            total += m * (float(mine.var(ddof=1)) if m > 1 else float(mine[0]) ** 2)
    return float(total / sample.n**2)


def _correlation(one: float, other: float, together: float) -> float | None:
    """From the variances of two estimates and of their difference."""
    if min(one, other) <= 0.0:
        return None
    return (one + other - together) / (2.0 * math.sqrt(one * other))


def _unresolved(sample: Sample, confidence: float) -> float:
    """The probability that episodes of unknown outcome may add, at the most."""
    if not sample.unresolved.any():
        return 0.0
    return of_mass(sample.weights[sample.unresolved] / sample.n, confidence)[1]
