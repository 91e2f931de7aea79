"""A specification's online monitor: n episodes in lockstep, moment by moment.

A formula is judged at the episode's start, so what the monitor keeps is little: running minima and
maxima of operators that stand outermost, and of those inside another as many last values as their
windows are long. All of it is one array, a row per episode.

An episode that ends is judged by the moments it had. `always` holds unless it was violated there,
`eventually` and `until` fail unless they were fulfilled there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.problem.specification.normal_form import (
    ConstantForm,
    JoinForm,
    Normal,
    UntilForm,
    WindowForm,
    normal_form,
)
from apeval.problem.specification.streams import (
    MemoryLayout,
    MonitorStep,
    Outlook,
    Pair,
    best,
    streamed,
)
from apeval.problem.specification.syntax import Formula, Predicate, Values
from apeval.problem.types import BoolArray, FloatArray, IntArray


class Monitor:
    """The monitor of one formula.

    Args:
        formula: What episodes are to satisfy.
        first: The time of the first moment; 1 where there are no signals at the very start.
    """

    def __init__(self, formula: Formula, first: int = 0) -> None:
        self.first = first
        cells = MemoryLayout()
        self._root = _outermost(normal_form(formula), cells, first)
        self._start = np.array(cells.start, np.float64)

    @property
    def width(self) -> int:
        """Numbers that are kept per episode."""
        return len(self._start)

    def start(self, n: int) -> FloatArray:
        """The memory before the first moment, (n, width)."""
        return np.tile(self._start, (n, 1))

    def step(self, memory: FloatArray, time: IntArray, values: Values) -> FloatArray:
        """The memory after one more moment.

        Args:
            memory: The memory before, (n, width).
            time: The moment's time in steps, (n,); it grows by one from moment to moment.
            values: The signals at the moment, (n,) each.

        Returns:
            The new memory, (n, width).
        """
        now = MonitorStep(memory.copy(), np.asarray(time), values)
        self._root.step(now)
        return now.memory

    def robustness(self, memory: FloatArray, time: IntArray) -> FloatArray:
        """The robustness of episodes that end at this moment, (n,): negative where they violate
        the specification, positive where they satisfy it, never 0.

        Args:
            memory: The memory after the episodes' last moment, (n, width).
            time: That moment's time, (n,).
        """
        return self._root.value(Outlook(memory, np.asarray(time), None))

    def upper(self, memory: FloatArray, time: IntArray) -> FloatArray:
        """A bound on the robustness whatever comes next, (n,): negative where the violation is
        certain already."""
        return self._root.value(Outlook(memory, np.asarray(time), np.inf))

    def lower(self, memory: FloatArray, time: IntArray) -> FloatArray:
        """A bound on the robustness whatever comes next, (n,): positive where the specification is
        satisfied for certain."""
        return self._root.value(Outlook(memory, np.asarray(time), -np.inf))


class _OutermostFormula:
    """A formula that is judged at the start of the episode only."""

    def step(self, now: MonitorStep) -> None:
        """One more moment."""
        raise NotImplementedError

    def value(self, at: Outlook) -> FloatArray:
        """Its robustness, (n,)."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Fixed(_OutermostFormula):
    of: float

    def step(self, now: MonitorStep) -> None:
        pass

    def value(self, at: Outlook) -> FloatArray:
        return np.full(len(at.memory), self.of)


class _AtStart(_OutermostFormula):
    """A comparison at the first moment."""

    def __init__(self, it: Predicate, cells: MemoryLayout, first: int) -> None:
        self.it, self.first = it, first
        self.cell = cells.take(1, (), 0.0)

    def step(self, now: MonitorStep) -> None:
        kept = self.cell.read(now.memory)
        found = self.it.robustness(now.values)
        at_first = now.time == self.first
        self.cell.write(now.memory, np.where(at_first, found, kept[:, 0, 0])[:, None, None])

    def value(self, at: Outlook) -> FloatArray:
        return self.cell.read(at.memory)[:, 0, 0]


@dataclass(frozen=True)
class _Joined(_OutermostFormula):
    up: bool
    left: _OutermostFormula
    right: _OutermostFormula

    def step(self, now: MonitorStep) -> None:
        self.left.step(now)
        self.right.step(now)

    def value(self, at: Outlook) -> FloatArray:
        return best(self.up, self.left.value(at), self.right.value(at))


class _Running(_OutermostFormula):
    """`always` or `eventually`: a running minimum or maximum."""

    def __init__(self, it: WindowForm, cells: MemoryLayout, first: int) -> None:
        self.up, self.low, self.high = it.up, max(it.low, first), it.high
        self.part = streamed(it.part, cells)
        self.cell = cells.take(1, self.part.unknowns, -np.inf if it.up else np.inf)

    def _inside(self, time: IntArray) -> BoolArray:
        """Whether a moment lies in the window."""
        high = np.inf if self.high is None else self.high
        return np.asarray((time >= self.low) & (time <= high))

    def step(self, now: MonitorStep) -> None:
        found = self.part.step(now)
        kept = self.cell.advanced(now)[:, 0]
        inside = self._inside(now.time - self.part.delay)
        joined = np.where(inside[:, None], best(self.up, kept, found), kept)
        self.cell.write(now.memory, joined[:, None])

    def value(self, at: Outlook) -> FloatArray:
        late = self.part.pending(at)  # first: it answers the unknowns
        kept = self.cell.settled(at)[:, 0]
        for k in range(self.part.delay):
            inside = self._inside(at.time - self.part.delay + 1 + k)
            kept = np.where(inside, best(self.up, kept, late[:, k]), kept)
        if at.future is None:
            return kept
        coming = at.time < (np.inf if self.high is None else self.high)
        return np.where(coming, best(self.up, kept, np.float64(at.future)), kept)


class _RunningUntil(_OutermostFormula):
    """`until` or its dual: the best so far, and what `left` was before now."""

    def __init__(self, it: UntilForm, cells: MemoryLayout, first: int) -> None:
        self.up, self.first = it.up, first
        self.low, self.high = max(it.low, first), it.high
        self.pair = Pair(streamed(it.left, cells), streamed(it.right, cells), cells)
        self.cell = cells.take(1, self.pair.unknowns, -np.inf if it.up else np.inf)
        self.before = cells.take(1, self.pair.unknowns, np.inf if it.up else -np.inf)

    def _taken(
        self, found: FloatArray, before: FloatArray, left: FloatArray, right: FloatArray,
        time: IntArray,
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """The best so far and what was before, with one more moment; (n, …) each."""
        shape = (-1, *[1] * (found.ndim - 1))
        high = np.inf if self.high is None else self.high
        here = ((time >= self.low) & (time <= high)).reshape(shape)
        there = (time >= self.first).reshape(shape)
        ended = best(self.up, found, best(not self.up, before, right))
        return np.where(here, ended, found), np.where(
            there, best(not self.up, before, left), before
        )

    def step(self, now: MonitorStep) -> None:
        left, right = self.pair.step(now)
        found, before = self._taken(
            self.cell.advanced(now)[:, 0], self.before.advanced(now)[:, 0], left, right,
            now.time - self.pair.delay,
        )  # fmt: skip
        self.cell.write(now.memory, found[:, None])
        self.before.write(now.memory, before[:, None])

    def value(self, at: Outlook) -> FloatArray:
        left, right = self.pair.pending(at)  # first: they answer the unknowns
        found, before = self.cell.settled(at)[:, 0], self.before.settled(at)[:, 0]
        for k in range(self.pair.delay):
            time = at.time - self.pair.delay + 1 + k
            found, before = self._taken(found, before, left[:, k], right[:, k], time)
        if at.future is None:
            return found
        coming = at.time < (np.inf if self.high is None else self.high)
        ended = best(self.up, found, best(not self.up, before, np.float64(at.future)))
        return np.where(coming, ended, found)


def _outermost(it: Normal, cells: MemoryLayout, first: int) -> _OutermostFormula:
    if isinstance(it, ConstantForm):
        return _Fixed(it.value)
    if isinstance(it, Predicate):
        return _AtStart(it, cells, first)
    if isinstance(it, JoinForm):
        left, right = _outermost(it.left, cells, first), _outermost(it.right, cells, first)
        return _Joined(it.up, left, right)
    if isinstance(it, WindowForm):
        return _Running(it, cells, first)
    return _RunningUntil(it, cells, first)
