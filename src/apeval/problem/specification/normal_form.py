"""Formulas as the monitor takes them: negations in comparisons only, one shape for two duals.

Robust semantics gives `and` the minimum and `or` the maximum, `always` and `eventually` the same
over a window, so an operator and its dual differ in which of the two they use. `up` says so: True
for the maximum (or, eventually, until), False for the minimum (and, always, and the dual of until).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from apeval.problem.specification.syntax import (
    Always,
    BooleanConstant,
    Eventually,
    Every,
    Formula,
    Not,
    Predicate,
    Some,
)


@dataclass(frozen=True)
class ConstantForm:
    """True or false, whatever happens: ±∞."""

    value: float


@dataclass(frozen=True)
class JoinForm:
    """Two parts: their maximum or their minimum."""

    up: bool
    left: Normal
    right: Normal


@dataclass(frozen=True)
class WindowForm:
    """Maximum or minimum of a part over the moments `low` … `high` steps from now."""

    up: bool
    low: int
    high: int | None
    part: Normal


@dataclass(frozen=True)
class UntilForm:
    """`left` until `right`; with `up` False its dual, where minimum and maximum are exchanged."""

    up: bool
    low: int
    high: int | None
    left: Normal
    right: Normal


Normal: TypeAlias = Predicate | ConstantForm | JoinForm | WindowForm | UntilForm


def normal_form(it: Formula, negated: bool = False) -> Normal:
    """The formula, or its negation, with the same robustness.

    >>> from apeval.problem.specification.parser import parse
    >>> normal_form(parse("not always[0,5] gap > 2", ("gap",))).up
    True
    """
    if isinstance(it, Predicate):
        return it.negated() if negated else it
    if isinstance(it, BooleanConstant):
        return ConstantForm(np.inf if it.value != negated else -np.inf)
    if isinstance(it, Not):
        return normal_form(it.part, not negated)
    if isinstance(it, Every | Some):
        up = isinstance(it, Some) != negated
        return _joined(up, [normal_form(part, negated) for part in it.parts])
    if isinstance(it, Always | Eventually):
        up = isinstance(it, Eventually) != negated
        return WindowForm(up, it.low, it.high, normal_form(it.part, negated))
    left, right = normal_form(it.left, negated), normal_form(it.right, negated)
    return UntilForm(not negated, it.low, it.high, left, right)


def _joined(up: bool, parts: list[Normal]) -> Normal:
    """All of them, by halves: a long row of parts makes no deep tree."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return JoinForm(up, _joined(up, parts[:middle]), _joined(up, parts[middle:]))


def without_offset(it: WindowForm | UntilForm) -> Normal:
    """An operator without an end that begins later, by ones that begin now or have an end."""
    if it.high is not None or it.low == 0:
        return it
    if isinstance(it, WindowForm):
        return WindowForm(it.up, it.low, it.low, WindowForm(it.up, 0, None, it.part))
    later = WindowForm(it.up, it.low, it.low, UntilForm(it.up, 0, None, it.left, it.right))
    return JoinForm(not it.up, WindowForm(not it.up, 0, it.low - 1, it.left), later)
