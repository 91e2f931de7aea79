"""Workers on a Ray cluster, or on one that is started here for the run."""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from apeval.errors import ApevalError, blame
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.remedies import Option
from apeval.signals import handlers
from apeval.simulate.task import Task
from apeval.simulate.workers.pool import (
    ANSWER,
    GONE,
    HELLO,
    READY,
    UNFIT,
    SupervisedPool,
    WorkerMessage,
)
from apeval.simulate.workers.serialization import (
    ONE_THREAD,
    limit_torch,
    one_thread_inherited,
    pack,
    set_for_a_while,
    unpack,
)

# Ray would take SIGTERM over; read when it is imported
_SIGNALS_LEFT_ALONE = {"RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1"}


class Ray:
    """One actor for each core of the cluster, or as many as asked for."""

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        self.workers, self.address = workers, address

    def start(self, problem: Problem, key: IntArray, time_limit: float | None) -> RayPool:
        try:
            with set_for_a_while(_SIGNALS_LEFT_ALONE):
                ray: Any = importlib.import_module("ray")
        except ImportError:
            raise ApevalError(
                "the ray backend needs Ray: pip install 'apeval[cluster]', or use "
                f"{Option('backend', 'processes')}"
            ) from None
        payload = pack(problem, key)
        mine = None if ray.is_initialized() else _begin(ray, self.workers, self.address)
        try:
            cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
            size = min(self.workers or cores, cores)  # more would wait for ever
            return RayPool(ray, payload, size, time_limit, mine, self.address is not None)
        except BaseException:
            if mine is not None:
                mine.end()
            raise


class Connection(threading.Thread):
    """Starts Ray and ends it, in a thread of its own: the main thread can hear signals meanwhile,
    and Ray, which takes SIGTERM over where it can, leaves it alone. The thread stays in between,
    because processes that Ray starts end with the thread that started them."""

    def __init__(self, ray: Any, options: dict[str, Any]) -> None:
        super().__init__(name="ray", daemon=True)
        self._ray, self._options = ray, options
        self._begun, self._over = threading.Event(), threading.Event()
        self._error: BaseException | None = None

    def begin(self) -> None:
        """Wait until Ray has started; where a signal says otherwise, until it has ended."""
        self.start()
        try:
            self._begun.wait()
        except BaseException:
            self.end()
            raise
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """Wait until Ray has ended."""
        self._over.set()
        with _signals_kept():
            self.join()

    def run(self) -> None:
        try:
            self._ray.init(**self._options)
        except BaseException as error:  # for the thread that waits
            self._error = error
            return
        finally:
            self._begun.set()
        self._over.wait()
        self._ray.shutdown()


def _begin(ray: Any, workers: int | None, address: str | None) -> Connection:
    quiet = {"include_dashboard": False} if address is None else {}
    cpus = {"num_cpus": workers} if address is None and workers is not None else {}
    options = {
        "address": address or "local",
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        **quiet,
        **cpus,
    }
    connection = Connection(ray, options)
    inherited = {
        "PYTHONPATH": os.pathsep.join(os.path.abspath(p or ".") for p in sys.path),
        **_SIGNALS_LEFT_ALONE,
    }
    try:
        # workers of an embedded cluster inherit the limits
        with one_thread_inherited(), set_for_a_while(inherited), _signals_kept():
            connection.begin()
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ApevalError(
            f"no Ray cluster at {address or 'this machine'} ({' '.join(str(error).split())[:150]}):"
            f" start one with `ray start --head`, or leave {Option('address')} out"
        ) from None
    return connection


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Where Ray was imported before, it takes SIGTERM over all the same when it starts, and gives
    it to nobody when it ends; it is the run's, which knows how to end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = handlers()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class RayPool(SupervisedPool):
    """A pool of actors."""

    def __init__(
        self,
        ray: Any,
        payload: bytes,
        size: int,
        time_limit: float | None,
        mine: Connection | None,
        far: bool,
    ) -> None:
        environment = {"runtime_env": {"env_vars": dict(ONE_THREAD)}} if far else {}
        actor = ray.remote(num_cpus=1, max_restarts=0, **environment)(Actor)
        self._ray, self._mine = ray, mine
        self._put: tuple[bytes, Any] | None = None
        super().__init__(payload, lambda: RayWorker(ray, actor, self._stored), _listen(ray), size,
                         time_limit)  # fmt: skip

    def _stored(self, data: bytes) -> Any:
        """The same bytes go to the cluster once."""
        if self._put is None or self._put[0] is not data:
            self._put = (data, self._ray.put(data))
        return self._put[1]

    def close(self) -> None:
        super().close()
        if self._mine is not None:
            self._mine.end()


class Actor:
    """The worker at the other end. What it returns is pickled by itself: arrays that Ray hands out
    could not be written to."""

    def hello(self) -> bytes:
        """It has started."""
        return pickle.dumps(WorkerMessage(HELLO))

    def teach(self, payload: bytes) -> bytes:
        """Build the problem."""
        try:
            self.problem, self.key = unpack(payload)
        except ApevalError as error:
            return pickle.dumps(WorkerMessage(UNFIT, str(error)))
        except Exception as error:
            return pickle.dumps(WorkerMessage(UNFIT, blame(error)))
        return pickle.dumps(WorkerMessage(READY))

    def show(self, proposal: bytes) -> None:
        """Take over a proposal."""
        self.proposal = pickle.loads(proposal)
        limit_torch()

    def work(self, fields: tuple[Any, ...]) -> bytes:
        """Simulate a block."""
        import cloudpickle

        from apeval.simulate.check.precheck import attempt_apart

        task = Task(self.proposal, *fields)
        answer: bytes = cloudpickle.dumps(
            WorkerMessage(ANSWER, attempt_apart(self.problem, self.key, task))
        )
        return answer


class RayWorker:
    """An actor, seen from the run."""

    def __init__(self, ray: Any, actor: Any, stored: Any) -> None:
        self._ray, self._stored = ray, stored
        self._actor = actor.remote()
        self.calls: deque[Any] = deque([self._actor.hello.remote()])

    def teach(self, payload: bytes) -> None:
        self.calls.append(self._actor.teach.remote(self._stored(payload)))

    def show(self, proposal: bytes) -> None:
        self._actor.show.remote(self._stored(proposal))

    def give(self, task: Task) -> None:
        self.calls.append(self._actor.work.remote(task.fields))

    def hear(self) -> WorkerMessage:
        """The answer to the oldest call."""
        try:
            event: WorkerMessage = pickle.loads(self._ray.get(self.calls.popleft()))
        except self._ray.exceptions.RayError as error:
            self.calls.clear()
            return WorkerMessage(GONE, f"the worker died ({type(error).__name__})")
        return event

    def kill(self) -> None:
        self._ray.kill(self._actor)

    dismiss = kill


def _listen(ray: Any) -> Any:
    def listen(workers: Sequence[Any], timeout: float | None) -> list[tuple[Any, WorkerMessage]]:
        first = {worker.calls[0]: worker for worker in workers if worker.calls}
        if not first:
            return []
        ready, rest = ray.wait(list(first), num_returns=1, timeout=timeout)
        if ready and rest:
            more, _ = ray.wait(rest, num_returns=len(rest), timeout=0)
            ready += more
        return [(first[call], first[call].hear()) for call in ready]

    return listen


BACKEND = Ray
