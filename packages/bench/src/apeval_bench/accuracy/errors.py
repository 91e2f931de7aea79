"""`apeval bench accuracy`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval_bench.accuracy import held_out
from apeval_bench.accuracy.runs import RunOutcome, methods_of, run_all, seeds_of
from apeval_bench.accuracy.statistics import (
    bound_ratio,
    judge,
    modes_found,
    ratio,
    relative_errors,
    summary,
)
from apeval_bench.accuracy.table import OURS, ROWS, TableRow, choose
from apeval_bench.peers import MISSING, available
from apeval_bench.registry import ExperimentReport, ExperimentRequest

Found = Mapping[tuple[str, str], Sequence[RunOutcome]]


def report(request: ExperimentRequest) -> ExperimentReport:
    """The table, for the rows and methods asked for."""
    if request.held_out and request.rows:
        raise ApevalError("--held-out draws rows of its own: leave out --rows")
    rows = held_out.rows(request) if request.held_out else choose(ROWS, request.rows)
    plan = [
        (row, name, seeds_of(request, row.seed_share))
        for row in rows
        for name in methods_of(row, _methods(request))
    ]
    found = run_all(plan, request)
    data: dict[str, Any] = {
        "seeds": [request.all_seeds[0], request.all_seeds[-1]],
        "rows": [_measured(row, found) for row in rows],
    }
    if request.held_out:
        data["held_out"] = held_out.verdict(data["rows"])
    passed = all(r["ours"].get("holds", True) for r in data["rows"] if "ours" in r)
    if request.held_out:
        passed = all(v["holds"] for v in data["held_out"])
    return ExperimentReport(data, _as_text(data), passed)


def _methods(request: ExperimentRequest) -> Sequence[str]:
    """Held-out geometries are for the default method, unless others are asked for."""
    return request.methods or ((OURS,) if request.held_out else ())


def _measured(row: TableRow, found: Found) -> dict[str, Any]:
    truth = row.truth()
    mine = {name: found[key, name] for key, name in found if key == row.key}
    measured: dict[str, Any] = {
        "row": row.key,
        "problem": row.problem,
        "settings": dict(row.settings),
        "budget": row.budget,
        "truth": truth,
        "figure": row.figure,
        "goal": row.goal,
        "methods": {name: summary(outcomes, truth) for name, outcomes in mine.items()},
    }
    if OURS in mine:
        measured["ours"] = _judged(row, mine[OURS], truth)
        measured["against"] = {
            name: _against(mine[OURS], outcomes, truth)
            for name, outcomes in mine.items()
            if name != OURS
        }
    return measured


def _against(
    ours: Sequence[RunOutcome], other: Sequence[RunOutcome], truth: float
) -> dict[str, Any]:
    if truth <= 0.0:
        return bound_ratio(ours, other)
    return ratio(relative_errors(ours, truth), relative_errors(other, truth))


def _judged(row: TableRow, outcomes: Sequence[RunOutcome], truth: float) -> dict[str, Any]:
    judged: dict[str, Any] = {}
    if row.figure is not None:
        judged |= judge(outcomes, truth, row.figure)
        if row.goal is not None:
            judged["goal_holds"] = judge(outcomes, truth, row.goal)["holds"]
    if row.modes:
        judged["modes_found"] = modes_found(outcomes, row.modes)
    return judged


def _as_text(data: dict[str, Any]) -> str:
    parts = [_ours_table(data["rows"]), _methods_table(data["rows"])]
    if "held_out" in data:
        parts.append(held_out.as_text(data["held_out"]))
    if not available():
        parts.append(MISSING + ".")
    first, last = data["seeds"]
    parts.append(
        f"Seeds from {first}, at most to {last}; 95 % intervals; every method with its defaults. "
        "In brackets 90 % bootstrap intervals. Peers run at the same number of episodes."
    )
    return "\n\n".join(part for part in parts if part)


def _ours_table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        f"| problem | budget | truth | figure | `{OURS}`: relative RMSE | 90 % quantile | covers "
        "| warned | holds | goal | modes found | not worse than every other |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        if "ours" not in r:
            continue
        m, o = r["methods"][OURS], r["ours"]
        worse = [name for name, a in r["against"].items() if not a["not_worse"]]
        lines.append(
            f"| {r['row']} | {r['budget']} | {r['truth']:.4g} | {_share(r['figure'])} "
            f"| {m['relative_rmse']:.1%} {_range(m['rmse_interval'])} | {m['q90_error']:.1%} "
            f"| {m['coverage']:.1%} | {m['warned']:.0%} | {_yes(o.get('holds'))} "
            f"| {_yes(o.get('goal_holds'))} | {_share(o.get('modes_found'))} "
            f"| {'worse than ' + ', '.join(worse) if worse else _yes(bool(r['against']) or None)} |"
        )
    return "\n".join(lines) if len(lines) > 2 else ""


def _methods_table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| problem | budget | method | runs | relative RMSE | mean error | 90 % quantile | bias "
        f"| covers | width | failure rate | warned | seconds | RMSE({OURS})/RMSE |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        for name, m in r["methods"].items():
            missing = m["without_estimate"]
            runs = f"{m['runs']}" + (f" ({missing} without estimate)" if missing else "")
            lines.append(
                f"| {r['row']} | {r['budget']} | {name} | {runs} "
                f"| {m['relative_rmse']:.3g} {_range(m['rmse_interval'], '.3g')} "
                f"| {m['mean_error']:.3g} | {m['q90_error']:.3g} | {m['bias']:+.3g} "
                f"| {m['coverage']:.1%} | {m['relative_width']:.3g} | {m['failure_rate']:.3g} "
                f"| {m['warned']:.0%} | {m['seconds']:.2f} "
                f"| {_ratio(r.get('against', {}).get(name))} |"
            )
    return "\n".join(lines)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if value > 1.0 else f"{value:.1%}"


def _yes(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"


def _range(interval: Sequence[float], digits: str = ".1%") -> str:
    low, high = interval
    return f"[{low:{digits}}, {high:{digits}}]"


def _ratio(against: Mapping[str, Any] | None) -> str:
    if against is None or against["ratio"] is None or not np.isfinite(against["ratio"]):
        return ""
    if against["interval"] is None:
        return f"{against['ratio']:.3g} (upper bounds)"
    return f"{against['ratio']:.3g} {_range(against['interval'], '.3g')}"
