"""A problem whose failure is told over whole episodes: its monitors travel in its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.argument_copies import own
from apeval.problem.draws import Draws
from apeval.problem.laws import Disturbance, Law
from apeval.problem.specification.event import FailureEvent, Samples, checked_signals
from apeval.problem.specification.monitor import Monitor
from apeval.problem.types import Array, BoolArray, FloatArray, IntArray

_LARGEST = 1e300  # a robustness of ±∞ as a margin: quantiles of margins stay numbers


@dataclass(frozen=True)
class Monitored:
    """The simulator's state with the monitors' memory: n episodes."""

    x: Any
    """The problem's own state."""
    memory: FloatArray
    """What the monitors keep, (n, m)."""
    time: IntArray
    """The last moment's time in steps, (n,)."""

    def __len__(self) -> int:
        return len(self.memory)

    def __getitem__(self, rows: Any) -> Monitored:
        return Monitored(self.x[rows], self.memory[rows], self.time[rows])


def monitored_parts(
    event: FailureEvent,
    *,
    nominal: Disturbance,
    reset: Callable[..., Any],
    step: Callable[..., Any],
    agent: Any,
    done: Callable[..., Any] | None,
    views: Mapping[str, Callable[[Any], Array]],
) -> dict[str, Any]:
    """The parts of a problem that change where its failure is such an event.

    Failure and margin are read at the episode's end, where the robustness is known; the episode
    ends at once where the failure is certain. Every view has the monitors' memory after its own
    columns, with 0 where nothing was seen yet.
    """
    samples = event.samples or FromState(
        tuple(checked_signals(event, "a function of the state x, such as lambda x: x[:, 0]")),
        tuple(name for name, _ in event.signals),
    )
    watch = EventMonitor(event, samples)
    return {
        "nominal": _MonitoredNominal(nominal),
        "reset": _MonitoredReset(reset, watch),
        "step": _MonitoredStep(step, watch),
        "agent": _MonitoredAgent(agent),
        "failed": _ViolationKind(watch),
        "margin": _RobustnessMargin(watch),
        "done": _DoneOrCertain(done, watch),
        "views": {name: _MonitoredView(view, watch) for name, view in views.items()},
        "judge_at_end": True,
        "kinds": event.kinds,
    }


@dataclass(frozen=True)
class FromState:
    """Signals that are functions of the problem's state."""

    signals: tuple[Callable[[Any], Any], ...]
    names: tuple[str, ...]

    @property
    def at_start(self) -> tuple[bool, ...]:
        return (True,) * len(self.signals)

    def first(self, x: Any) -> FloatArray:
        n, columns = len(x), []
        for name, signal in zip(self.names, self.signals, strict=True):
            column = np.asarray(signal(own(x)))
            if column.shape != (n,) or column.dtype.kind not in "biuf":
                raise ProblemError(
                    f"signal '{name}' returned {column.dtype} of shape {column.shape}, expected a "
                    f"number for each of {n} episodes, shape ({n},)"
                )
            columns.append(column.astype(np.float64))
        return np.stack(columns, axis=1) if columns else np.zeros((n, 0))

    def after(self, x: Any) -> tuple[FloatArray, BoolArray]:
        values = self.first(x)
        return values[None], np.ones((1, len(values)), bool)


class EventMonitor:
    """All monitors of an event, side by side.

    Args:
        event: The event.
        samples: How its signals are read.
    """

    def __init__(self, event: FailureEvent, samples: Samples) -> None:
        self.event, self.samples = event, samples
        self.monitors: list[Monitor] = []
        self.names = [tuple(it.named_signals) for it in event.specifications]
        self.columns, self.cells = [0], [0]
        for it, names in zip(event.specifications, self.names, strict=True):
            first, end = self.columns[-1], self.columns[-1] + len(names)
            self.monitors.append(Monitor(it.formula, 0 if all(samples.at_start[first:end]) else 1))
            self.columns.append(end)
            self.cells.append(self.cells[-1] + self.monitors[-1].width)
        kinds = event.kinds
        self.numbers = [(kinds.index(kind) + 1, which) for kind, which in event.alternatives]

    def start(self, x: Any, n: int) -> Monitored:
        """Before the first decision."""
        memory = np.concatenate([it.start(n) for it in self.monitors], axis=1)
        time = np.zeros(n, np.int64)
        values = self.samples.first(x)
        for k, monitor in enumerate(self.monitors):
            if monitor.first == 0:
                self._take(k, memory, time, values)
        return Monitored(x, memory, time)

    def step(self, x: Any, before: Monitored) -> Monitored:
        """After a decision, of one moment or several."""
        memory, time = before.memory.copy(), before.time.copy()
        for values, there in zip(*self.samples.after(x), strict=True):
            if not there.any():
                continue
            rows = slice(None) if there.all() else np.flatnonzero(there)
            time[rows] += 1
            taken = memory[rows]
            for k in range(len(self.monitors)):
                self._take(k, taken, time[rows], values[rows])
            memory[rows] = taken
        return Monitored(x, memory, time)

    def _take(self, k: int, memory: FloatArray, time: IntArray, values: FloatArray) -> None:
        cells = slice(self.cells[k], self.cells[k + 1])
        columns = values[:, self.columns[k] : self.columns[k + 1]].T
        signals = dict(zip(self.names[k], columns, strict=True))
        memory[:, cells] = self.monitors[k].step(memory[:, cells], time, signals)

    def _each(self, x: Monitored, certain: bool) -> list[FloatArray]:
        """The robustness of every specification, or the most that it can still be."""
        return [
            (it.upper if certain else it.robustness)(x.memory[:, low:high], x.time)
            for it, low, high in zip(self.monitors, self.cells[:-1], self.cells[1:], strict=True)
        ]

    def margin(self, x: Monitored, certain: bool = False) -> FloatArray:
        """The event's robustness where episodes end here (or the most it can still be), (n,)."""
        each = self._each(x, certain)
        ways = [np.max([each[k] for k in which], axis=0) for _, which in self.numbers]
        return np.asarray(np.min(ways, axis=0))

    def kind(self, x: Monitored) -> IntArray:
        """The kind of failure where episodes end here, (n,); 0 for none."""
        each = self._each(x, certain=False)
        kind = np.zeros(len(x), np.int64)
        for number, which in reversed(self.numbers):
            happened = np.all([each[k] < 0.0 for k in which], axis=0)
            kind[happened] = number
        return kind


class _MonitoredNominal(Disturbance):
    """The problem's own law, asked with the problem's own state."""

    def __init__(self, of: Disturbance) -> None:
        self.of, self.dim, self.learnable = of, of.dim, of.learnable
        self.discrete, self.outcomes = of.discrete, of.outcomes

    def given(self, x: Any, a_A: Any) -> Law:
        return self.of.given(own(x.x), a_A)

    def in_words(self) -> str:
        return self.of.in_words()

    def describe(self) -> dict[str, Any]:
        return self.of.describe()


@dataclass(frozen=True)
class _MonitoredReset:
    of: Callable[..., Any]
    watch: EventMonitor

    def __call__(self, draws: Draws, *a_0: Array) -> Monitored:
        return self.watch.start(self.of(draws, *a_0), draws.n)


@dataclass(frozen=True)
class _MonitoredStep:
    of: Callable[..., Any]
    watch: EventMonitor

    def __call__(self, x: Monitored, a_A: Array, a_E: Array, draws: Draws) -> Monitored:
        return self.watch.step(self.of(own(x.x), a_A, a_E, draws), x)


@dataclass(frozen=True)
class _MonitoredAgent:
    of: Any

    def act(self, x: Monitored, draws: Draws) -> Array:
        """As without monitors: the agent does not see them."""
        a_A: Array = self.of.act(own(x.x), draws)
        return a_A


@dataclass(frozen=True)
class _ViolationKind:
    watch: EventMonitor

    def __call__(self, x: Monitored) -> IntArray:
        return self.watch.kind(x)


@dataclass(frozen=True)
class _RobustnessMargin:
    watch: EventMonitor

    def __call__(self, x: Monitored) -> FloatArray:
        return np.clip(self.watch.margin(x), -_LARGEST, _LARGEST)


@dataclass(frozen=True)
class _DoneOrCertain:
    of: Callable[..., Any] | None
    watch: EventMonitor

    def __call__(self, x: Monitored) -> BoolArray:
        done = np.zeros(len(x), bool) if self.of is None else np.asarray(self.of(own(x.x)))
        if not self.watch.event.stop:
            return done
        return np.asarray(done | (self.watch.margin(x, certain=True) < 0.0))


@dataclass(frozen=True)
class _MonitoredView:
    of: Callable[[Any], Array]
    watch: EventMonitor

    def __call__(self, x: Monitored) -> Array:
        s = np.asarray(self.of(own(x.x)))
        memory = np.where(np.isfinite(x.memory), x.memory, 0.0)
        return np.column_stack([s, memory])
