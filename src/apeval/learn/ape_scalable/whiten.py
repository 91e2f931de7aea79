"""Whitened disturbances z: the nominal π_E,gt becomes N(0, I), the action box becomes all of R^d.

For a Gaussian nominal z = (a − mean)/std. For one truncated to a box z = Φ⁻¹(F(a)), F its CDF: a
bijection of the open box onto R, so a flow over z has an exact density on the box and no mass
outside. Both tails are computed from their own side, where a CDF is accurate.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from apeval.problem.laws import Law, NormalLaw, TruncatedNormalLaw
from apeval.problem.types import Array, FloatArray

_LOG_2PI = float(np.log(2.0 * np.pi))
_THIN = 1e-4  # a slice whose density is its middle's, to 1e-9


def log_standard_normal(z: FloatArray) -> FloatArray:
    """log N(z; 0, I) row by row."""
    log_p: FloatArray = -0.5 * (z * z).sum(axis=1) - 0.5 * z.shape[1] * _LOG_2PI
    return log_p


def to_z(law: Law, a_E: Array) -> FloatArray:
    """a_E → z, (n, d_E)."""
    if isinstance(law, NormalLaw):
        z: FloatArray = (a_E - law.mean) / law.std
        return z
    if not isinstance(law, TruncatedNormalLaw):
        raise TypeError(f"no whitening for a {type(law).__name__}")
    low, high = (law.low - law.mean) / law.std, (law.high - law.mean) / law.std
    # the mass of the last unit of rounding at either end is booked on the double inside it
    x = np.clip((a_E - law.mean) / law.std, np.nextafter(low, np.inf), np.nextafter(high, -np.inf))
    log_mass = _log_mass(low, high)
    below, above = _log_mass(low, x) - log_mass, _log_mass(x, high) - log_mass
    return np.where(below < above, ndtri_exp(below), -ndtri_exp(above))


def to_action(law: Law, z: FloatArray) -> FloatArray:
    """z → a_E, (n, d_E)."""
    if isinstance(law, NormalLaw):
        a_E: FloatArray = law.mean + law.std * z
        return a_E
    if not isinstance(law, TruncatedNormalLaw):
        raise TypeError(f"no whitening for a {type(law).__name__}")
    low, high = (law.low - law.mean) / law.std, (law.high - law.mean) / law.std
    mass = np.exp(_log_mass(low, high))
    left = ndtri(ndtr(low) + mass * ndtr(np.minimum(z, 0.0)))
    right = -ndtri(ndtr(-high) + mass * ndtr(-np.maximum(z, 0.0)))
    x = np.clip(np.where(z < 0.0, left, right), low, high)  # rounding only
    a_E = law.mean + law.std * x
    return np.clip(a_E, law.low, law.high)


def log_density(law: Law, a_E: Array, z: FloatArray, log_q_z: FloatArray) -> FloatArray:
    """log q(a_E) of a density over z: the Jacobian dz/da is π_E,gt(a) / N(z; 0, I)."""
    log_q: FloatArray = log_q_z + law.log_prob(a_E) - log_standard_normal(z)
    return log_q


def _log_mass(low: FloatArray, high: FloatArray) -> FloatArray:
    """log(Φ(high) − Φ(low)), accurate in both tails and for slices as thin as rounding."""
    mirror = low > 0.0
    lo, hi = np.where(mirror, -high, low), np.where(mirror, -low, high)
    upper = log_ndtr(hi)
    with np.errstate(divide="ignore", invalid="ignore"):  # an open side is infinite
        wide = upper + np.log(-np.expm1(np.minimum(log_ndtr(lo) - upper, 0.0)))
        width, middle = hi - lo, 0.5 * (hi + lo)
        thin = -0.5 * (middle * middle + _LOG_2PI) + np.log(width)
        log_p: FloatArray = np.where(width * (1.0 + np.abs(middle)) < _THIN, thin, wide)
    return log_p
