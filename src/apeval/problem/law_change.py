"""A nominal law changed by a few words: `std*1.2`, `mean+0.1`, `probabilities[1]*3`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from apeval.errors import ApevalError, unknown
from apeval.problem.laws import Law
from apeval.problem.types import FloatArray

_FORM = re.compile(
    r"(?P<initial>initial\.)?(?P<field>[A-Za-z_]\w*)(\[(?P<index>\d+)\])?"
    r"(?P<sign>[=*/+-])=?(?P<number>[^%]+)(?P<percent>%)?"
)
_HOW = "write std*1.2, std+20%, mean+0.1, std=0.6 or probabilities[1]*3"


@dataclass(frozen=True)
class LawChange:
    """One parameter of the nominal law, of one component or of all, set or shifted or scaled."""

    text: str
    field: str
    sign: str
    number: float
    index: int | None = None
    """Component from 1, as reports count them; outcome from 0, as they are coded."""
    initial: bool = False
    """Of the controlled initial state instead."""

    def __call__(self, law: Law) -> Law:
        """The changed law.

        >>> from apeval.problem.laws import Normal
        >>> law = Normal(0.0, [0.5, 0.5]).given(None, None)
        >>> parse_change("std[2]*1.2")(law).std.tolist()
        [[0.5, 0.6]]
        """
        known = law.parameters()
        if self.field not in known:
            raise unknown("parameter of the nominal law", self.field, known)
        try:
            return law.changed(self.field, self._moved, self.index)
        except ApevalError as error:
            raise ApevalError(f"{self.text}: {error}") from None

    def number_from(self, value: float) -> float:
        """What becomes of a single number."""
        return float(self._moved(np.array([value]))[0])

    def _moved(self, value: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # the law looks
            moved = {
                "=": np.full_like(value, self.number),
                "*": value * self.number,
                "/": value / self.number if self.number else np.full_like(value, np.inf),
                "+": value + self.number,
                "-": value - self.number,
            }[self.sign]
        return np.asarray(moved)


def parse_change(text: str) -> LawChange:
    """What the user typed.

    >>> parse_change("std+20%").number
    1.2
    """
    match = _FORM.fullmatch(text.replace(" ", "").replace("×", "*"))
    number = _number(match["number"]) if match else None
    if match is None or number is None:
        raise ApevalError(f"cannot read the change '{text}': {_HOW}")
    sign = match["sign"]
    if match["percent"]:
        if sign not in "+-":
            raise ApevalError(f"cannot read the change '{text}': per cent go with + or −; {_HOW}")
        number, sign = 1.0 + (number if sign == "+" else -number) / 100.0, "*"
    index = None if match["index"] is None else int(match["index"])
    return LawChange(text, match["field"], sign, number, index, match["initial"] is not None)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def changed(law: Law, changes: tuple[LawChange, ...], initial: bool = False) -> Law:
    """The law after all changes that concern it."""
    for change in changes:
        if change.initial == initial:
            law = change(law)
    return law
