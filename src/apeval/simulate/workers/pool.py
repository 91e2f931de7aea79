"""Deals blocks out to workers that may die or hang, and keeps them all busy."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from apeval.errors import ApevalError
from apeval.remedies import Option
from apeval.simulate.adversary import Mixture
from apeval.simulate.episodes import Episodes
from apeval.simulate.task import DIED, LATE, Task, Trouble
from apeval.simulate.workers.serialization import pack_proposal

HELLO, READY, UNFIT, ANSWER, GONE = "hello", "ready", "unfit", "answer", "gone"
_AHEAD = 2  # blocks a worker holds: one under way, and the next, so that it never waits for us
BUILDING = 5.0
"""Seconds that a worker's first block may take longer, while environments are built."""
_HOPELESS = 5  # workers in a row that die before they are ready


class WorkerMessage(NamedTuple):
    """What a worker says."""

    kind: str
    content: Any = None


class Worker(Protocol):
    """Whoever can be taught a problem and simulate blocks of it."""

    def teach(self, payload: bytes) -> None: ...
    def show(self, proposal: bytes) -> None: ...
    def give(self, task: Task) -> None: ...
    def kill(self) -> None: ...
    def dismiss(self) -> None: ...


Listen = Callable[[Sequence[Any], float | None], list[tuple[Any, WorkerMessage]]]
"""What any of the workers says within so many seconds (None: waits), at most one thing each."""


@dataclass
class _WorkerSlot:
    """A worker's place in the pool."""

    worker: Worker
    ready: bool = False
    shown: Mixture | None = None
    held: deque[tuple[int, Task]] = field(default_factory=deque)
    since: float = 0.0
    """When it began with the first of the blocks it holds."""
    fresh: bool = True
    """Has not answered yet."""

    def ends(self, limit: float) -> float:
        """When the block under way has to be done."""
        return self.since + limit * self.held[0][1].n + (BUILDING if self.fresh else 0.0)


class SupervisedPool:
    """A pool of `size` workers."""

    expendable = True

    def __init__(
        self,
        payload: bytes,
        start: Callable[[], Worker],
        listen: Listen,
        size: int,
        time_limit: float | None,
    ) -> None:
        self.capacity = _AHEAD * size
        self._payload, self._start, self._listen = payload, start, listen
        self._limit = time_limit
        self._waiting: deque[tuple[int, Task]] = deque()
        self._done: dict[int, Episodes | Trouble] = {}
        self._tickets = 0
        self._lost = 0  # in a row, before they were ready
        self._packed: tuple[Mixture, bytes] | None = None
        self._posts: list[_WorkerSlot] = []
        try:
            for _ in range(size):
                self._posts.append(_WorkerSlot(start()))
        except BaseException:
            self.close()
            raise

    def submit(self, task: Task) -> int:
        self._tickets += 1
        self._waiting.append((self._tickets, task))
        self._deal()
        return self._tickets

    def result(self, ticket: int) -> Episodes | Trouble:
        while ticket not in self._done:
            self._deal()
            self._attend()
        return self._done.pop(ticket)

    def close(self) -> None:
        for post in self._posts:
            if post.held or not post.ready:
                post.worker.kill()
        for post in self._posts:
            if post.ready and not post.held:
                post.worker.dismiss()
        self._posts = []

    # -- dealing -------------------------------------------------------------------------------

    def _deal(self) -> None:
        """Fill up whoever has least to do."""
        while self._waiting:
            ticket, task = self._waiting[0]
            free = [post for post in self._posts if post.ready and self._takes(post, task)]
            if not free:
                return
            post = min(free, key=lambda post: len(post.held))
            self._waiting.popleft()
            self._hand(post, ticket, task)

    def _takes(self, post: _WorkerSlot, task: Task) -> bool:
        # a new proposal, or what branches share with others, may be large: only to a worker that
        # listens, or both sides would block
        ahead = _AHEAD if post.shown is task.proposal and task.branches is None else 1
        return len(post.held) < ahead

    def _hand(self, post: _WorkerSlot, ticket: int, task: Task) -> None:
        try:
            if post.shown is not task.proposal:
                post.worker.show(self._pack(task.proposal))
                post.shown = task.proposal
            post.worker.give(task)
        except OSError:  # it is gone, which its pipe will tell
            self._waiting.appendleft((ticket, task))
            post.ready = False
            return
        if not post.held:
            post.since = time.monotonic()
        post.held.append((ticket, task))

    def _pack(self, proposal: Mixture) -> bytes:
        if self._packed is None or self._packed[0] is not proposal:
            self._packed = (proposal, pack_proposal(proposal))
        return self._packed[1]

    # -- listening -----------------------------------------------------------------------------

    def _attend(self) -> None:
        """Wait for news; then see who has been silent for too long."""
        posts = {id(post.worker): post for post in self._posts}
        heard = self._listen([post.worker for post in self._posts], self._timeout())
        for worker, event in heard:
            self._note(posts[id(worker)], event)
        if heard or self._limit is None:
            return
        now = time.monotonic()
        for post in list(self._posts):
            if post.held and now > post.ends(self._limit):
                n = post.held[0][1].n
                text = f"no answer within {self._limit:g} s per episode ({n} in the block)"
                self._replace(post, Trouble(LATE, text))

    def _timeout(self) -> float | None:
        if self._limit is None:
            return None
        ends = [post.ends(self._limit) for post in self._posts if post.held]
        return max(0.01, min(ends, default=time.monotonic() + 1.0) - time.monotonic() + 0.01)

    def _note(self, post: _WorkerSlot, event: WorkerMessage) -> None:
        if event.kind == HELLO:
            try:
                post.worker.teach(self._payload)
            except OSError:
                return
        elif event.kind == READY:
            post.ready, self._lost = True, 0
        elif event.kind == UNFIT:
            raise ApevalError(f"a worker could not build the problem: {event.content}")
        elif event.kind == GONE:
            if not post.ready and not post.held:
                self._count_loss(event.content)
            self._replace(post, Trouble(DIED, event.content))
        else:
            ticket, _ = post.held.popleft()
            post.since, post.fresh = time.monotonic(), False
            self._done[ticket] = event.content

    def _count_loss(self, why: str) -> None:
        self._lost += 1
        if self._lost >= _HOPELESS + len(self._posts):
            raise ApevalError(
                f"workers end before they can begin ({why}): try {Option('backend', 'serial')}, "
                "which shows why"
            )

    def _replace(self, post: _WorkerSlot, trouble: Trouble) -> None:
        """A new worker in a lost one's place; what it had not begun is dealt out again."""
        post.worker.kill()
        if post.held:
            self._done[post.held.popleft()[0]] = trouble
        self._waiting.extendleft(reversed(post.held))
        self._posts[self._posts.index(post)] = _WorkerSlot(self._start())
