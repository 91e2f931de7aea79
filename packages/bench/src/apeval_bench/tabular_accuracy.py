"""Accuracy and coverage of `ape-tabular` where the truth is exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from apeval.environments import make
from apeval.run.evaluate import evaluate
from apeval.run.result import Result
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

CASES = (
    ("walk", 20_000),
    ("queue", 20_000),
    ("minigrid-s1", 9_000),
    ("minigrid-stuck", 9_000),
    ("minigrid-stuck", 200_000),
)


@experiment("bench", "tabular", "ape-tabular: relative error and coverage, exact truths", seeds=100)
def tabular_accuracy(request: ExperimentRequest) -> ExperimentReport:
    """Relative RMSE, coverage, and how many runs cover or warn."""
    cases: list[dict[str, Any]] = []
    done, total = 0, len(CASES) * request.seeds
    for name, steps in CASES:
        problem = make(name)
        truth = problem.truth().value if problem.truth else float("nan")
        results = []
        for seed in request.all_seeds:
            results.append(evaluate(problem, "ape-tabular", steps=steps, seed=seed))
            done += 1
            request.tick(f"{name} {steps:,}", done, total)
        cases.append({"problem": name, "steps": steps, "truth": truth, **summary(results, truth)})
    data = {"seeds": [request.all_seeds[0], request.all_seeds[-1]], "cases": cases}
    return ExperimentReport(data, _as_text(data))


def summary(results: list[Result], truth: float) -> dict[str, float]:
    """Errors relative to the truth, coverage and warnings over many seeds."""
    error = np.array([r.estimate / truth - 1.0 for r in results])
    covers = [r.interval[0] <= truth <= r.interval[1] for r in results]
    return {
        "runs": len(results),
        "relative_rmse": float(np.sqrt(np.mean(error**2))),
        "relative_bias": float(error.mean()),
        "largest_error": float(np.abs(error).max()),
        "covered": sum(covers),
        "covered_or_warned": sum(
            c or bool(r.warnings) for c, r in zip(covers, results, strict=True)
        ),
        "warned": sum(bool(r.warnings) for r in results),
        "relative_width": float(
            np.median([(r.interval[1] - r.interval[0]) / truth for r in results])
        ),
        "learned_value": float(np.mean([(r.value or 0.0) / truth for r in results])),
        "seconds": float(np.mean([r.seconds for r in results])),
    }


def _as_text(data: dict[str, Any]) -> str:
    lines = [
        "| problem | steps | truth | relative RMSE | bias | largest | covers | covers or warns "
        "| interval width | learned v(s0)/truth |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for c in data["cases"]:
        lines.append(
            f"| {c['problem']} | {c['steps']:,} | {c['truth']:.4e} | {c['relative_rmse']:.2%} | "
            f"{c['relative_bias']:+.2%} | {c['largest_error']:.1%} | {c['covered']}/{c['runs']} | "
            f"{c['covered_or_warned']}/{c['runs']} | {c['relative_width']:.1%} | "
            f"{c['learned_value']:.3f} |"
        )
    lines.append(f"\nSeeds {data['seeds'][0]} … {data['seeds'][1]}, 95 % intervals, defaults.")
    return "\n".join(lines)
