"""Quantiles and tails of the laws that intervals rest on.

The functions of `scipy.special` that are behind `scipy.stats`, to the same bits: importing
`scipy.stats` takes longer than many a run, and its distributions a hundred times as long per call.
"""

from __future__ import annotations

from scipy.special import betaincinv, chdtrc, gammaincinv, ndtr, ndtri, stdtrit


def normal_probability(x: float) -> float:
    """Probability that a standard normal is below x, Φ(x)."""
    return float(ndtr(x))


def normal_quantile(p: float) -> float:
    """What a standard normal is below with probability p."""
    return float(ndtri(p))


def normal_upper_quantile(p: float) -> float:
    """What a standard normal is above with probability p, exact for a small p."""
    return float(-ndtri(p))


def student_quantile(p: float, freedom: float) -> float:
    """What Student's t with these degrees of freedom is below with probability p."""
    return float(stdtrit(freedom, p))


def beta_quantile(p: float, a: float, b: float) -> float:
    """What a beta variable is below with probability p."""
    return float(betaincinv(a, b, p))


def chi_square_quantile(p: float, freedom: float) -> float:
    """What a χ² with these degrees of freedom is below with probability p."""
    return float(2.0 * gammaincinv(freedom / 2.0, p))


def chi_square_tail(x: float, freedom: float) -> float:
    """Probability that a χ² with these degrees of freedom is above x."""
    return float(chdtrc(freedom, x))
