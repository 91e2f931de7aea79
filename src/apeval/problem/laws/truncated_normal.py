"""Gaussian components conditioned on a box.

Probabilities are computed in the tail in which the box lies, and in logarithms: exact to rounding
far beyond the mean, and for whitened values of 37 and beyond, as far as the doubles between the
box and a reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from apeval.errors import ProblemError
from apeval.problem.laws.base import Disturbance, Law
from apeval.problem.laws.law_parameters import (
    Parameter,
    common_width,
    kept_parameter,
    parameter_in_words,
    parameter_rows,
    sum_columns,
)
from apeval.problem.laws.normal import LOG_SQRT_2PI, check_gaussian
from apeval.problem.types import Array, FloatArray

_UNDERFLOW = 1e-280  # a box beyond 36 std: its probabilities only exist as logarithms
_THIN = 1e-5  # a slice over which the density is constant, and a difference of CDFs is rounding


@dataclass(frozen=True)
class TruncatedNormalLaw(Law):
    """Independent Gaussians conditioned on the box [low, high]; never clipped."""

    mean: FloatArray
    std: FloatArray
    low: FloatArray
    high: FloatArray

    def _bounds(self) -> tuple[FloatArray, FloatArray, Array]:
        """Standardised bounds, mirrored where the box lies above the mean: the CDF is
        accurate in its lower tail only."""
        low, high = self._standardised()
        mirror = low > 0.0
        return np.where(mirror, -high, low), np.where(mirror, -low, high), mirror

    def _standardised(self) -> tuple[FloatArray, FloatArray]:
        return (self.low - self.mean) / self.std, (self.high - self.mean) / self.std

    def sample(self, u: FloatArray) -> FloatArray:
        low, high, mirror = self._bounds()
        v = np.where(mirror, 1.0 - u, u)
        p_low, p_high = ndtr(low), ndtr(high)
        z = ndtri(p_low + v * (p_high - p_low))
        far = p_high < _UNDERFLOW
        if np.any(far):
            log_high = log_ndtr(high)
            log_p = log_high + np.log(v + (1.0 - v) * np.exp(log_ndtr(low) - log_high))
            z = np.where(far, ndtri_exp(log_p), z)
        z = np.clip(z, low, high)  # rounding only
        a: FloatArray = self.mean + self.std * np.where(mirror, -z, z)
        # mean + std·z may round one ulp outside the box, where the density is 0
        return np.clip(a, self.low, self.high)

    def log_prob(self, a: Array) -> FloatArray:
        low, high, _ = self._bounds()
        upper = log_ndtr(high)
        log_mass = upper + np.log1p(-np.exp(log_ndtr(low) - upper))
        z = (a - self.mean) / self.std
        inside = (a >= self.low) & (a <= self.high)
        terms = -0.5 * z * z - np.log(self.std) - LOG_SQRT_2PI - log_mass
        return sum_columns(np.where(inside, terms, -np.inf))

    def to_z(self, a: Array) -> FloatArray:
        low, high = self._standardised()
        inner = np.nextafter(low, np.inf), np.nextafter(high, -np.inf)
        x = np.clip((a - self.mean) / self.std, *inner)
        below, above = _log_mass(low, x), _log_mass(x, high)
        upper = above < below  # the nearer tail
        log_mass = np.logaddexp(below, above)
        tail: FloatArray = ndtri_exp(np.minimum(np.where(upper, above, below) - log_mass, 0.0))
        return np.where(upper, -tail, tail)

    def to_action(self, z: FloatArray) -> FloatArray:
        low, high = self._standardised()
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
        a = self.mean + self.std * np.clip(x, low, high)
        return np.clip(a, self.low, self.high)

    def gaussian(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        return self.mean, self.std, self.low, self.high


def _log_mass(low: FloatArray, high: FloatArray) -> FloatArray:
    """log(Φ(high) − Φ(low)), from the tail in which the interval lies, and for slices as thin as
    rounding."""
    mirror = low > 0.0
    lo, hi = np.where(mirror, -high, low), np.where(mirror, -low, high)
    upper = log_ndtr(hi)
    with np.errstate(divide="ignore", invalid="ignore"):  # an open side is infinite
        wide = upper + np.log(-np.expm1(np.minimum(log_ndtr(lo) - upper, 0.0)))
        width, middle = hi - lo, 0.5 * (hi + lo)
        thin = -0.5 * middle * middle - LOG_SQRT_2PI + np.log(width)
        log_p: FloatArray = np.where(width * (1.0 + np.abs(middle)) < _THIN, thin, wide)
    return log_p


class TruncatedNormal(Disturbance):
    """Gaussian components conditioned on a box; values are never clipped to it.

    Every parameter is a number for all components, d_E numbers, or a function of (x, a_A) that
    returns (n, d_E).

    Args:
        mean: Of the Gaussian before it is conditioned.
        std: Its standard deviation.
        low: The lower bounds of the box.
        high: The upper bounds of the box.
        dim: The number of components d_E, where the parameters do not tell.

    Raises:
        ProblemError: A standard deviation is not positive and finite, a mean not finite, or `low`
            not below `high`.
    """

    learnable = True

    def __init__(
        self,
        mean: Parameter,
        std: Parameter,
        low: Parameter,
        high: Parameter,
        dim: int | None = None,
    ):
        check_gaussian("TruncatedNormal", mean, std)
        fixed_box = not callable(low) and not callable(high)
        if fixed_box and not np.all(np.asarray(low) < np.asarray(high)):
            raise ProblemError("TruncatedNormal: low must be below high in every component")
        self.mean, self.std = kept_parameter(mean), kept_parameter(std)
        self.low, self.high = kept_parameter(low), kept_parameter(high)
        self.dim = dim or common_width(mean, std, low, high, 0.0)

    def given(self, x: Any, a_A: Any) -> TruncatedNormalLaw:
        values = (self.mean, self.std, self.low, self.high)
        return TruncatedNormalLaw(*[parameter_rows(v, x, a_A, self.dim) for v in values])

    def in_words(self) -> str:
        mean, std = parameter_in_words("mean", self.mean), parameter_in_words("σ", self.std)
        low, high = parameter_in_words("", self.low), parameter_in_words("", self.high)
        return f"Gaussian, {self._size()}, {mean}, {std}, cut at {low} and {high}"
