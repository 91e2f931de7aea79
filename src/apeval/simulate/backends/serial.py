"""One block after the other, in this process."""

from __future__ import annotations

from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.remedies import Option
from apeval.simulate.episodes import Episodes
from apeval.simulate.task import Task, Trouble, attempt


class Serial:
    """The default."""

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        if workers not in (None, 1) or address is not None:
            raise ApevalError(
                f"the serial backend is one worker here: add {Option('backend', 'processes')}, or "
                f"{Option('backend', 'ray')}"
            )

    def start(self, problem: Problem, key: IntArray, time_limit: float | None) -> SerialPool:
        if time_limit is not None:
            raise ApevalError(
                "a time limit needs a worker that can be stopped: add "
                f"{Option('backend', 'processes')} and {Option('workers', 1)}"
            )
        return SerialPool(problem, key)


class SerialPool:
    """This process as its own pool."""

    capacity = 1
    expendable = False

    def __init__(self, problem: Problem, key: IntArray) -> None:
        self.problem, self.key = problem, key
        self._waiting: dict[int, Task] = {}
        self._tickets = 0

    def submit(self, task: Task) -> int:
        self._tickets += 1
        self._waiting[self._tickets] = task
        return self._tickets

    def result(self, ticket: int) -> Episodes | Trouble:
        return attempt(self.problem, self.key, self._waiting.pop(ticket))

    def close(self) -> None:
        self._waiting.clear()


BACKEND = Serial
