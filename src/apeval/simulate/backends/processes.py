"""Worker processes on this machine, by default one for each core."""

from __future__ import annotations

import os

from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.remedies import Option
from apeval.simulate.workers.pool import SupervisedPool
from apeval.simulate.workers.process import ProcessWorker, listen
from apeval.simulate.workers.serialization import pack


class Processes:
    """As many processes as there are cores, or as asked for."""

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        if address is not None:
            raise ApevalError(
                f"an address is that of a Ray cluster: add {Option('backend', 'ray')}"
            )
        self.workers = workers or _cores()

    def start(self, problem: Problem, key: IntArray, time_limit: float | None) -> SupervisedPool:
        return SupervisedPool(pack(problem, key), ProcessWorker, listen, self.workers, time_limit)


def _cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


BACKEND = Processes
