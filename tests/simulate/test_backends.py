"""The answer does not depend on who simulates: serial, processes, Ray."""

from __future__ import annotations

import importlib.util
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apeval
from apeval.errors import ApevalError
from apeval.learn.method import methods
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.run.result import Result
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.backends import backend_names, find_backend
from apeval.simulate.episode_source import EpisodeSource
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Budget, Simulation
from apeval.simulate.stage_blocks import StageBlocks
from apeval.simulate.task import Task, Trouble

STEPS = {"ape-scalable": 240}


def problem_of(name: str) -> Problem:
    if name == "walk":
        return replace(apeval.make("walk", top=5), chunk=30)
    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E + 0.1 * draws.normal(1),
        failed=lambda x: x[:, 0] > 3.5,
        judge_at_end=True,
        margin=lambda x: 3.5 - x[:, 0],
        horizon=4,
        name="gauss",
        chunk=20,
    )


def cases() -> list[Any]:
    return [
        pytest.param(method.name, name, id=f"{method.name}-{name}")
        for method in methods().values()
        for name in ("walk", "gauss")
        if method.suits(problem_of(name)) is None
    ]


def told(result: Result) -> dict[str, Any]:
    """All that a result says, but for the time it took."""
    return {**result.as_json(), "seconds": 0, "records": result.records, "curve": result.curve}


@pytest.mark.parametrize(("method", "name"), cases())
def test_processes_give_the_bits_of_serial(method: str, name: str) -> None:
    asked: dict[str, Any] = {"steps": STEPS.get(method, 800), "seed": 5}
    serial = apeval.evaluate(problem_of(name), method, **asked)
    spread = apeval.evaluate(problem_of(name), method, **asked, backend="processes", workers=2)
    assert told(serial) == told(spread)


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.parametrize("method", ["ape", "mc"])
def test_ray_gives_the_bits_of_serial(method: str) -> None:
    asked: dict[str, Any] = {"method": method, "steps": 800, "seed": 5}
    serial = apeval.evaluate(problem_of("gauss"), **asked)
    spread = apeval.evaluate(problem_of("gauss"), **asked, backend="ray", workers=2)
    assert told(serial) == told(spread)


def test_looks_stand_where_they_stand_whoever_simulates() -> None:
    asked: dict[str, Any] = {"target_error": 0.2, "episodes": 3_000, "seed": 2}
    serial = apeval.evaluate(problem_of("gauss"), "ape", **asked)
    spread = apeval.evaluate(problem_of("gauss"), "ape", **asked, backend="processes", workers=2)
    assert serial.target is not None
    assert serial.target.looks >= 1
    assert told(serial) == told(spread)


def test_a_block_is_part_of_what_is_asked() -> None:
    small = apeval.evaluate(problem_of("gauss"), "mc", episodes=100, block=7)
    large = apeval.evaluate(problem_of("gauss"), "mc", episodes=100, block=64)
    assert (small.block, large.block) == (7, 64)
    assert small.estimate == large.estimate  # NumPy's digits do not depend on the block


class OutOfOrder:
    """A pool that does nothing until it must, and then begins with the last block."""

    capacity, expendable = 4, False

    def __init__(self, problem: Problem, key: Any) -> None:
        self.problem, self.key, self.tasks = problem, key, {}  # type: ignore[var-annotated]
        self.done: dict[int, Episodes] = {}
        self.most = 0

    def start(self, problem: Problem, key: Any, time_limit: float | None) -> OutOfOrder:
        return self

    def submit(self, task: Task) -> int:
        self.tasks[task.first] = task
        self.most = max(self.most, len(self.tasks))
        return task.first

    def result(self, ticket: int) -> Episodes | Trouble:
        for first in sorted(self.tasks, reverse=True):
            self.done[first] = self.tasks.pop(first).simulate(self.problem, self.key)
        return self.done.pop(ticket)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("budget", [{"steps": 900}, {"episodes": 233}])
@pytest.mark.parametrize("name", ["gauss", "walk"])
def test_blocks_under_way_change_nothing(name: str, budget: dict[str, int]) -> None:
    """Speculation is never wrong: the same blocks, of the same sizes, and the budget holds."""
    problem, key = problem_of(name), make_key(3)

    def sizes(pool: Any) -> tuple[list[int], Simulation]:
        source = EpisodeSource(problem, key, *([] if pool is None else [pool]))
        simulation = Simulation(problem, key, Budget(**budget), source=source)
        flow, found = StageBlocks(simulation, only(Nominal())), []
        while (block := flow.next()) is not None:
            found.append((block.n, block.ids.tolist(), block.s_end.tolist()))
        return found, simulation

    pool = OutOfOrder(problem, key)
    (serial, one), (spread, other) = sizes(None), sizes(pool)
    assert serial == spread
    assert (one.steps, one.episodes) == (other.steps, other.episodes)
    assert one.steps <= budget.get("steps", 10**9)
    if name == "gauss" or "episodes" in budget:  # else no block is certain: there is no horizon
        assert pool.most > 1


def test_a_problem_that_cannot_be_sent_is_one_clear_line() -> None:
    lock = threading.Lock()

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        with lock:
            return x + a_E

    stuck = replace(problem_of("gauss"), step=step)
    with pytest.raises(ApevalError, match=r'cannot be sent to a worker .*`backend="serial"`'):
        apeval.evaluate(stuck, "mc", episodes=20, backend="processes", workers=1)


def test_names_of_backends() -> None:
    assert backend_names() == ["processes", "ray", "serial"]
    with pytest.raises(ApevalError, match="Did you mean 'processes'"):
        find_backend("proceses")
    with pytest.raises(ApevalError, match="workers must be a whole number from 1"):
        find_backend("processes", workers=0)
    with pytest.raises(ApevalError, match='add `backend="processes"`'):
        find_backend("serial", workers=4)
    with pytest.raises(ApevalError, match='add `backend="ray"`'):
        find_backend("processes", address="auto")
    with pytest.raises(ApevalError, match="a name"):
        find_backend(3)  # type: ignore[arg-type]


def test_workers_use_one_thread_and_keep_their_environments(tmp_path: Path) -> None:
    file = tmp_path / "told.py"
    file.write_text(
        "import os, numpy as np, apeval\n"
        "BUILT = []\n"
        "class Env:\n"
        "    def __init__(self):\n"
        "        BUILT.append(1)\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        self.k = 0\n"
        "        return self.told(), {}\n"
        "    def step(self, action):\n"
        "        self.k += 1\n"
        "        return self.told(), 0.0, False, self.k == 3, {}\n"
        "    def told(self):\n"
        "        return np.array([os.getpid(), len(BUILT), float(os.environ['OMP_NUM_THREADS'])])\n"
        "def problem():\n"
        "    return apeval.from_gymnasium(Env, nominal=apeval.Normal(0.0, 1.0), horizon=3,\n"
        "        failed=lambda obs, terminated, truncated, info: False, chunk=4)\n"
    )
    kept = apeval.InMemory(apeval.make(str(file)))
    run: Any = {"backend": "processes", "workers": 2, "check": False}  # which would find BUILT
    apeval.evaluate(kept.of, "mc", episodes=80, recorder=kept, **run)
    pid, built, threads = kept.episodes.s.T
    assert os.getpid() not in pid
    assert built.max() == 4  # one environment for each episode of a block, used again
    assert set(threads) == {1.0}
