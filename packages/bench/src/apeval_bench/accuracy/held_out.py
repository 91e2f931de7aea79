"""Intersection geometries that no one has tuned on: drawn from a fixed seed, solved by DP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from apeval_bench.accuracy.table import FIGURES, TableRow
from apeval_bench.cells import Cell, run_cells
from apeval_bench.registry import ExperimentRequest

SEED, COUNT, LOW, HIGH = 2_024, 10, 1e-7, 1e-3
ALLOWANCE = 1.5
"""× the figure of int-v1, in the median geometry."""
_CANDIDATES = 12  # drawn and screened together
_CROSSING, _SPREAD = 115.0, 3.0  # where the ego is at the end, in metres along its route


def candidate(k: int) -> dict[str, float]:
    """The k-th geometry drawn, as settings of int-v1."""
    rng = np.random.default_rng([SEED, k])
    decisions = int(rng.integers(3, 6))
    ego_speed, challenger_speed = rng.uniform(8.0, 12.0), rng.uniform(6.0, 10.0)
    ego_end, challenger_end = _CROSSING + rng.uniform(-_SPREAD, _SPREAD), rng.uniform(97.0, 106.0)
    return {
        "decisions": decisions,
        "ego_speed": round(ego_speed, 3),
        "ego_start": round(ego_end - ego_speed * decisions, 3),
        "challenger_speed": round(challenger_speed, 3),
        "challenger_start": round(challenger_end - challenger_speed * decisions, 3),
        "std": round(rng.uniform(0.4, 0.6), 3),
    }


def solve(cell: Cell) -> dict[str, Any]:
    """A candidate's truth: coarse where it is out of range, None for an impossible geometry."""
    from apeval.errors import ProblemError
    from apeval_paper.environments.intersection.dp import Grid
    from apeval_paper.environments.intersection.dp import solve as by_dp
    from apeval_paper.environments.intersection.geometry import V1
    from apeval_paper.environments.intersection.ground_truth import truth

    try:
        g = V1.changed(**candidate(cell["candidate"]))
    except ProblemError:
        return {"truth": None}
    screened = by_dp(g, Grid(u=120, v=40)).v0
    if not 0.5 * LOW <= screened <= 2.0 * HIGH:
        return {"truth": screened}
    known = truth(g)
    return {"truth": known.value, "standard_error": known.standard_error}


def rows(request: ExperimentRequest) -> list[TableRow]:
    """The first geometries drawn with a truth in the range, each at both budgets."""
    accepted: dict[int, float] = {}
    first = 0
    while len(accepted) < COUNT:
        batch = range(first, first + _CANDIDATES)
        cells = [{"problem": "held-out geometry", "candidate": k} for k in batch]
        code = ("apeval_paper/environments/intersection",)
        solved = run_cells("held-out", solve, cells, request, of=code)
        for k, outcome in zip(batch, solved, strict=True):
            if outcome["truth"] is not None and LOW <= outcome["truth"] <= HIGH:
                accepted[k] = outcome["truth"]
        first += _CANDIDATES
    return [
        TableRow(
            f"held-out-{k}-{base.steps}",
            "int-v1",
            steps=base.steps,
            settings=candidate(k),
            known=known,
        )
        for base in _bases()
        for k, known in list(accepted.items())[:COUNT]
    ]


def _bases() -> list[TableRow]:
    return [row for row in FIGURES if row.key in ("int-v1-3000", "int-v1-10000")]


def verdict(measured: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Per budget and method: the median geometry against 1.5 × the figure of int-v1."""
    verdicts = []
    for base in _bases():
        mine = [r for r in measured if r["budget"] == base.budget]
        allowed = ALLOWANCE * (base.figure or 0.0)
        for name in sorted({name for r in mine for name in r["methods"]}):
            errors = [r["methods"][name]["relative_rmse"] for r in mine if name in r["methods"]]
            median = float(np.median(errors))
            verdicts.append(
                {
                    "budget": base.budget,
                    "method": name,
                    "geometries": len(errors),
                    "median_rmse": median,
                    "worst_rmse": max(errors),
                    "allowed": allowed,
                    "holds": median <= allowed,
                }
            )
    return verdicts


def as_text(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """The verdicts as a table."""
    lines = [
        "| decisions | method | geometries | median relative RMSE | worst | allowed | holds |",
        "|---|---|---|---|---|---|---|",
    ]
    for v in verdicts:
        lines.append(
            f"| {v['budget']} | {v['method']} | {v['geometries']} | {v['median_rmse']:.1%} "
            f"| {v['worst_rmse']:.1%} | {v['allowed']:.1%} | {'yes' if v['holds'] else 'no'} |"
        )
    return "\n".join(lines)
