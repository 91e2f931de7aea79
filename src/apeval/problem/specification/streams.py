"""Formulas inside a temporal operator: their values moment by moment, late by what they look ahead.

A stream gives at time t its robustness at t − delay, as far as it hangs on what is known by then;
operators without an end leave unknowns in it (`promises`). Values for moments before the episode's
first are given too, and nobody looks at them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from apeval.errors import ProblemError
from apeval.problem.specification.normal_form import (
    ConstantForm,
    JoinForm,
    Normal,
    UntilForm,
    WindowForm,
    without_offset,
)
from apeval.problem.specification.promises import Unknowns, extended, put, unknown
from apeval.problem.specification.syntax import Predicate, Values
from apeval.problem.types import FloatArray, IntArray

_MOST_UNKNOWNS, _MOST_CELLS = 6, 100_000


@dataclass
class MonitorStep:
    """A moment being taken in."""

    memory: FloatArray
    """Changed in place, (n, width)."""
    time: IntArray
    values: Values
    progress: dict[int, FloatArray] = field(default_factory=dict)
    """What each unknown has become, as a value of its operator's unknowns."""
    of: dict[int, Unknowns] = field(default_factory=dict)


@dataclass
class Outlook:
    """A look at the memory after a moment: what if the episode ends here (`future` None), or goes
    on with everything at +∞ or −∞?"""

    memory: FloatArray
    time: IntArray
    future: float | None
    answers: dict[int, FloatArray] = field(default_factory=dict)
    """What each unknown is then, (n,)."""

    def beyond(self, up: bool) -> float:
        """What a moment after the last one counts as for an operator: nothing, if there is none."""
        if self.future is None:
            return -np.inf if up else np.inf
        return self.future


def best(up: bool, one: FloatArray, other: FloatArray | np.float64) -> FloatArray:
    """Maximum or minimum."""
    return np.maximum(one, other) if up else np.minimum(one, other)


def _over(up: bool, values: FloatArray, axis: int) -> FloatArray:
    """Maximum or minimum over an axis."""
    return np.asarray(values.max(axis=axis) if up else values.min(axis=axis))


class MemoryLayout:
    """The memory's layout while a monitor is built."""

    def __init__(self) -> None:
        self.start: list[float] = []
        self.numbers = count()

    def take(self, length: int, unknowns: Unknowns, start: float) -> RecentValues:
        """Room for so many values."""
        if len(unknowns) > _MOST_UNKNOWNS:
            raise ProblemError(
                f"the specification nests {len(unknowns)} temporal operators without an end in "
                f"others; a monitor takes {_MOST_UNKNOWNS} at the most. Give them bounds, or split "
                "it into several specifications, a | b"
            )
        first = len(self.start)
        size = length * 2 ** len(unknowns)
        if first + size > _MOST_CELLS:
            raise ProblemError(
                f"the specification needs more than {_MOST_CELLS:,} numbers of memory per episode: "
                "make nested windows shorter, or dt= longer"
            )
        self.start += [start] * size
        return RecentValues(first, length, unknowns)


@dataclass(frozen=True)
class RecentValues:
    """Some last values in the memory, the oldest first."""

    first: int
    length: int
    unknowns: Unknowns

    def read(self, memory: FloatArray) -> FloatArray:
        """(n, length, 2ᵏ)."""
        corners = 2 ** len(self.unknowns)
        cells = memory[:, self.first : self.first + self.length * corners]
        return cells.reshape(len(memory), self.length, corners)

    def write(self, memory: FloatArray, values: FloatArray) -> None:
        """Replace all of them."""
        size = self.length * 2 ** len(self.unknowns)
        memory[:, self.first : self.first + size] = values.reshape(len(memory), size)

    def advanced(self, now: MonitorStep) -> FloatArray:
        """What the values of the moment before are now that unknowns have become known."""
        answers = [extended(now.progress[it], now.of[it], self.unknowns) for it in self.unknowns]
        return put(self.read(now.memory), answers)

    def push(self, now: MonitorStep, value: FloatArray) -> FloatArray:
        """Take in one more value, (n, 2ᵏ), for the oldest one. Returns all, that one included,
        (n, length + 1, 2ᵏ)."""
        if not self.length:
            return value[:, None]
        whole = np.concatenate([self.advanced(now), value[:, None]], axis=1)
        self.write(now.memory, whole[:, 1:])
        return whole

    def settled(self, at: Outlook) -> FloatArray:
        """The values with their unknowns as the outlook has them, (n, length)."""
        answers = [at.answers[it][:, None] for it in self.unknowns]
        return put(self.read(at.memory), answers)[..., 0]


class Stream:
    """A formula inside a temporal operator."""

    delay: int
    """Steps by which its values are late."""
    unknowns: Unknowns
    """What its values hang on."""

    def step(self, now: MonitorStep) -> FloatArray:
        """Its value at ``now.time − delay``, (n, 2ᵏ)."""
        raise NotImplementedError

    def pending(self, at: Outlook) -> FloatArray:
        """Its values at the last `delay` moments, (n, delay), the oldest first."""
        raise NotImplementedError


class _Known(Stream):
    """A comparison, or a constant."""

    delay, unknowns = 0, ()

    def __init__(self, it: Predicate | ConstantForm) -> None:
        self.it = it

    def step(self, now: MonitorStep) -> FloatArray:
        if isinstance(self.it, ConstantForm):
            return np.full((len(now.memory), 1), self.it.value)
        return self.it.robustness(now.values)[:, None]

    def pending(self, at: Outlook) -> FloatArray:
        return np.zeros((len(at.memory), 0))


class Pair:
    """Two streams made to speak of the same moment."""

    def __init__(self, left: Stream, right: Stream, cells: MemoryLayout) -> None:
        self.left, self.right = left, right
        self.delay = max(left.delay, right.delay)
        self.unknowns: Unknowns = tuple(sorted({*left.unknowns, *right.unknowns}))
        self.kept = [cells.take(self.delay - it.delay, it.unknowns, 0.0) for it in (left, right)]

    def step(self, now: MonitorStep) -> tuple[FloatArray, FloatArray]:
        """Both values at ``now.time − delay``, of the same unknowns."""
        values = [it.step(now) for it in (self.left, self.right)]
        oldest = [kept.push(now, v)[:, 0] for kept, v in zip(self.kept, values, strict=True)]
        left, right = (
            extended(value, kept.unknowns, self.unknowns)
            for value, kept in zip(oldest, self.kept, strict=True)
        )
        return left, right

    def pending(self, at: Outlook) -> tuple[FloatArray, FloatArray]:
        """Both values at the last `delay` moments, (n, delay)."""
        left, right = (
            _history(kept, it, at)
            for kept, it in zip(self.kept, (self.left, self.right), strict=True)
        )
        return left, right


def _history(kept: RecentValues, of: Stream, at: Outlook) -> FloatArray:
    """The kept values of a stream, and after them those that it has not given yet."""
    late = of.pending(at)  # first: it answers the unknowns
    return np.concatenate([kept.settled(at), late], axis=1)


class _Either(Stream):
    """and, or."""

    def __init__(self, it: JoinForm, cells: MemoryLayout) -> None:
        self.up = it.up
        self.pair = Pair(streamed(it.left, cells), streamed(it.right, cells), cells)
        self.delay, self.unknowns = self.pair.delay, self.pair.unknowns

    def step(self, now: MonitorStep) -> FloatArray:
        return best(self.up, *self.pair.step(now))

    def pending(self, at: Outlook) -> FloatArray:
        return best(self.up, *self.pair.pending(at))


class _Within(Stream):
    """always and eventually with an end: over the part's last values."""

    def __init__(self, it: WindowForm, high: int, cells: MemoryLayout) -> None:
        self.up, self.high, self.size = it.up, high, high - it.low + 1
        self.part = streamed(it.part, cells)
        self.delay, self.unknowns = self.part.delay + high, self.part.unknowns
        self.kept = cells.take(self.size - 1, self.unknowns, 0.0)

    def step(self, now: MonitorStep) -> FloatArray:
        window = self.kept.push(now, self.part.step(now))
        return _over(self.up, window, 1)

    def pending(self, at: Outlook) -> FloatArray:
        known = _history(self.kept, self.part, at)
        beyond = np.full((len(known), self.high), at.beyond(self.up))
        windows = sliding_window_view(np.concatenate([known, beyond], axis=1), self.size, axis=1)
        return _over(self.up, windows, -1)


class _UntilWithin(Stream):
    """until with an end, and its dual."""

    def __init__(self, it: UntilForm, high: int, cells: MemoryLayout) -> None:
        self.up, self.low, self.high = it.up, it.low, high
        self.left, self.right = streamed(it.left, cells), streamed(it.right, cells)
        self.delay = max(high + self.right.delay, high - 1 + self.left.delay)
        self.unknowns = tuple(sorted({*self.left.unknowns, *self.right.unknowns}))
        self.kept = (
            cells.take(self.delay - self.left.delay, self.left.unknowns, 0.0),
            cells.take(self.delay - self.right.delay - it.low, self.right.unknowns, 0.0),
        )

    def _value(self, left: FloatArray, right: FloatArray, moments: int) -> FloatArray:
        """Of `moments` in a row, from the values of the parts after each: (n, moments, …)."""
        v = np.full_like(right[:, :moments], -np.inf if self.up else np.inf)
        for j in range(self.high, -1, -1):
            v = best(not self.up, left[:, j : j + moments], v) if j < self.high else v
            if j >= self.low:
                v = best(self.up, v, right[:, j - self.low : j - self.low + moments])
        return v

    def step(self, now: MonitorStep) -> FloatArray:
        left, right = (
            extended(kept.push(now, it.step(now)), kept.unknowns, self.unknowns)
            for kept, it in zip(self.kept, (self.left, self.right), strict=True)
        )
        return self._value(left, right, 1)[:, 0]

    def pending(self, at: Outlook) -> FloatArray:
        beyond = np.full((len(at.memory), self.high), at.beyond(self.up))
        left, right = (
            np.concatenate([_history(kept, it, at), beyond], axis=1)
            for kept, it in zip(self.kept, (self.left, self.right), strict=True)
        )
        return self._value(left, right, self.delay)


class _Endless(Stream):
    """An operator without an end, which begins now: what comes after the last moment is an
    unknown."""

    def __init__(self, it: WindowForm | UntilForm, cells: MemoryLayout) -> None:
        self.up = it.up
        if isinstance(it, UntilForm):
            self.pair = Pair(streamed(it.left, cells), streamed(it.right, cells), cells)
        else:
            # eventually: true until, always: the dual of false until
            whole = ConstantForm(np.inf if it.up else -np.inf)
            self.pair = Pair(_Known(whole), streamed(it.part, cells), cells)
        self.number = next(cells.numbers)
        self.delay = self.pair.delay
        self.unknowns = tuple(sorted({*self.pair.unknowns, self.number}))

    def step(self, now: MonitorStep) -> FloatArray:
        left, right = (
            extended(value, self.pair.unknowns, self.unknowns) for value in self.pair.step(now)
        )
        rest = unknown(self.number, self.unknowns, len(left))
        value = best(self.up, right, best(not self.up, left, rest))
        now.progress[self.number], now.of[self.number] = value, self.unknowns
        return value

    def pending(self, at: Outlook) -> FloatArray:
        left, right = self.pair.pending(at)
        after = np.full(len(at.memory), at.beyond(self.up))
        values = np.empty((len(after), self.delay))
        for k in range(self.delay - 1, -1, -1):
            after = best(self.up, right[:, k], best(not self.up, left[:, k], after))
            values[:, k] = after
        at.answers[self.number] = after
        return values


def streamed(it: Normal, cells: MemoryLayout) -> Stream:
    """The stream of a formula."""
    if isinstance(it, Predicate | ConstantForm):
        return _Known(it)
    if isinstance(it, JoinForm):
        return _Either(it, cells)
    if it.high is None:
        return streamed(without_offset(it), cells) if it.low else _Endless(it, cells)
    if it.high == 0:  # now
        return streamed(it.part if isinstance(it, WindowForm) else it.right, cells)
    kind = _Within if isinstance(it, WindowForm) else _UntilWithin
    return kind(it, it.high, cells)  # type: ignore[arg-type]
