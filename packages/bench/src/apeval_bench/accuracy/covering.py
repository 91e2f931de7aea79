"""`apeval bench coverage`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apeval.errors import ApevalError
from apeval.estimate.binomial import clopper_pearson
from apeval_bench.accuracy.runs import RunOutcome, methods_of, run_all, seeds_of
from apeval_bench.accuracy.statistics import summary
from apeval_bench.accuracy.table import FIGURES, FURTHER, OURS, TARGETS, TableRow, choose
from apeval_bench.registry import ExperimentReport, ExperimentRequest

WANTED = 0.92


def report(request: ExperimentRequest) -> ExperimentReport:
    """Coverage of the default method (or of those asked for), with its own uncertainty."""
    if request.held_out:
        raise ApevalError("bench accuracy --held-out shows the coverage of held-out geometries too")
    rows = choose(FIGURES + TARGETS + FURTHER, request.rows)
    names = request.methods or (OURS,)
    plan = [
        (row, name, seeds_of(request, row.coverage_share))
        for row in rows
        for name in methods_of(row, names)
    ]
    found = run_all(plan, request)
    measured = [_measured(row, name, found[row.key, name]) for row, name, _ in plan]
    data = {"seeds": [request.all_seeds[0], request.all_seeds[-1]], "rows": measured}
    wanted = {row.key for row in FIGURES + TARGETS}
    passed = all(r["holds"] for r in measured if r["row"] in wanted and r["method"] == OURS)
    return ExperimentReport(data, _as_text(data), passed)


def _measured(row: TableRow, name: str, outcomes: Sequence[RunOutcome]) -> dict[str, Any]:
    truth = row.truth()
    covered = [o.low <= truth <= o.high for o in outcomes]
    numbers = summary(outcomes, truth)
    return {
        "row": row.key,
        "budget": row.budget,
        "method": name,
        "truth": truth,
        "runs": len(outcomes),
        "covered": sum(covered),
        "coverage": numbers["coverage"],
        "coverage_interval": list(clopper_pearson(sum(covered), len(outcomes), 0.9)),
        "above": sum(o.low > truth for o in outcomes),
        "below": sum(o.high < truth for o in outcomes),
        "missed_without_warning": sum(
            not c and not o.warned for c, o in zip(covered, outcomes, strict=True)
        ),
        "warned": numbers["warned"],
        "relative_width": numbers["relative_width"],
        "episodes": numbers["episodes"],
        "holds": numbers["coverage"] >= WANTED,
    }


def _as_text(data: dict[str, Any]) -> str:
    lines = [
        "| problem | budget | method | truth | covers | 90 % interval | too high | too low "
        "| missed without warning | warned | median width | episodes | at least 92 % |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in data["rows"]:
        low, high = r["coverage_interval"]
        lines.append(
            f"| {r['row']} | {r['budget']} | {r['method']} | {r['truth']:.4g} "
            f"| {r['covered']}/{r['runs']} = {r['coverage']:.1%} | [{low:.1%}, {high:.1%}] "
            f"| {r['above']} | {r['below']} | {r['missed_without_warning']} | {r['warned']:.0%} "
            f"| {r['relative_width']:.3g} | {r['episodes']:,.0f} "
            f"| {'yes' if r['holds'] else 'no'} |"
        )
    lines.append(
        f"\nSeeds from {data['seeds'][0]}, at most to {data['seeds'][1]}; nominal confidence 95 %. "
        "Too high, too low: runs whose whole interval lies above or below the truth."
    )
    return "\n".join(lines)
