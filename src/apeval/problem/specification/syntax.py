"""The formulas of the language, as a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from apeval.errors import SimulationError
from apeval.problem.types import Array, FloatArray

Values: TypeAlias = Mapping[str, Array]
"""Signals by name, arrays of one shape."""
TINY = float(np.nextafter(0.0, 1.0))
_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


@dataclass(frozen=True)
class Number:
    """A number in the text."""

    value: float

    def of(self, values: Values) -> Array:
        return np.float64(self.value)  # type: ignore[return-value]


@dataclass(frozen=True)
class Signal:
    """A named signal."""

    name: str

    def of(self, values: Values) -> Array:
        return values[self.name]


@dataclass(frozen=True)
class Arithmetic:
    """An operation on numbers: + − * / ^, abs, sqrt, min, max."""

    sign: str
    arguments: tuple[Term, ...]

    def of(self, values: Values) -> Array:
        given = [argument.of(values) for argument in self.arguments]
        result = _CALLS[self.sign](given[0]) if len(given) == 1 else given[0]
        for other in given[1:]:
            result = _CALLS[self.sign](result, other)
        return np.asarray(result)


_CALLS: dict[str, Callable[..., Array]] = {
    "+": np.add,
    "-": lambda *it: -it[0] if len(it) == 1 else it[0] - it[1],
    "*": np.multiply,
    "/": np.divide,
    "^": np.power,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "min": np.minimum,
    "max": np.maximum,
}
Term: TypeAlias = Number | Signal | Arithmetic


@dataclass(frozen=True)
class Predicate:
    """left < right and its like; with `switch`, a signal that is true or false."""

    sign: str
    left: Term
    right: Term
    text: str
    """As it was written."""
    switch: bool = False

    def robustness(self, values: Values) -> FloatArray:
        """How far the comparison is from changing its truth: positive where it holds, negative
        where not, and never 0. Where both sides are equal it is the smallest number there is."""
        with np.errstate(all="ignore"):  # what is no number is refused below
            left, right = np.broadcast_arrays(self.left.of(values), self.right.of(values))
            far = left.astype(np.float64) - right
        if np.isnan(far).any():
            raise SimulationError(
                f"'{self.text}' in the specification is not a number for some state: a signal is "
                "NaN, or arithmetic has no answer (0/0, the root of a negative number)"
            )
        if self.switch and not np.isin(left, (0.0, 1.0)).all():
            raise SimulationError(
                f"'{self.text}' stands alone in the specification, so it must be true or false; "
                f"it was {left[~np.isin(left, (0.0, 1.0))].ravel()[0]:g}. Compare it, such as "
                f"{self.text} > 0"
            )
        if self.sign in ("==", "!="):
            equal = TINY if self.sign == "==" else -TINY
            far = -np.abs(far) if self.sign == "==" else np.abs(far)
        else:
            equal = TINY if self.sign in ("<=", ">=") else -TINY
            far = far if self.sign in (">", ">=") else -far
        return np.where(far == 0.0, equal, far)

    def negated(self) -> Predicate:
        """The comparison that holds exactly where this one does not."""
        return Predicate(_NEGATED[self.sign], self.left, self.right, self.text, self.switch)


@dataclass(frozen=True)
class BooleanConstant:
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True)
class Not:
    """The negation."""

    part: Formula


@dataclass(frozen=True)
class Every:
    """and."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Some:
    """or; `a implies b` is `not a or b`."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Always:
    """At all of the moments `low` … `high` steps from now; `high` is None without an end."""

    low: int
    high: int | None
    part: Formula


@dataclass(frozen=True)
class Eventually:
    """At one at least of the moments `low` … `high` steps from now."""

    low: int
    high: int | None
    part: Formula


@dataclass(frozen=True)
class Until:
    """`right` at one of the moments `low` … `high` steps from now, and `left` from now on at every
    moment before that one."""

    low: int
    high: int | None
    left: Formula
    right: Formula


Formula: TypeAlias = Predicate | BooleanConstant | Not | Every | Some | Always | Eventually | Until
