"""What `ape` adds to the simulation, per decision: its processor time less that of `mc`, which
simulates as much and learns nothing."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from apeval.environments import make
from apeval.problem.problem import Problem
from apeval.run.evaluate import evaluate
from apeval_bench.registry import ExperimentRequest

_MS_BAR = 0.3
_RUNS = 10
#: Fits cost the most per decision where there are the fewest decisions.
_CASES = (
    ("int-v1", "steps", 3_000),
    ("int-v0", "steps", 3_000),
    ("int-v1", "steps", 10_000),
    ("minigrid-s1", "steps", 9_000),
    ("pendulum", "episodes", 5_000),
    ("pendulum-discrete", "episodes", 5_000),
    ("gaussian-sum-two", "episodes", 5_000),
)


def measure(request: ExperimentRequest) -> list[dict[str, Any]]:
    """Each problem, `ape` and `mc` taking turns over the same seeds."""
    rows = []
    for k, (name, unit, number) in enumerate(_CASES):
        problem = make(name)
        for method in ("ape", "mc"):
            _milliseconds(
                problem, method, unit, number, 0
            )  # import and compile before the clock starts
        added = []
        for seed in range(request.first_seed, request.first_seed + _RUNS):
            ours, plain = (_milliseconds(problem, m, unit, number, seed) for m in ("ape", "mc"))
            added.append(ours - plain)
        rows.append(
            {
                "problem": name, "budget": f"{number:,} {unit}", "bar": _MS_BAR, "runs": _RUNS,
                "ms_per_decision": float(np.mean(added)), "most": max(added),
            }
        )  # fmt: skip
        request.tick(f"ape's own time on {name}", k + 1, len(_CASES))
    return rows


def as_text(rows: list[dict[str, Any]]) -> str:
    """The measurement as a table."""
    lines = [
        "| what `ape` adds to `mc` | budget | ms per decision | in the slowest run | bar |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['problem']} | {row['budget']} | {row['ms_per_decision']:.3f} "
            f"| {row['most']:.3f} | {row['bar']:g} |"
        )
    return "\n".join([*lines, "", f"Processor time, mean of {_RUNS} runs of each."])


def _milliseconds(problem: Problem, method: str, unit: str, number: int, seed: int) -> float:
    """Processor time per decision of a whole evaluation."""
    budget: dict[str, Any] = {unit: number}
    started = time.process_time()
    steps = evaluate(problem, method, **budget, seed=seed).steps
    return 1e3 * (time.process_time() - started) / steps
