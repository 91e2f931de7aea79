"""The learner's own time per decision, in short episodes and in long ones."""

from __future__ import annotations

import time
from typing import Any

from apeval.environments import make
from apeval.problem.problem import Problem
from apeval.run.evaluate import evaluate
from apeval_bench.cells import Cell
from apeval_bench.knockouts.problems import regulator

CASES = ("T = 3 (int-v1, 3,000 decisions)", "T = 500 × 4 (regulator, 200 episodes)")
_BAR = {CASES[0]: 100.0, CASES[1]: 30.0}


def cells() -> list[Cell]:
    """A run of each case and method; the first of each only warms up."""
    return [{"problem": case, "seed": seed} for case in CASES for seed in (0, 1, 2)]


def measure(cell: Cell) -> dict[str, Any]:
    """Microseconds per decision that `ape` takes more than `mc`, which simulates as much."""
    short = cell["problem"] == CASES[0]
    problem = make("int-v1") if short else regulator(steps=500, channels=4)
    budget = {"steps": 3_000} if short else {"episodes": 200}
    if cell["seed"] == 0:
        _seconds(problem, "ape", {k: n // 4 for k, n in budget.items()}, 0)
    (ours, steps), (plain, others) = (
        _seconds(problem, m, budget, cell["seed"]) for m in ("ape", "mc")
    )
    return {"us_per_decision": 1e6 * (ours / steps - plain / others), "bar": _BAR[cell["problem"]]}


def _seconds(problem: Problem, method: str, budget: dict[str, int], seed: int) -> tuple[float, int]:
    started = time.process_time()
    steps = evaluate(problem, method, seed=seed, **budget).steps  # type: ignore[arg-type]
    return time.process_time() - started, steps
