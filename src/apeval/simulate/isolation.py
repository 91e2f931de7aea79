"""One episode alone, where it can do no harm: told decision by decision, so that even a crash or a
hang leaves known what led to it."""

from __future__ import annotations

import contextlib
import time
from typing import Protocol

from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.simulate.check.precheck import PrecheckFindings
from apeval.simulate.episodes import Episodes
from apeval.simulate.partial_episode import FaultyEpisode, PartialEpisode
from apeval.simulate.task import DIED, LATE, Task, Trouble, attempt
from apeval.simulate.workers.pool import ANSWER, BUILDING, GONE, HELLO, READY, UNFIT, WorkerMessage
from apeval.simulate.workers.process import ProcessWorker, listen
from apeval.simulate.workers.serialization import pack, pack_proposal

_LOOK = 60.0  # seconds that a look may take
_STARTED = 5  # workers that may be lost before they have built the problem


class EpisodeIsolation(Protocol):
    """A place for one episode at a time."""

    def run(self, task: Task) -> Episodes | FaultyEpisode: ...
    def close(self) -> None: ...


class InThisProcess:
    """In this process: enough for exceptions and for values that are not finite."""

    def __init__(self, problem: Problem, key: IntArray) -> None:
        self.problem, self.key = problem, key

    def run(self, task: Task) -> Episodes | FaultyEpisode:
        partial = PartialEpisode()
        answer = attempt(self.problem, self.key, task, partial)
        return answer if isinstance(answer, Episodes) else FaultyEpisode(task, answer, partial)

    def close(self) -> None:
        pass


class InOwnProcess:
    """In a process of its own, which may hang or die."""

    def __init__(self, problem: Problem, key: IntArray, time_limit: float | None) -> None:
        self._payload = pack(problem, key)
        self._limit = time_limit
        self._worker: ProcessWorker | None = None

    def run(self, task: Task) -> Episodes | FaultyEpisode:
        found = self._attempt(task)
        if isinstance(found, FaultyEpisode) and found.trouble.what == DIED:
            found = self._attempt(task)  # who was killed by somebody else is not faulty
        return found

    def _attempt(self, task: Task) -> Episodes | FaultyEpisode:
        worker = self._worker = self._worker or self._start_worker()
        partial = PartialEpisode()
        with contextlib.suppress(OSError):  # a worker that is gone says so through its pipe
            worker.show(pack_proposal(task.proposal))
            worker.give(task, alone=True)
        ends = self._ends(BUILDING)  # the reset may build an environment
        while (event := _next(worker, ends)) is not None:
            if event.kind == GONE:
                self.close()
                return FaultyEpisode(task, Trouble(DIED, event.content), partial)
            if event.kind == ANSWER:
                answer = event.content
                return (
                    answer if isinstance(answer, Episodes) else FaultyEpisode(task, answer, partial)
                )
            if event.kind == "decided" and not partial.seen:
                ends = self._ends()
            getattr(partial, event.kind)(*event.content)
        self.close()
        return FaultyEpisode(task, Trouble(LATE, f"no answer within {self._limit:g} s"), partial)

    def look(self, check: bool) -> PrecheckFindings | None:
        """What a look at the problem finds; None where it does not come back from it, which the
        run itself tells better."""
        worker = self._worker = self._worker or self._start_worker()
        with contextlib.suppress(OSError):
            worker.look(check)
        event = _next(worker, time.monotonic() + _LOOK)
        if event is None or event.kind == GONE:
            return None
        found: PrecheckFindings | None = event.content
        return found

    def _ends(self, longer: float = 0.0) -> float | None:
        return None if self._limit is None else time.monotonic() + self._limit + longer

    def close(self) -> None:
        if self._worker is not None:
            self._worker.kill()
        self._worker = None

    def _start_worker(self) -> ProcessWorker:
        """A worker that has built the problem; one that is lost before is replaced."""
        why = ""
        for _ in range(_STARTED):
            worker = ProcessWorker()
            event = self._taught(worker)
            if event.kind == READY:
                return worker
            worker.kill()
            why = str(event.content)
            if event.kind == UNFIT:
                break
        raise ApevalError(f"a worker could not build the problem: {why}")

    def _taught(self, worker: ProcessWorker) -> WorkerMessage:
        """How building the problem ended."""
        while True:
            event = _next(worker, None)
            if event is not None and event.kind in (READY, UNFIT, GONE):
                return event
            if event is not None and event.kind == HELLO:
                with contextlib.suppress(OSError):  # its pipe will tell
                    worker.teach(self._payload)


def _next(worker: ProcessWorker, ends: float | None) -> WorkerMessage | None:
    """The next message; None where it does not come in time."""
    heard = listen([worker], None if ends is None else max(0.0, ends - time.monotonic()))
    return heard[0][1] if heard else None


def look_apart(problem: Problem, key: IntArray, check: bool) -> PrecheckFindings | None:
    """A look at the problem from a process of its own, which it may take down with it."""
    cell = InOwnProcess(problem, key, None)
    try:
        return cell.look(check)
    finally:
        cell.close()
