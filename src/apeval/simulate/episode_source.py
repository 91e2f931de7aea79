"""Where a run's episodes come from: its journal, as far as that goes, and then a worker pool."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from apeval.errors import ApevalError, ProblemError
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.remedies import Option
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.answer_checks import same_precision
from apeval.simulate.audit import Audit
from apeval.simulate.backends import Backend, WorkerPool
from apeval.simulate.backends.serial import Serial
from apeval.simulate.episodes import Episodes, join
from apeval.simulate.fault_handling import FaultHandler, FaultPolicy
from apeval.simulate.task import Task, Trouble

_FLUSH_SECONDS = 2.0  # what a slow simulator may lose
_FLUSH_DECISIONS = 50_000  # what is held in memory until it is written


class Journal(Protocol):
    """Keeps what was simulated, and may know it from an earlier attempt."""

    def recorded(self, first: int, n: int) -> Episodes | None:
        """Episodes `first` …, n of them, where they were simulated before."""
        ...

    def batch(self, episodes: Episodes, position: int) -> None:
        """Episodes have returned; they stand at `position` … of their stage."""
        ...

    def fault(self, entry: dict[str, Any]) -> None:
        """A simulator did not come back."""
        ...


class RunStoppedError(Exception):
    """Somebody asked to stop; what is under way has been kept."""


@dataclass
class StopRequest:
    """Whether somebody asked to stop."""

    asked: bool = False


class _Order(NamedTuple):
    task: Task
    ticket: int | None
    """With the pool; None where the journal has the block."""
    recorded: Episodes | None


@dataclass
class EpisodeSource:
    """Blocks in order, a few of them under way at a time."""

    problem: Problem
    key: IntArray
    backend: Backend = field(default_factory=Serial)
    journal: Journal | None = None
    policy: FaultPolicy = field(default_factory=FaultPolicy)
    stop: StopRequest = field(default_factory=StopRequest)
    collected: int = 0
    audit: Audit = field(default_factory=Audit)
    _pool: WorkerPool | None = field(default=None, init=False, repr=False)
    _orders: deque[_Order] = field(default_factory=deque, init=False, repr=False)
    _kept: list[Episodes] = field(default_factory=list, init=False, repr=False)
    _position: int = field(default=0, init=False, repr=False)
    _trusted: bool = field(default=False, init=False, repr=False)
    _written: float = field(default_factory=time.monotonic, init=False, repr=False)

    def __post_init__(self) -> None:
        self._mender = FaultHandler(self.problem, self.key, self.policy, self._fault)
        if self.policy.time_limit is not None:
            self._started_pool()  # a backend that cannot stop a worker says so before any work

    @property
    def under_way(self) -> int:
        """Episodes that were ordered and not collected."""
        return sum(order.task.n for order in self._orders)

    @property
    def full(self) -> bool:
        """Whether more orders would only wait."""
        return len(self._orders) >= (1 if self._pool is None else self._pool.capacity)

    def ends(self, first: int, n: int) -> bool:
        """Whether somebody asked to stop, and episodes `first` … would have to be simulated: what
        the journal has costs nothing, and belongs to the result."""
        return self.stop.asked and self._recorded(first, n) is None

    def order(self, task: Task) -> None:
        """Have a block simulated, unless the journal has it."""
        recorded = self._recorded(task.first, task.n)
        ticket = None if recorded is not None else self._started_pool().submit(task)
        self._orders.append(_Order(task, ticket, recorded))

    def collect(self) -> Episodes:
        """The oldest block that was ordered."""
        order = self._orders.popleft()
        self.collected += order.task.n
        if order.recorded is not None:
            self._mender.seen(order.recorded)
            checked = _checked(order.task, order.recorded, len(self.problem.kinds))
            self.audit.seen(order.task, checked)
            self._belongs()
            return checked
        pool = self._started_pool()
        answer = pool.result(order.ticket or 0)
        if not isinstance(answer, Episodes):
            before = self.collected - order.task.n
            answer = self._mender.mend(pool, order.task, answer, before)
        self._mender.seen(answer)
        _alike(self._mender.like, answer)
        self._keep(answer, order.task.position)
        self.audit.seen(order.task, answer)
        return answer

    def stream(self, tasks: Iterable[Task], whole: bool = False) -> Iterator[Episodes]:
        """The blocks in order; where somebody asks to stop before all are under way, those that
        are get kept and the rest is left (`RunStoppedError`), but for what the journal has, and
        for tasks that have to come back as a `whole`."""
        waiting = deque(tasks)
        try:
            while waiting or self._orders:
                while waiting and not self.full:
                    if not whole and self.ends(waiting[0].first, waiting[0].n):
                        break
                    self.order(waiting.popleft())
                if waiting and not self._orders:
                    raise RunStoppedError
                yield self.collect()
        finally:
            self.flush()

    def repeats(self, seconds: float, most: int = 64) -> str | None:
        """Whether episodes of the run come out the same once more; see `Audit.repeat`."""
        one = 1 + int(self.problem.initial is not None)
        self._again(Task(only(Nominal()), 0, 0, 1, one))  # what counts its calls: out of step
        return self.audit.repeat(self._again, seconds, most)

    def _again(self, task: Task) -> Episodes | Trouble:
        pool = self._started_pool()
        return pool.result(pool.submit(task))

    def _belongs(self) -> None:
        """Recorded episodes are of this problem and seed: looked at once, before they are used."""
        if self._trusted:
            return
        self._trusted = True
        differs = self.repeats(0.0)
        if differs is not None:
            raise ApevalError(
                f"the recorded episodes do not belong to this run ({differs} when it is simulated "
                "again): its problem, its seed, a library or the machine has changed, or the "
                f"simulator does not repeat itself. Run it anew with {Option('careful', False)}"
            )

    def lost(self, error: Exception, episode: int, decision: int) -> None:
        """See `FaultHandler.lost`."""
        self._mender.lost(error, episode, decision)

    def flush(self) -> None:
        """Write what is held."""
        if self._kept and self.journal is not None:
            kept, self._kept = self._kept, []
            self.journal.batch(join(kept), self._position)
        self._written = time.monotonic()

    def close(self) -> None:
        """Close the worker pool."""
        if self._pool is not None:
            self._pool.close()
        self._pool = None

    def _recorded(self, first: int, n: int) -> Episodes | None:
        return None if self.journal is None else self.journal.recorded(first, n)

    def _started_pool(self) -> WorkerPool:
        if self._pool is None:
            self._pool = self.backend.start(self.problem, self.key, self.policy.time_limit)
        return self._pool

    def _keep(self, block: Episodes, position: int) -> None:
        if self.journal is None:
            return
        if self._kept and (self._kept[-1].trace is None) != (block.trace is None):
            self.flush()  # a batch has traces of all its episodes, or of none
        if not self._kept:
            self._position = position
        self._kept.append(block)
        held = sum(it.steps for it in self._kept)
        if held >= _FLUSH_DECISIONS or time.monotonic() - self._written >= _FLUSH_SECONDS:
            self.flush()

    def _fault(self, entry: dict[str, Any]) -> None:
        if self.journal is not None:
            self.journal.fault(entry)


def _alike(first: Episodes | None, block: Episodes) -> None:
    """Refuse a problem whose answers change their width or precision from block to block."""
    if first is None:
        return
    for name, what in (("s", "the state that a method sees"), ("a_A", "the agent's action")):
        before, after = getattr(first, name).shape[1], getattr(block, name).shape[1]
        if before != after:
            raise ProblemError(
                f"{what} has {after} components in episode {int(block.ids[0])}, earlier {before}: "
                "the number of components must not change"
            )
    for name, what in (("s_end", "the state that a method sees"), ("a_A", "the agent's action")):
        same_precision(what, getattr(first, name), getattr(block, name), int(block.ids[0]))


def _checked(task: Task, recorded: Episodes, kinds: int) -> Episodes:
    """Episodes of another run would go unnoticed into the estimate."""
    positions = task.position + np.arange(task.n)
    known = (recorded.kind >= 0) & (recorded.kind <= kinds)
    if not known.all() or not np.array_equal(recorded.component, task.proposal.assign(positions)):
        raise ApevalError(
            f"the recorded episodes {task.first} … {task.first + task.n - 1} do not belong to this "
            "run: its code, a library or the machine has changed. Run it anew with "
            f"{Option('careful', False)}"
        )
    return recorded
