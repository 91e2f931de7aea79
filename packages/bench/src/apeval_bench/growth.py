"""Time and memory of a whole run as decisions and dimensions grow."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.truth import Truth
from apeval.run.evaluate import evaluate
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment
from apeval_bench.timed import Timed

_STEPS, _DIMENSIONS, _STEPS_OF_THESE = (1_000, 10_000, 100_000, 1_000_000), (1, 4, 16, 64), 20_000
_DECISIONS, _BETA = 10, 4.0
_MOST_MEMORY = 2.0  # GiB
_MOST_GROWTH = 12.0  # of time, from one size to the next one that is ten times as large
_CHILD = "import sys; from apeval_bench.growth import child; child(sys.argv[1])"


@experiment("bench", "growth", "time and memory as decisions and dimensions grow", seeds=1)
def growth(request: ExperimentRequest) -> ExperimentReport:
    """Every run in a process of its own, whose memory nobody else has used."""
    cases = [{"steps": s, "dimensions": 1} for s in _STEPS]
    cases += [{"steps": _STEPS_OF_THESE, "dimensions": d} for d in _DIMENSIONS]
    rows = []
    for k, case in enumerate(cases):
        request.tick(f"{case['steps']:,} decisions, {case['dimensions']} dimensions", k, len(cases))
        rows.append(_measured({**case, "seed": request.first_seed}))
    by_steps = rows[: len(_STEPS)]
    pairs = pairwise(by_steps[1:])  # below 10⁴ what is done once counts most
    passed = all(r["gib"] <= _MOST_MEMORY and r["covers"] for r in rows) and all(
        b["seconds"] <= _MOST_GROWTH * a["seconds"] for a, b in pairs
    )
    return ExperimentReport({"rows": rows}, _as_text(rows), passed=passed)


def problem(dimensions: int) -> Problem:
    """Fails when the sum of all components of all disturbances lies β standard deviations out."""
    level = _BETA * float(np.sqrt(_DECISIONS * dimensions))
    return Problem(
        nominal=Normal(0.0, np.ones(dimensions)),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E.sum(axis=1, keepdims=True),
        failed=lambda x: x[:, 0] > level,
        judge_at_end=True,
        margin=lambda x: level - x[:, 0],
        horizon=_DECISIONS,
        chunk=1_024,
        truth=lambda: Truth(float(ndtr(-_BETA)), 0.0, "closed form"),
    )


def child(text: str) -> None:
    """One run; what it took goes to stdout."""
    case = json.loads(text)
    evaluate(problem(case["dimensions"]), steps=500)  # what is loaded and compiled once
    clock, started = Timed(), time.perf_counter()
    result = evaluate(
        problem(case["dimensions"]), steps=case["steps"], seed=case["seed"], backend=clock
    )
    seconds = time.perf_counter() - started
    lo, hi = result.interval
    told = {
        "steps": case["steps"],
        "dimensions": case["dimensions"],
        "seconds": seconds,
        "simulator": clock.seconds,
        "gib": _peak(),
        "estimate": result.estimate,
        "covers": bool(lo <= (result.truth or 0.0) <= hi),
    }
    sys.stdout.write(json.dumps(told))


def _peak() -> float:
    """The most memory that this process ever had, in GiB."""
    status = Path("/proc/self/status")
    if status.exists():  # else a parent's peak would count
        line = next(v for v in status.read_text().splitlines() if v.startswith("VmHWM"))
        return int(line.split()[1]) / 2.0**20
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2.0**30


def _measured(case: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-c", _CHILD, json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _as_text(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| decisions | dimensions | seconds | of these the simulator | memory, GiB | estimate "
        "| truth in the interval |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r['steps']:,} | {r['dimensions']} | {r['seconds']:.2f} | {r['simulator']:.2f} "
            f"| {r['gib']:.2f} | {r['estimate']:.3e} | {'yes' if r['covers'] else 'no'} |"
        )
    lines.append(f"\nTruth {ndtr(-_BETA):.3e}; `ape` on a simulator that costs nearly nothing.")
    return "\n".join(lines)
