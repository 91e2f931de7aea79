"""What each part of a method is worth: of `ape-scalable`, one change taken back or one option at a
time; of `ape` (`--methods ape`), one heuristic at a time taken out."""

from __future__ import annotations

from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval_bench.cells import run_cells
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment
from apeval_bench.study import STEPS, cell, code, run, truth_of

SCALABLE, OURS = "ape-scalable", "ape"
LABEL = "ape-scalable cross-entropy"
PROBLEMS = ("int-v0", "int-v1")

#: Settings that differ from the preset's; `view` is what the method sees.
CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "the paper's state": {"view": "paper"},
    "`time_in_state=no`": {"time_in_state": False},
    "`scaled_state=no`": {"scaled_state": False},
    "`value_space=raw`": {"value_space": "raw"},
    "`n_step=1`": {"n_step": 1},
    "`value_space=raw`, `n_step=1`": {"value_space": "raw", "n_step": 1},
    "`representatives=early-stop`": {"representatives": "early-stop"},
    "`value=network`": {"value": "network"},
    "`value=network`, `n_step=1`": {"value": "network", "n_step": 1},
    "`uncertainty=yes`": {"uncertainty": True},
    "`policy_update=reverse-kl`": {"policy_update": "reverse-kl"},
    "`policy_update=reverse-kl`, `target_density=current`": {
        "policy_update": "reverse-kl",
        "target_density": "current",
    },
    "`flow=spline`": {"flow": "spline"},
    "`warm_start=pretrain`": {"warm_start": "pretrain"},
    "`explore_share=0`": {"explore_share": 0.0},
}


@experiment(
    "bench",
    "ablation",
    "what each part of ape-scalable, or of ape, is worth",
    seeds=5,
    selects=True,
)
def ablation(request: ExperimentRequest) -> ExperimentReport:
    """Of `ape-scalable`: TD value, trajectory-weight estimate and failure rate on the
    intersections. Of `ape`: a verdict per heuristic, on tuning problems."""
    asked = request.methods or (SCALABLE,)
    if len(asked) > 1 or asked[0] not in (SCALABLE, OURS) or request.held_out:
        raise ApevalError(f"an ablation takes one method, --methods {SCALABLE} or --methods {OURS}")
    if asked == (OURS,):
        from apeval_bench.knockouts.report import report as of_heuristics

        return of_heuristics(request)
    if request.rows:
        raise ApevalError("--rows takes knock-outs and tuning problems of ape: add --methods ape")
    return report(request, STEPS)


def report(
    request: ExperimentRequest, steps: dict[str, int], workers: int | None = None
) -> ExperimentReport:
    """A row per change, with columns for each problem."""
    wanted = [(p, what) for p in PROBLEMS for what in CHANGES]
    cells = [changed(p, what, seed, steps[p]) for p, what in wanted for seed in request.all_seeds]
    outcomes = run_cells("ablation", run, cells, request, workers, **code())
    n = request.seeds
    rows = [
        {"problem": p, "change": what, **summary(outcomes[k * n : (k + 1) * n], truth_of(p))}
        for k, (p, what) in enumerate(wanted)
    ]
    data = {"seeds": [request.all_seeds[0], request.all_seeds[-1]], "steps": steps, "rows": rows}
    return ExperimentReport(data, as_text(data))


def changed(problem: str, what: str, seed: int, steps: int) -> dict[str, Any]:
    """A run of Table II with a change."""
    plain = cell(problem, LABEL, seed, steps)
    other = dict(CHANGES[what])
    view = other.pop("view", plain["view"])
    return plain | {"view": view, "settings": plain["settings"] | other}


def summary(outcomes: list[dict[str, Any]], truth: float) -> dict[str, Any]:
    """v(s0) over the truth, relative RMSE of the trajectory-weight estimate, late rate."""
    values = [o["value"] / truth for o in outcomes if o["value"] is not None]
    error = np.array([o["estimate"] / truth - 1.0 for o in outcomes])
    return {
        "value": [float(x) for x in np.quantile(values, (0.0, 0.5, 1.0))] if values else None,
        "relative_rmse": float(np.sqrt(np.mean(error**2))),
        "late_rate": float(np.mean([o["late_rate"] or 0.0 for o in outcomes])),
        "seconds": float(np.mean([o["seconds"] for o in outcomes])),
    }


def as_text(data: dict[str, Any]) -> str:
    """The table."""
    lines = [
        "| problem | changed | TD value / v\\*: median (least … most) | relative RMSE of the "
        "trajectory-weight estimate | late rate | s per run |",
        "|---|---|---|---|---|---|",
    ]
    for r in data["rows"]:
        value = "none"
        if r["value"] is not None:
            low, middle, high = (f"{x:.2g}" for x in r["value"])
            value = f"{middle} ({low} … {high})"
        lines.append(
            f"| {r['problem']} | {r['change']} | {value} | {r['relative_rmse']:.2g} "
            f"| {r['late_rate']:.2f} | {r['seconds']:.0f} |"
        )
    first, last = data["seeds"]
    lines.append(
        "\n`preset=cross-entropy` with the settings of Table II but for the change; seeds "
        f"{first} … {last}, {data['steps'][PROBLEMS[0]]:,} steps."
    )
    return "\n".join(lines)
