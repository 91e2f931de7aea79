"""A nominal law changed by a few words: `std*1.2`, `mean+0.1`, `probabilities[1]*3`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields, replace

import numpy as np

from apeval.errors import ApevalError, unknown
from apeval.problem.laws import CategoricalLaw, Law
from apeval.problem.types import FloatArray

_FORM = re.compile(
    r"(?P<initial>initial\.)?(?P<field>[A-Za-z_]\w*)(\[(?P<index>\d+)\])?"
    r"(?P<sign>[=*/+-])=?(?P<number>[^%]+)(?P<percent>%)?"
)
_HOW = "write std*1.2, std+20%, mean+0.1, std=0.6 or probabilities[1]*3"
_SHARES = "probabilities"
_SITUATIONS = 500
_SMALLEST, _LARGEST = 1e-70, 1e70  # beyond, squares of standardised values overflow


@dataclass(frozen=True)
class Change:
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
        known = [f.name for f in fields(law)]
        if self.field not in known:
            raise unknown("parameter of the nominal law", self.field, known)
        value: FloatArray = np.asarray(getattr(law, self.field), np.float64)
        changed = self._outcome(value) if self.field == _SHARES else self._component(value)
        after = replace(law, **{self.field: changed})
        self._check(after)
        return after

    def number_from(self, value: float) -> float:
        """What becomes of a single number."""
        return float(self._moved(np.array([value]))[0])

    def _component(self, value: FloatArray) -> FloatArray:
        if self.index is None:
            return self._moved(value)
        d = value.shape[1]
        if not 1 <= self.index <= d:
            raise ApevalError(f"{self.text}: the law has components 1 … {d}, no {self.index}")
        after = value.copy()
        after[:, self.index - 1] = self._moved(value[:, self.index - 1])
        return after

    def _outcome(self, p: FloatArray) -> FloatArray:
        """One outcome's probability; the others keep their proportions."""
        K = p.shape[1]
        if self.index is None or self.index >= K:
            raise ApevalError(
                f"{self.text}: say which outcome, from probabilities[0] to probabilities[{K - 1}]; "
                "the others keep their proportions"
            )
        k = self.index
        wanted = self._moved(p[:, k])
        rest = 1.0 - p[:, k]
        if np.any(wanted < 0.0) or np.any(wanted > 1.0) or np.any((rest <= 0.0) & (wanted < 1.0)):
            raise ApevalError(f"{self.text}: a probability would leave [0, 1]")
        scale = np.divide(1.0 - wanted, rest, out=np.ones_like(rest), where=rest > 0.0)
        after = p * scale[:, None]
        after[:, k] = wanted
        return after

    def _moved(self, value: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # `_check` looks
            moved = {
                "=": np.full_like(value, self.number),
                "*": value * self.number,
                "/": value / self.number if self.number else np.full_like(value, np.inf),
                "+": value + self.number,
                "-": value - self.number,
            }[self.sign]
        return np.asarray(moved)

    def _check(self, law: Law) -> None:
        after = np.asarray(getattr(law, self.field))
        endless = self.field in ("low", "high")  # a box may be open to one side
        if np.isnan(after).any() or not (endless or np.isfinite(after).all()):
            raise ApevalError(f"{self.text}: a parameter would not be finite")
        std, low, high = (getattr(law, k, None) for k in ("std", "low", "high"))
        if std is not None and not np.all(std > 0.0):
            raise ApevalError(f"{self.text}: every std must stay positive")
        if low is not None and high is not None and not np.all(low < high):
            raise ApevalError(f"{self.text}: low must stay below high")
        finite = np.abs(after[np.isfinite(after)])
        tiny = self.field == "std" and np.any(finite < _SMALLEST)
        if np.any(finite > _LARGEST) or tiny:
            raise ApevalError(
                f"{self.text}: a parameter would leave the range in which densities can be "
                f"computed ({_SMALLEST:g} … {_LARGEST:g})"
            )


def parse_change(text: str) -> Change:
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
    return Change(text, match["field"], sign, number, index, match["initial"] is not None)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def changed(law: Law, changes: tuple[Change, ...], initial: bool = False) -> Law:
    """The law after all changes that concern it."""
    for change in changes:
        if change.initial == initial:
            law = change(law)
    return law


def beyond(new: Law, old: Law, dim: int) -> bool:
    """Whether the new law reaches where the old one never goes: then no episode drawn before can
    speak for it. Looked for at outcomes, and at quantiles far into both tails."""
    if isinstance(new, CategoricalLaw) and isinstance(old, CategoricalLaw):
        return bool(np.any((new.probabilities > 0.0) & (old.probabilities <= 0.0)))
    new, old, rows = _few(new, old)
    tails = np.array([1e-12, 1e-6, 1e-3, 0.5])
    for u in np.concatenate([tails, 1.0 - tails]):
        if not np.isfinite(old.log_prob(new.sample(np.full((rows, dim), u)))).all():
            return True
    return False


def widening(new: Law, old: Law) -> FloatArray:
    """log E_p[(p'/p)²] of what is wider in the new law than in the old, row by row (1 or n rows).

    A Gaussian made c > 1 times as wide adds −log(c²·√(2/c² − 1)) per component, infinite from √2
    on: e to this sum, over an episode's decisions, is how many old episodes are worth one new one
    where nothing else speaks for the wide part. 0 for laws without a `std`.

    >>> from apeval.problem.laws import Normal
    >>> old, new = (Normal(0.0, std).given(None, None) for std in (1.0, 1.2))
    >>> widening(new, old).round(3).tolist()
    [0.108]
    """
    before, after = getattr(old, "std", None), getattr(new, "std", None)
    if before is None or after is None:
        return np.zeros(1)
    with np.errstate(divide="ignore", over="ignore"):
        c2 = np.clip(np.asarray(after) / np.asarray(before), 1.0, 2.0) ** 2  # from √2 on infinite
        each = -np.log(c2) - 0.5 * np.log(np.maximum(2.0 / c2 - 1.0, 0.0))
    rows: FloatArray = each.sum(axis=1)
    return rows


def _few(new: Law, old: Law) -> tuple[Law, Law, int]:
    """Some of the situations, evenly spread: tails are alike in most of them."""
    rows = max(len(getattr(law, f.name)) for law in (new, old) for f in fields(law))
    chosen = np.arange(0, rows, max(1, rows // _SITUATIONS))
    return new.take(chosen), old.take(chosen), len(chosen)
