"""Intervals when a part of the episodes does not come back, and those more often that fail."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from apeval.problem.draws import Draws
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.types import Array
from apeval.run.evaluate import evaluate
from apeval_bench.cells import Cell, run_cells
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_BETA, _DECISIONS, _MASS = 2.5, 4, 0.05
_METHODS = {"mc": 3_000, "ape": 3_000}
_ROOM, _COVERED = 1.5, 0.9


@experiment("bench", "unresolved", "coverage and width with 5 % of episodes unresolved", seeds=100)
def unresolved(request: ExperimentRequest) -> ExperimentReport:
    """A known truth, with and without faults that go along with failure."""
    methods = request.methods or tuple(_METHODS)
    cells = [{"method": m, "seed": s} for m in methods for s in request.all_seeds]
    outcomes = run_cells("unresolved", measure, cells, request)
    rows = [_row(m, [o for o in outcomes if o["method"] == m]) for m in methods]
    lines = [
        "| method | episodes | covers | mean width | without faults | bar | widths within the bar "
        "| unresolved, reported |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['method']} | {r['episodes']:,} | {r['covers']} of {r['seeds']} | {r['width']:.4f} "
        f"| {r['width_without']:.4f} | {r['bar']:.4f} | {r['within']} of {r['seeds']} "
        f"| {r['mass']:.4f} |"
        for r in rows
    ]
    lines.append(
        f"\nTruth {truth():.6f}; nominal probability of a fault {_MASS}. The bar is the mean width "
        f"without faults plus {_ROOM} times that."
    )
    passed = all(r["covers"] >= _COVERED * r["seeds"] and r["width"] <= r["bar"] for r in rows)
    return ExperimentReport(
        {"truth": truth(), "mass": _MASS, "rows": rows}, "\n".join(lines), passed=passed
    )


def truth() -> float:
    """P(S > β√T) for a sum of T standard normals."""
    return float(ndtr(-_BETA))


def problem(faults: bool) -> Problem:
    """A sum of normals; with faults it raises where the first one is among the largest 5 %."""
    level, worst = _BETA * float(np.sqrt(_DECISIONS)), float(ndtri(1.0 - _MASS))

    def step(x: Array, a_A: Any, a_E: Array, draws: Draws) -> Array:
        if faults and draws.t == 0 and bool((a_E > worst).any()):
            raise ArithmeticError("the solver does not converge")
        return np.asarray(x + a_E)

    return Problem(
        nominal=Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=step,
        failed=lambda x: x[:, 0] > level,
        judge_at_end=True,
        margin=lambda x: level - x[:, 0],
        horizon=_DECISIONS,
        chunk=16,
    )


def measure(cell: Cell) -> dict[str, Any]:
    """One seed, with and without faults."""
    method, seed = cell["method"], cell["seed"]
    asked: dict[str, Any] = {"episodes": _METHODS.get(method, 3_000), "seed": seed}
    plain = evaluate(problem(False), method, **asked)
    faulty = evaluate(problem(True), method, **asked, on_fault="unresolved", retries=0)
    return {
        "method": method,
        "episodes": asked["episodes"],
        "interval": list(faulty.interval),
        "without": list(plain.interval),
        "mass": faulty.unresolved["probability"],
        "unresolved": faulty.unresolved["episodes"],
    }


def _row(method: str, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    width = np.array([o["interval"][1] - o["interval"][0] for o in outcomes])
    without = float(np.mean([o["without"][1] - o["without"][0] for o in outcomes]))
    bar = without + _ROOM * _MASS
    return {
        "method": method,
        "episodes": outcomes[0]["episodes"],
        "seeds": len(outcomes),
        "covers": sum(o["interval"][0] <= truth() <= o["interval"][1] for o in outcomes),
        "width": float(width.mean()),
        "width_without": without,
        "bar": bar,
        "within": int((width <= bar).sum()),
        "mass": float(np.mean([o["mass"] for o in outcomes])),
    }
