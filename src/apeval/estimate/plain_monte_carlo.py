"""What plain Monte Carlo would give for the same effort: the yardstick of every method."""

from __future__ import annotations

import math

from apeval.estimate.interval import Estimate
from apeval.estimate.quantiles import beta_quantile
from apeval.estimate.sample import Sample

_ERRORS = 2.0  # of the logarithm of a width, from which one width exceeds another


def nominal_length(sample: Sample) -> float:
    """Decisions of a nominal episode: of those that the nominal part drew, or by weight."""
    drawn = sample.nominal[sample.component]
    if drawn.any():
        return float(sample.length[drawn].mean())
    w = sample.weights
    return (
        float((w * sample.length).sum() / w.sum()) if w.sum() > 0.0 else float(sample.length.mean())
    )


def worth(numbers: Estimate) -> float | None:
    """Episodes after which Monte Carlo would have the same standard error."""
    if not 0.0 < numbers.value < 1.0 or numbers.standard_error <= 0.0:
        return None
    return numbers.value * (1.0 - numbers.value) / numbers.standard_error**2


def times_wider(numbers: Estimate, episodes: float) -> float | None:
    """How many times as wide as Monte Carlo's an interval is.

    Monte Carlo's is the exact interval of `episodes` episodes with the share of failures that was
    estimated. A width is itself an estimate: that of m effective failures has a relative error of
    about 1/√(2m), and only what exceeds 1 by two of these is told.

    Args:
        numbers: The estimate and its interval.
        episodes: Nominal episodes that the same effort pays for.

    Returns:
        The ratio; None where it is not above 1 beyond its error, or cannot be told (no failure, or
        outcomes that are unknown, which both would lack).

    Examples:
        >>> it = Estimate(0.1, 0.03, (0.05, 0.2), 0.95, ess=50.0, unresolved_mass=0.0)
        >>> round(times_wider(it, 2_000), 1)
        5.6
        >>> times_wider(it, 50) is None
        True
    """
    v, n = numbers.value, episodes
    if not 0.0 < v < 1.0 or n < 1.0 or numbers.unresolved_mass > 0.0:
        return None
    alpha = 1.0 - numbers.confidence
    low = beta_quantile(alpha / 2.0, v * n, (1.0 - v) * n + 1.0)
    high = beta_quantile(1.0 - alpha / 2.0, v * n + 1.0, (1.0 - v) * n)
    ratio = (numbers.interval[1] - numbers.interval[0]) / (high - low)
    limit = math.exp(_ERRORS / math.sqrt(2.0 * max(numbers.ess, 1.0)))
    return ratio if ratio > limit else None
