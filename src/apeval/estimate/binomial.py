"""Exact interval of a Monte Carlo failure rate."""

from __future__ import annotations

from apeval.estimate.quantiles import beta_quantile


def clopper_pearson(failures: int, n: int, confidence: float) -> tuple[float, float]:
    """The Clopper-Pearson interval of a binomial probability; right at 0 and at n failures.

    >>> [round(p, 4) for p in clopper_pearson(0, 100, 0.95)]
    [0.0, 0.0362]
    >>> [round(p, 4) for p in clopper_pearson(100, 100, 0.95)]
    [0.9638, 1.0]
    """
    alpha = 1.0 - confidence
    lo = 0.0 if failures == 0 else beta_quantile(alpha / 2, failures, n - failures + 1)
    hi = 1.0 if failures == n else beta_quantile(1 - alpha / 2, failures + 1, n - failures)
    return lo, hi
