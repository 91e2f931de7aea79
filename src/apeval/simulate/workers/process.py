"""A worker process, seen from the run."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from apeval.errors import ApevalError
from apeval.remedies import Option
from apeval.simulate.task import Task
from apeval.simulate.workers.pool import GONE, WorkerMessage
from apeval.simulate.workers.serialization import one_thread_inherited

# not `multiprocessing.Process`: that would run a user's script again in every worker
PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from apeval.simulate.workers.child import serve; serve(int(sys.argv[2]))"
)
_LOOK = 1.0  # seconds between looks at whether silent workers are there
_PATIENCE = 2.0  # seconds that a worker has to leave by itself


class ProcessWorker:
    """Speaks to `child.serve` through a pipe."""

    def __init__(self) -> None:
        if os.name != "posix":
            raise ApevalError(
                f"worker processes need Linux or macOS: use {Option('backend', 'serial')} or "
                f"{Option('backend', 'ray')}"
            )
        self.pipe, theirs = Pipe()
        path = [os.path.abspath(entry or os.getcwd()) for entry in sys.path]
        try:
            with theirs, one_thread_inherited():
                self.process = subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, json.dumps(path), str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,  # a group of its own, which can be ended as one
                )
        except OSError as error:
            raise ApevalError(
                f"a worker cannot be started ({error.strerror or error}): ask for fewer "
                f"{Option('workers')}"
            ) from None

    def teach(self, payload: bytes) -> None:
        """Send the problem."""
        self._send("problem", payload)

    def show(self, proposal: bytes) -> None:
        """Send a proposal, which the next tasks are drawn from."""
        self._send("proposal", proposal)

    def give(self, task: Task, alone: bool = False) -> None:
        """Send a task; with `alone`, every decision is told as it is made."""
        self._send("alone" if alone else "task", *task.fields)

    def look(self, check: bool) -> None:
        """Have the problem looked at; the answer is ("looked", what was found or None)."""
        self._send("look", check)

    def _send(self, *message: Any) -> None:
        self.pipe.send_bytes(pickle.dumps(message))

    def hear(self) -> WorkerMessage:
        """The next message; waits for it."""
        try:
            kind, *rest = pickle.loads(self.pipe.recv_bytes())
        except (EOFError, OSError):
            return self.gone()
        return WorkerMessage(kind, rest[0] if len(rest) == 1 else rest)

    def gone(self) -> WorkerMessage:
        """It has ended."""
        return WorkerMessage(GONE, self._why())

    def _why(self) -> str:
        try:
            code = self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return "the worker went silent"
        if code == -signal.SIGKILL:
            return "the worker was killed (kill -9, or the machine ran out of memory)"
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"the worker died of {signal.Signals(-code).name}"
        return f"the worker ended with exit code {code}"

    def kill(self) -> None:
        """At once, with all that its simulator has started."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.pipe.close()
        self.process.wait()

    def dismiss(self) -> None:
        """Let an idle worker go, so that it can close its environments."""
        self.pipe.close()
        try:
            self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()


def listen(workers: Sequence[Any], timeout: float | None) -> list[tuple[Any, WorkerMessage]]:
    """What worker processes have to say. A pipe does not tell that its worker has died where a
    process that its simulator started holds it open."""
    pipes: dict[Any, ProcessWorker] = {worker.pipe: worker for worker in workers}
    ends = math.inf if timeout is None else time.monotonic() + timeout
    while True:
        pause = min(_LOOK, max(0.0, ends - time.monotonic()))
        if heard := wait(list(pipes), pause):
            return [(pipes[it], pipes[it].hear()) for it in heard if isinstance(it, Connection)]
        gone = [worker for worker in workers if worker.process.poll() is not None]
        if gone and not wait([worker.pipe for worker in gone], 0.0):  # nor a last word
            return [(worker, worker.gone()) for worker in gone]
        if time.monotonic() >= ends:
            return []
