"""Independent Gaussian components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

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
from apeval.problem.types import Array, FloatArray

LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True)
class NormalLaw(Law):
    """Independent Gaussians N(mean, std²) per component."""

    mean: FloatArray
    std: FloatArray

    def sample(self, u: FloatArray) -> FloatArray:
        a: FloatArray = self.mean + self.std * ndtri(u)
        return a

    def log_prob(self, a: Array) -> FloatArray:
        z = (a - self.mean) / self.std
        terms: FloatArray = -0.5 * z * z - np.log(self.std) - LOG_SQRT_2PI
        return sum_columns(terms)

    def to_z(self, a: Array) -> FloatArray:
        z: FloatArray = (a - self.mean) / self.std
        return z

    def to_action(self, z: FloatArray) -> FloatArray:
        a: FloatArray = self.mean + self.std * z
        return a

    def gaussian(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        low, high = np.full_like(self.mean, -np.inf), np.full_like(self.mean, np.inf)
        return self.mean, self.std, low, high

    def moments(self, n: int, d: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
        """Exact.

        >>> [m.tolist() for m in Normal(0.5, 2.0).given(np.zeros((1, 1)), None).moments(1, 1)]
        [[[0.5]], [[2.0]]]
        """
        return np.broadcast_to(self.mean, (n, d)), np.broadcast_to(self.std, (n, d))


def check_gaussian(name: str, mean: Parameter, std: Parameter) -> None:
    """Numbers that make a density; what is a function is looked at when it is called."""
    if not callable(std) and not np.all(np.isfinite(std) & (np.asarray(std) > 0.0)):
        raise ProblemError(f"{name}: every std must be positive and finite")
    if not callable(mean) and not np.all(np.isfinite(mean)):
        raise ProblemError(f"{name}: every mean must be finite")


class Normal(Disturbance):
    """Independent Gaussian components.

    Args:
        mean: A number for all components, d_E numbers, or a function of (x, a_A) that returns
            (n, d_E).
        std: The standard deviation, in the same forms.
        dim: The number of components d_E, where the parameters do not tell.

    Raises:
        ProblemError: A standard deviation is not positive and finite, or a mean not finite.

    Examples:
        >>> Normal(0.0, [0.5, 0.5]).dim
        2
    """

    learnable = True

    def __init__(self, mean: Parameter = 0.0, std: Parameter = 1.0, dim: int | None = None):
        check_gaussian("Normal", mean, std)
        self.mean, self.std = kept_parameter(mean), kept_parameter(std)
        self.dim = dim or common_width(mean, std, 0.0)

    def given(self, x: Any, a_A: Any) -> NormalLaw:
        values = (self.mean, self.std)
        return NormalLaw(*[parameter_rows(v, x, a_A, self.dim) for v in values])

    def in_words(self) -> str:
        mean, std = parameter_in_words("mean", self.mean), parameter_in_words("σ", self.std)
        return f"Gaussian, {self._size()}, {mean}, {std}"
