"""What every nominal disturbance offers: the interface of `Law` and `Disturbance`.

A `Disturbance` says how nature acts in the environment of interest. Asked for a batch of
situations it gives a `Law`, the conditional distribution π_E,gt(· | s, a_A) row by row.
Sampling is by inverse CDF from given uniforms, so that an episode's disturbances are a
function of its own stream.

A new law is one file with a subclass of each. `sample` and `log_prob` are enough for Monte Carlo,
`check`, the run folder and `reweight`; with `learnable` and the methods it promises, every method
learns another distribution in its place. No other code asks which law it has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from apeval.errors import ApevalError
from apeval.plugins import is_ours
from apeval.problem.argument_copies import with_own_array
from apeval.problem.laws.law_parameters import (
    BY_STATE,
    moved_columns,
    moved_outcome,
)
from apeval.problem.types import Array, FloatArray

LawT = TypeVar("LawT", bound="Law")
_SMALLEST, _LARGEST = 1e-70, 1e70  # beyond, squares of standardised values overflow
_SITUATIONS = 500  # of which tails are looked at
_DRAWS = 128  # for moments that have no formula
_MOST = 1_000  # numbers of one parameter that a description keeps


@dataclass(frozen=True)
class Law(ABC):
    """A batch of conditional distributions π_E,gt(· | s, a_A).

    Every field is an array whose first axis has 1 row (the same in every situation) or n. Fields
    are what a run folder stores, and what `reweight` changes by name. Arrays that `sample` and
    `log_prob` of your own law get are copies of their own, which they may change in place.
    """

    discrete: ClassVar[bool] = False
    """Whether it has outcomes, coded 0 … K−1, instead of a density."""
    positive_parameters: ClassVar[tuple[str, ...]] = ("std",)
    """Parameters that must be positive, where it has them."""
    support_ends: ClassVar[tuple[str, str]] = ("low", "high")
    """Parameters that bound the support, where it has them; they may be infinite."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if not is_ours(cls.__module__):
            for name in {"sample", "log_prob"} & vars(cls).keys():
                setattr(cls, name, with_own_array(vars(cls)[name]))

    @abstractmethod
    def sample(self, u: FloatArray) -> Array:
        """Inverse CDF, component by component.

        Args:
            u: Uniforms in the open unit interval, (n, d).

        Returns:
            Disturbances, (n, d).
        """

    @abstractmethod
    def log_prob(self, a: Array) -> FloatArray:
        """The exact log-density, or log-probability of outcomes.

        Args:
            a: Disturbances, (n, d).

        Returns:
            log π(a) row by row, (n,); −∞ outside the support.
        """

    def take(self: LawT, rows: Any) -> LawT:
        """The chosen rows.

        Args:
            rows: Row numbers, a mask or a slice.

        Returns:
            The law of these rows; one row for all stays as it is.
        """
        return type(self)(*[_take(getattr(self, f.name), rows) for f in fields(self)])

    @staticmethod
    def stack(laws: Sequence[LawT], rows: Sequence[int]) -> LawT:
        """Laws of several batches one below the other (`rows`: how many rows each has).

        Args:
            laws: One per batch.
            rows: How many rows each batch has.

        Returns:
            One law with all rows.
        """
        first = laws[0]
        parts = [[getattr(law, f.name) for law in laws] for f in fields(first)]
        return type(first)(*[_stack(arrays, rows) for arrays in parts])

    def components(self) -> int:
        """Columns d of a disturbance, where every component has its parameters."""
        return max(int(np.shape(getattr(self, f.name))[1]) for f in fields(self))

    def to_z(self, a: Array) -> FloatArray:
        """Whitened disturbances z = Φ⁻¹(F(a)) per component, N(0, I) under this law.

        Args:
            a: Disturbances, (n, d). At the end of a bounded support, where z would be infinite,
                it is that of the next double inside.

        Returns:
            z, (n, d), finite.
        """
        raise TypeError(f"no whitening for a {type(self).__name__}")

    def to_action(self, z: FloatArray) -> FloatArray:
        """The inverse of `to_z`: a = F⁻¹(Φ(z)), (n, d), never outside the support.

        Args:
            z: Whitened disturbances, (n, d).

        Returns:
            Disturbances, (n, d).
        """
        raise TypeError(f"no whitening for a {type(self).__name__}")

    def gaussian(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None:
        """Mean, std, low and high, each (1 or n, d), where every component is a Gaussian that may
        be conditioned on a box; None for other laws."""
        return None

    def outcome_probabilities(self) -> FloatArray:
        """Probabilities of all outcomes of a discrete law, (1 or n, K): its field `probabilities`,
        unless it says otherwise."""
        p: FloatArray | None = getattr(self, "probabilities", None)
        if p is None:
            raise TypeError(f"a {type(self).__name__} does not list its outcomes")
        return p

    def moments(self, n: int, d: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each component, for pictures.

        Args:
            n: Rows.
            d: Components.
            seed: Of the draws that they are taken from where there is no formula; the draws are
                spread evenly over the quantiles.

        Returns:
            Two arrays (n, d).
        """
        rng = np.random.default_rng(seed)
        strata = rng.permuted(np.tile(np.arange(_DRAWS), (n, d, 1)), axis=2)
        u = ((strata + 0.5) / _DRAWS).transpose(0, 2, 1).reshape(n * _DRAWS, d)
        often = self.take(np.repeat(np.arange(n), _DRAWS))
        a = np.asarray(often.sample(u), np.float64).reshape(n, _DRAWS, -1)
        return a.mean(axis=1), a.std(axis=1)

    def parameters(self) -> list[str]:
        """Names of the parameters that `changed` takes."""
        return [f.name for f in fields(self)]

    def changed(
        self: LawT, name: str, move: Callable[[FloatArray], FloatArray], index: int | None = None
    ) -> LawT:
        """The law with one parameter changed, of one component or of all.

        Args:
            name: One of `parameters`.
            move: Old values to new ones.
            index: Component, from 1; None: all. Of a parameter `probabilities` an outcome's code:
                the other outcomes keep their proportions.

        Returns:
            The changed law.

        Raises:
            ApevalError: There is no such component, or the new values make no density.
        """
        value: FloatArray = np.asarray(getattr(self, name), np.float64)
        moved = moved_outcome if name == "probabilities" else moved_columns
        after = replace(self, **{name: moved(value, move, index)})
        after.check_parameter(name)
        return after

    def check_parameter(self, name: str) -> None:
        """Refuse a changed parameter that makes no density, or one beyond computing.

        Args:
            name: The parameter that was changed.

        Raises:
            ApevalError: Its new value makes no law.
        """
        after = np.asarray(getattr(self, name))
        if np.isnan(after).any() or not (name in self.support_ends or np.isfinite(after).all()):
            raise ApevalError("a parameter would not be finite")
        for it in self.positive_parameters:
            value = getattr(self, it, None)
            if value is not None and not np.all(value > 0.0):
                raise ApevalError(f"every {it} must stay positive")
        low, high = (getattr(self, it, None) for it in self.support_ends)
        if low is not None and high is not None and not np.all(low < high):
            raise ApevalError("low must stay below high")
        finite = np.abs(after[np.isfinite(after)])
        tiny = name in self.positive_parameters and np.any(finite < _SMALLEST)
        if np.any(finite > _LARGEST) or tiny:
            raise ApevalError(
                "a parameter would leave the range in which densities can be "
                f"computed ({_SMALLEST:g} … {_LARGEST:g})"
            )

    def reaches_beyond(self, old: Law, dim: int) -> bool:
        """Whether this law reaches where `old` never goes: then no episode drawn before can speak
        for it. Looked for at quantiles far into both tails, in some of the situations.

        Args:
            old: The law that the episodes were drawn under.
            dim: Components of the disturbance.

        Returns:
            True where some of this law's outcomes have density zero under `old`.
        """
        rows = max(len(getattr(law, f.name)) for law in (self, old) for f in fields(law))
        chosen = np.arange(0, rows, max(1, rows // _SITUATIONS))
        new, before = self.take(chosen), old.take(chosen)
        tails = np.array([1e-12, 1e-6, 1e-3, 0.5])
        for u in np.concatenate([tails, 1.0 - tails]):
            a = new.sample(np.full((len(chosen), dim), u))
            if not np.isfinite(before.log_prob(a)).all():
                return True
        return False

    def widening(self, old: Law) -> FloatArray:
        """log E_p[(p'/p)²] of what is wider in this law p' than in the old p.

        A Gaussian made c > 1 times as wide adds −log(c²·√(2/c² − 1)) per component, infinite from
        √2 on: e to this sum, over an episode's decisions, is how many old episodes are worth one
        new one where nothing else speaks for the wide part.

        Args:
            old: The law that it was made from.

        Returns:
            Row by row, (1,) or (n,). Here by the rule for Gaussians, for laws that have a `std`;
            0 for others.
        """
        before, after = getattr(old, "std", None), getattr(self, "std", None)
        if before is None or after is None:
            return np.zeros(1)
        with np.errstate(divide="ignore", over="ignore"):
            c2 = np.clip(np.asarray(after) / np.asarray(before), 1.0, 2.0) ** 2  # from √2 infinite
            each = -np.log(c2) - 0.5 * np.log(np.maximum(2.0 / c2 - 1.0, 0.0))
        rows: FloatArray = each.sum(axis=1)
        return rows


class Disturbance(ABC):
    """π_E,gt: for a batch of simulator states and agent actions, the law of nature's action.

    Public attributes that a subclass sets are its parameters: what a run folder describes, and
    what two runs are compared by.
    """

    dim: int  #: columns of a disturbance (d_E)
    discrete: bool = False
    """Whether its laws have outcomes."""
    learnable: bool = False
    """Whether a method can learn another distribution in its place: its laws have `to_z` and
    `to_action`, or, where discrete, `outcome_probabilities`. Else only `mc` applies."""
    outcomes: int | None = None
    """How many outcomes a discrete one has, where that is fixed."""

    @abstractmethod
    def given(self, x: Any, a_A: Any) -> Law:
        """The law at each of n situations.

        Args:
            x: The simulator's state, n rows; None at a controlled start.
            a_A: The agent's action at the decision's start, (n, d_A).

        Returns:
            A law of n rows, or of one where all situations are alike.
        """

    def in_words(self) -> str:
        """The disturbance as a report says it."""
        return f"{type(self).__name__}, {self._size()}"

    def describe(self) -> dict[str, Any]:
        """Plain data: class, width, constant parameters, and the same in words.

        Returns:
            What a run folder says of the disturbance, and what two runs compare. A parameter that
            is a function of the state is named as such: what it does is told by the reference
            decisions.
        """
        public = {k: v for k, v in vars(self).items() if not k.startswith("_") and k != "dim"}
        return {
            "class": type(self).__qualname__,
            "dim": int(self.dim),
            **{name: _described(value) for name, value in sorted(public.items())},
            "words": self.in_words(),
        }

    def _size(self) -> str:
        return f"{self.dim} component{'s' if self.dim > 1 else ''}"


def _described(value: Any) -> Any:
    if isinstance(value, Disturbance):
        return value.describe()
    if callable(value):
        return BY_STATE
    if isinstance(value, list | tuple) and any(isinstance(v, Disturbance) for v in value):
        return [_described(v) for v in value]
    try:
        numbers = np.asarray(value, np.float64).ravel()[:_MOST]
    except (TypeError, ValueError):
        return type(value).__name__
    return [float(v) if np.isfinite(v) else str(v) for v in numbers]


def _take(values: FloatArray, rows: Any) -> FloatArray:
    return values if len(values) == 1 else np.ascontiguousarray(values[rows])


def _stack(arrays: list[FloatArray], rows: Sequence[int]) -> FloatArray:
    if all(len(a) == 1 and _same(a, arrays[0]) for a in arrays):
        return arrays[0]
    return np.concatenate(
        [np.repeat(a, n, axis=0) if len(a) == 1 else a for a, n in zip(arrays, rows, strict=True)]
    )


def _same(one: FloatArray, two: FloatArray) -> bool:
    """Whether arrays are equal; most are, bit for bit, which is told in a tenth of the time."""
    alike = one.shape == two.shape and one.dtype == two.dtype
    return (alike and one.tobytes() == two.tobytes()) or bool(np.array_equal(one, two))
