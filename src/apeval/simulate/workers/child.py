"""The program of a worker process: reads tasks from its pipe and answers, until it is closed.

Messages to it are pickled tuples: ("problem", payload), ("proposal", bytes), ("task", …),
("alone", …) and ("look", check). It says ("hello",), ("ready",) or ("unfit", why), ("looked", …),
and ("answer", episodes or trouble); for an episode alone also ("started", …) and ("decided", …) as
they happen.
"""

from __future__ import annotations

import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from apeval.errors import ApevalError, blame
from apeval.problem.laws import Law
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray, IntArray
from apeval.simulate.adversary import Mixture, Situation
from apeval.simulate.task import Task
from apeval.simulate.workers.orphans import leave_with_parent
from apeval.simulate.workers.serialization import limit_torch, unpack


def serve(descriptor: int) -> None:
    """Work until the run closes the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the run, which tells us
    os.dup2(2, 1)  # what a simulator prints must not stand between the run's results
    leave_with_parent()  # a killed run cannot close the pipe of a worker that does not listen
    with Connection(descriptor) as pipe:
        try:
            _say(pipe, "hello")
            _Served(pipe).until_closed()
        except (EOFError, OSError):
            return


def _say(pipe: Connection, *message: Any) -> None:
    import cloudpickle

    pipe.send_bytes(cloudpickle.dumps(message))


class _Served:
    """What the worker knows."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self.problem: Problem | None = None
        self.key: IntArray | None = None
        self.proposal: Mixture | None = None

    def until_closed(self) -> None:
        import pickle

        while True:
            kind, *rest = pickle.loads(self.pipe.recv_bytes())
            if kind == "problem":
                self._build(rest[0])
            elif kind == "proposal":
                self.proposal = pickle.loads(rest[0])
                limit_torch()
            elif kind == "look":
                self._look(rest[0])
            else:
                self._work(rest, _Told(self.pipe) if kind == "alone" else None)

    def _build(self, payload: bytes) -> None:
        try:
            self.problem, self.key = unpack(payload)
        except ApevalError as error:
            _say(self.pipe, "unfit", str(error))
        except BaseException as error:
            _say(self.pipe, "unfit", blame(error))
        else:
            _say(self.pipe, "ready")

    def _look(self, check: bool) -> None:
        from apeval.simulate.check.precheck import look

        if self.problem is None or self.key is None:
            sys.exit(1)
        try:
            found = look(self.problem, self.key, check)
        except (Exception, SystemExit):  # the run itself tells what and where
            found = None
        _say(self.pipe, "looked", found)

    def _work(self, fields: list[Any], told: _Told | None) -> None:
        from apeval.simulate.check.precheck import attempt_apart

        if self.problem is None or self.key is None or self.proposal is None:
            sys.exit(1)
        task = Task(self.proposal, *fields)
        _say(self.pipe, "answer", attempt_apart(self.problem, self.key, task, told))


class _Told:
    """A watch that passes on what it sees."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe

    def started(self, a_0: Array, law_0: Law | None) -> None:
        _say(self.pipe, "started", a_0, law_0)

    def decided(self, now: Situation, a_E: Array, margin: FloatArray) -> None:
        _say(self.pipe, "decided", now, a_E, margin)
