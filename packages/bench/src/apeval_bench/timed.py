"""A backend that counts the time spent in the simulator."""

from __future__ import annotations

import time

from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.simulate.backends.serial import Serial, SerialPool
from apeval.simulate.episodes import Episodes
from apeval.simulate.task import Trouble


class Timed(Serial):
    """Serial, with a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def start(self, problem: Problem, key: IntArray, time_limit: float | None) -> SerialPool:
        return _Clocked(problem, key, self)


class _Clocked(SerialPool):
    def __init__(self, problem: Problem, key: IntArray, clock: Timed) -> None:
        super().__init__(problem, key)
        self.clock = clock

    def result(self, ticket: int) -> Episodes | Trouble:
        started = time.perf_counter()
        try:
            return super().result(ticket)
        finally:
            self.clock.seconds += time.perf_counter() - started
