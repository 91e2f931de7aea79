"""What the default method is made of, as a table with a verdict for every heuristic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval_bench.cells import run_cells
from apeval_bench.knockouts import speed
from apeval_bench.knockouts.plan import TASK, Found, choose, run_all
from apeval_bench.knockouts.problems import CLASSES, PROBLEMS
from apeval_bench.knockouts.replacing import KnockOut
from apeval_bench.knockouts.statistics import (
    LITTLE,
    MATTERS,
    POOLED,
    SINGLE,
    compared,
    log_ratios,
    pooled,
    silent,
    square,
    verdict,
    where_error_comes_from,
)  # fmt: skip
from apeval_bench.knockouts.text import as_text
from apeval_bench.registry import TUNING, ExperimentReport, ExperimentRequest


def report(request: ExperimentRequest) -> ExperimentReport:
    """A verdict per heuristic, the ratios behind it, and where the error comes from."""
    if request.all_seeds[-1] not in TUNING:
        raise ApevalError("an ablation decides what to change, so it is for tuning: add --tuning")
    knock_outs, problems = choose(request.rows)
    found = run_all(request, knock_outs, problems)
    timed = run_cells(f"{TASK}-speed", speed.measure, speed.cells(), request, 1)
    data: dict[str, Any] = {
        "seeds": [request.all_seeds[0], request.all_seeds[-1]],
        "rules": {
            "matters": MATTERS, "little": LITTLE, "confidence": SINGLE, "pooled": POOLED,
        },
        "problems": [_problem(p.name, found) for p in problems],
        "knock_outs": [_knock_out(k, found, number) for number, k in enumerate(knock_outs)],
        "speed": [
            {"case": case, **_mean([t for c, t in zip(speed.cells(), timed, strict=True)
                                    if c["problem"] == case])}
            for case in speed.CASES
        ],
    }  # fmt: skip
    return ExperimentReport(data, as_text(data))


def _problem(name: str, found: Found) -> dict[str, Any]:
    tuning, runs, known = PROBLEMS[name], found.plain[name], found.references[name]
    return {
        **tuning.identity,
        "class": tuning.kind,
        "runs": len(runs),
        "truth": known["truth"],
        "reference": dict(known),
        "expected_rmse": float(np.sqrt(np.mean([square(o) for o in runs]))),
        "rmse": float(np.sqrt(np.mean([o["error"] ** 2 for o in runs]))),
        "covered": sum(bool(o["covered"]) for o in runs),
        "silent": sum(silent(o) for o in runs),
        "lost_more_than_2_percent": sum(o["lost"] > 0.02 for o in runs),
        "seconds": float(np.mean([o["seconds"] for o in runs])),
        "parts": where_error_comes_from(runs, known["best"]),
    }


def _knock_out(knock_out: KnockOut, found: Found, number: int) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    logs: dict[str, list[Any]] = {}
    for at, ((name, problem), without) in enumerate(found.without.items()):
        if name != knock_out.name:
            continue
        plain, salt = found.plain[problem][: len(without)], 1000 * number + at
        rows.append({"problem": problem, **compared(without, plain, salt)})
        if rows[-1]["touched"]:
            squares = [[square(o) for o in outcomes] for outcomes in (without, plain)]
            kind = PROBLEMS[problem].kind
            logs.setdefault(kind, []).append(log_ratios(squares[0], squares[1], salt))
    touched = [row for row in rows if row["touched"]]
    together = pooled([one for of_class in logs.values() for one in of_class])
    return {
        "name": knock_out.name,
        "kind": knock_out.kind,
        "heuristic": knock_out.heuristic,
        "instead": knock_out.instead,
        "verdict": verdict(touched, together),
        "together": together,
        "classes": {kind: pooled(logs[kind]) for kind in CLASSES if kind in logs},
        "covered": _totals(touched, "covered"),
        "silent": _totals(touched, "silent"),
        "runs": sum(row["runs"] for row in touched),
        "seconds": _seconds(touched),
        "problems": rows,
    }


def _totals(rows: Sequence[Mapping[str, Any]], key: str) -> list[int]:
    return [sum(row[key][k] for row in rows) for k in (0, 1)]


def _seconds(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Time of a run without the heuristic over that with it, in the geometric mean."""
    ratios = [row["seconds"][0] / row["seconds"][1] for row in rows]
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None


def _mean(timed: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    return {key: float(np.mean([t[key] for t in timed])) for key in ("us_per_decision", "bar")}
