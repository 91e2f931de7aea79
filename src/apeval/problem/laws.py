"""The nominal disturbance π_E,gt: exact sampling and exact density.

A `Disturbance` says how nature acts in the environment of interest. Asked for a batch of
situations it gives a `Law`, the conditional distribution π_E,gt(· | s, a_A) row by row.
Sampling is by inverse CDF from given uniforms, so that an episode's disturbances are a
function of its own stream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from apeval.errors import ProblemError
from apeval.problem.own import with_own_array
from apeval.problem.types import Array, FloatArray

Parameter = float | Sequence[float] | FloatArray | Callable[[Any, Any], FloatArray]
_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
_UNDERFLOW = 1e-280  # a box beyond 36 std: its probabilities only exist as logarithms
LawT = TypeVar("LawT", bound="Law")


@dataclass(frozen=True)
class Law(ABC):
    """A batch of conditional distributions; every field is an array of 1 or n rows.

    Arrays that `sample` and `log_prob` of your own law get are copies of their own, which they may
    change in place.
    """

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if not cls.__module__.startswith("apeval."):
            for name in {"sample", "log_prob"} & vars(cls).keys():
                setattr(cls, name, with_own_array(vars(cls)[name]))

    @abstractmethod
    def sample(self, u: FloatArray) -> Array:
        """Map uniforms (n, d) to disturbances (n, d)."""

    @abstractmethod
    def log_prob(self, a: Array) -> FloatArray:
        """log π(a) row by row, shape (n,)."""

    def take(self: LawT, rows: Any) -> LawT:
        """The chosen rows."""
        return type(self)(*[_take(getattr(self, f.name), rows) for f in fields(self)])

    @staticmethod
    def stack(laws: Sequence[LawT], rows: Sequence[int]) -> LawT:
        """Laws of several batches one below the other (`rows`: how many rows each has)."""
        first = laws[0]
        parts = [[getattr(law, f.name) for law in laws] for f in fields(first)]
        return type(first)(*[_stack(arrays, rows) for arrays in parts])


def _take(values: FloatArray, rows: Any) -> FloatArray:
    return values if len(values) == 1 else np.ascontiguousarray(values[rows])


def _stack(arrays: list[FloatArray], rows: Sequence[int]) -> FloatArray:
    if all(len(a) == 1 and np.array_equal(a, arrays[0]) for a in arrays):
        return arrays[0]
    return np.concatenate(
        [np.repeat(a, n, axis=0) if len(a) == 1 else a for a, n in zip(arrays, rows, strict=True)]
    )


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
        terms: FloatArray = -0.5 * z * z - np.log(self.std) - _LOG_SQRT_2PI
        return _sum_columns(terms)


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
        low, high = (self.low - self.mean) / self.std, (self.high - self.mean) / self.std
        mirror = low > 0.0
        return np.where(mirror, -high, low), np.where(mirror, -low, high), mirror

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
        terms = -0.5 * z * z - np.log(self.std) - _LOG_SQRT_2PI - log_mass
        return _sum_columns(np.where(inside, terms, -np.inf))


@dataclass(frozen=True)
class CategoricalLaw(Law):
    """K outcomes, coded 0 … K−1 in an integer column."""

    probabilities: FloatArray

    def sample(self, u: FloatArray) -> Array:
        return pick(self.probabilities, u)

    def log_prob(self, a: Array) -> FloatArray:
        k = np.asarray(a).reshape(-1).astype(np.int64)
        p = np.broadcast_to(self.probabilities, (len(k), self.probabilities.shape[1]))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_p: FloatArray = np.log(p[np.arange(len(k)), k])
        return log_p


def pick(probabilities: FloatArray, u: FloatArray) -> Array:
    """The first outcome whose cumulated probability exceeds u, shape (n, 1).

    >>> pick(np.array([[0.2, 0.3, 0.5]]), np.array([[0.1], [0.2], [0.9]])).ravel().tolist()
    [0, 1, 2]
    """
    cumulated = np.cumsum(probabilities, axis=1)
    # dividing by the last entry keeps the last outcome reachable when the sum rounds below 1
    passed = u[:, :1] * cumulated[:, -1:] >= cumulated[:, :-1]
    return np.asarray(passed.sum(axis=1), np.int64)[:, None]


def _sum_columns(terms: FloatArray) -> FloatArray:
    """Row sums in a fixed order, so that a row's sum never depends on the batch around it."""
    total: FloatArray = terms[:, 0].copy()
    for j in range(1, terms.shape[1]):
        total += terms[:, j]
    return total


class Disturbance(ABC):
    """π_E,gt: for a batch of simulator states and agent actions, the law of nature's action."""

    dim: int  #: columns of a disturbance (d_E)
    discrete: ClassVar[bool] = False

    @abstractmethod
    def given(self, x: Any, a_A: Any) -> Law:
        """The law at each of n situations. `x` is the simulator's state, `a_A` the agent's
        action at the decision's start."""


def _rows(value: Parameter, x: Any, a_A: Any, dim: int) -> FloatArray:
    if callable(value):
        rows = np.array(value(x, a_A), dtype=np.float64)  # a copy: f_E may change x in place
        return rows[:, None] if rows.ndim == 1 else rows
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (1, dim)).copy()


def _kept(value: Parameter) -> Parameter:
    """A parameter that later changes of the caller's array do not reach."""
    return value if callable(value) else np.array(value, np.float64) if np.ndim(value) else value


def _width(*values: Parameter) -> int:
    return max(np.size(np.asarray(v)) for v in values if not callable(v))


def _check_normal(name: str, mean: Parameter, std: Parameter) -> None:
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

    def __init__(self, mean: Parameter = 0.0, std: Parameter = 1.0, dim: int | None = None):
        _check_normal("Normal", mean, std)
        self.mean, self.std = _kept(mean), _kept(std)
        self.dim = dim or _width(mean, std, 0.0)

    def given(self, x: Any, a_A: Any) -> NormalLaw:
        return NormalLaw(_rows(self.mean, x, a_A, self.dim), _rows(self.std, x, a_A, self.dim))


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

    def __init__(
        self,
        mean: Parameter,
        std: Parameter,
        low: Parameter,
        high: Parameter,
        dim: int | None = None,
    ):
        _check_normal("TruncatedNormal", mean, std)
        fixed_box = not callable(low) and not callable(high)
        if fixed_box and not np.all(np.asarray(low) < np.asarray(high)):
            raise ProblemError("TruncatedNormal: low must be below high in every component")
        self.mean, self.std = _kept(mean), _kept(std)
        self.low, self.high = _kept(low), _kept(high)
        self.dim = dim or _width(mean, std, low, high, 0.0)

    def given(self, x: Any, a_A: Any) -> TruncatedNormalLaw:
        values = (self.mean, self.std, self.low, self.high)
        return TruncatedNormalLaw(*[_rows(v, x, a_A, self.dim) for v in values])


class Categorical(Disturbance):
    """One of K outcomes, coded 0 … K−1 in one integer column.

    Args:
        probabilities: K numbers ≥ 0 that sum to 1, or a function of (x, a_A) that returns (n, K).
        outcomes: The number of outcomes K, where `probabilities` is a function.

    Raises:
        ProblemError: The probabilities are none, or `outcomes` is missing.
    """

    dim = 1
    discrete = True

    def __init__(self, probabilities: Parameter, outcomes: int | None = None):
        if callable(probabilities) and not outcomes:
            raise ProblemError("Categorical: say how many outcomes= the function gives")
        self.probabilities = _kept(probabilities)
        self.outcomes = outcomes or _width(probabilities)
        if not callable(probabilities):
            p = np.asarray(probabilities, dtype=np.float64)
            if not (np.all(p >= 0.0) and abs(float(p.sum()) - 1.0) <= 1e-9):
                raise ProblemError(
                    "Categorical: probabilities must be ≥ 0 and sum to 1; "
                    f"they sum to {float(p.sum()):.6g}. Divide them by their sum."
                )

    def given(self, x: Any, a_A: Any) -> CategoricalLaw:
        return CategoricalLaw(_rows(self.probabilities, x, a_A, self.outcomes))
