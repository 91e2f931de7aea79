"""How far a mean may stray at any time: the boundary of an asymptotic confidence sequence."""

from __future__ import annotations

import math

_SOONER = 4.0  # the boundary is tightest at this part of what is planned, and flat around it


def anytime_multiple(n: int, planned: int, confidence: float) -> float:
    """Standard errors within which a mean of n stays of its truth, for all n at once.

    Robbins' normal mixture as an asymptotic confidence sequence (Waudby-Smith, Arbour, Sinha,
    Kennedy and Ramdas, 2024): √((nρ² + 1)/(nρ²) · log((nρ² + 1)/α²)), with ρ such that it is
    tightest at a quarter of `planned`, which must be fixed before the first of the n is drawn. The
    guarantee is that of the central limit theorem, but for all n from the first look on: the later
    that look is, the nearer to α is the probability that the mean ever lies outside.

    Args:
        n: How many are averaged.
        planned: How many there may be in the end.
        confidence: 1 − α.

    Examples:
        >>> [round(anytime_multiple(n, 1_000, 0.95), 2) for n in (100, 250, 1_000, 100_000)]
        [3.12, 3.04, 3.13, 3.75]
    """
    alpha = 1.0 - confidence
    optimum = -2.0 * math.log(alpha) + math.log(1.0 - 2.0 * math.log(alpha))
    x = n * optimum * _SOONER / max(planned, 1)
    return math.sqrt((x + 1.0) / x * (math.log(x + 1.0) - 2.0 * math.log(alpha)))
