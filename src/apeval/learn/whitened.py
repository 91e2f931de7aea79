"""Whitened disturbances: z = Φ⁻¹(F(a)) per component, so that the nominal of z is N(0, I).

F is the nominal's own CDF: for a Gaussian z = (a − mean)/std, for one truncated to a box a
bijection of the open box onto R. A density q over z gives q(a)/π_E,gt(a) = q(z)/φ(z): weights
need no Jacobian. Each value is computed from the nearer tail, in logarithms, and so is exact to
rounding for |z| up to 37 and beyond, as far as the doubles between box and a reach.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from apeval.problem.laws import Disturbance, Law, Normal, NormalLaw, TruncatedNormal
from apeval.problem.laws import TruncatedNormalLaw as BoxLaw
from apeval.problem.types import Array, FloatArray

_LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))
_THIN = 1e-5  # a slice over which the density is constant, and a difference of CDFs is rounding


def can_whiten(disturbance: Disturbance | None) -> bool:
    """Whether `to_z` knows the disturbance's laws (no disturbance at all is no obstacle)."""
    return disturbance is None or isinstance(disturbance, Normal | TruncatedNormal)


def log_phi(z: FloatArray) -> FloatArray:
    """log N(z; 0, I), row by row.

    >>> log_phi(np.zeros((1, 2))).round(4).tolist()
    [-1.8379]
    """
    log_p: FloatArray = -0.5 * (z * z).sum(axis=-1) - z.shape[-1] * _LOG_SQRT_2PI
    return log_p


def to_z(law: Law, a: Array) -> FloatArray:
    """Disturbances (n, d) to whitened ones. At the box's edge, where z would be infinite, it is
    that of the next double inside."""
    if isinstance(law, NormalLaw):
        z: FloatArray = (a - law.mean) / law.std
        return z
    law = _boxed(law)
    low, high = (law.low - law.mean) / law.std, (law.high - law.mean) / law.std
    x = np.clip((a - law.mean) / law.std, np.nextafter(low, np.inf), np.nextafter(high, -np.inf))
    below, above = _log_mass(low, x), _log_mass(x, high)
    upper = above < below  # the nearer tail
    log_mass = np.logaddexp(below, above)
    tail: FloatArray = ndtri_exp(np.minimum(np.where(upper, above, below) - log_mass, 0.0))
    return np.where(upper, -tail, tail)


def to_action(law: Law, z: FloatArray) -> FloatArray:
    """Whitened disturbances (n, d) to real ones, never outside the box."""
    if isinstance(law, NormalLaw):
        a: FloatArray = law.mean + law.std * z
        return a
    law = _boxed(law)
    low, high = (law.low - law.mean) / law.std, (law.high - law.mean) / law.std
    upper = z > 0.0
    edge = np.where(upper, -high, low)
    # Φ(x) = Φ(edge) + mass·Φ(−|z|), seen from the nearer edge; far beyond the mean that sum is
    # near 1 and its complement is the accurate one
    log_mass = _log_mass(low, high)
    log_tail = log_mass + log_ndtr(-np.abs(z))
    log_rest = log_mass + log_ndtr(np.abs(z))
    log_below = np.logaddexp(log_ndtr(edge), log_tail)
    log_above = np.logaddexp(log_ndtr(np.where(upper, low, -high)), log_rest)
    far = log_above < log_below
    x = ndtri_exp(np.minimum(np.where(far, log_above, log_below), 0.0))
    x = np.where(far != upper, -x, x)
    a = law.mean + law.std * np.clip(x, low, high)
    return np.clip(a, law.low, law.high)


def _boxed(law: Law) -> BoxLaw:
    if not isinstance(law, BoxLaw):
        raise TypeError(f"no whitening for a {type(law).__name__}")
    return law


def log_density(law: Law, a: Array, z: FloatArray, log_q: FloatArray) -> FloatArray:
    """log q(a) of a density over z: the Jacobian dz/da is π_E,gt(a) / N(z; 0, I)."""
    density: FloatArray = log_q + law.log_prob(a) - log_phi(z)
    return density


def _log_mass(low: FloatArray, high: FloatArray) -> FloatArray:
    """log(Φ(high) − Φ(low)), from the tail in which the interval lies, and for slices as thin as
    rounding."""
    mirror = low > 0.0
    lo, hi = np.where(mirror, -high, low), np.where(mirror, -low, high)
    upper = log_ndtr(hi)
    with np.errstate(divide="ignore", invalid="ignore"):  # an open side is infinite
        wide = upper + np.log(-np.expm1(np.minimum(log_ndtr(lo) - upper, 0.0)))
        width, middle = hi - lo, 0.5 * (hi + lo)
        thin = -0.5 * middle * middle - _LOG_SQRT_2PI + np.log(width)
        log_p: FloatArray = np.where(width * (1.0 + np.abs(middle)) < _THIN, thin, wide)
    return log_p
