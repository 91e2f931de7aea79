"""What `ape` loses against Monte Carlo where the disturbance does not influence failures."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from apeval.environments import make
from apeval.learn.method import find_method
from apeval.problem.draws import make_key
from apeval.run.frozen_stage import run_frozen_stage
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.cells import Cell, run_cells
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_ROWS = ((0.1, 300), (0.1, 1_000), (0.03, 1_000), (0.01, 2_000), (0.003, 3_000))


@experiment("bench", "counting", "what ape loses where the disturbance does not matter", seeds=100)
def counting(request: ExperimentRequest) -> ExperimentReport:
    """Standard errors relative to those of Monte Carlo with the same budget."""
    cells = [{"v": v, "episodes": n, "seed": s} for v, n in _ROWS for s in request.all_seeds]
    outcomes = iter(run_cells("counting", measure, cells, request))
    rows = [_row(v, n, [next(outcomes) for _ in request.all_seeds]) for v, n in _ROWS]
    lines = [
        "| v | episodes | failures that Monte Carlo shows | standard error / Monte Carlo's "
        "| median | 90 % quantile |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['v']} | {r['episodes']:,} | {r['shown']:.0f} | {r['ratio']:.2f} "
        f"| {r['median']:.2f} | {r['q90']:.2f} |"
        for r in rows
    ]
    first, last = request.all_seeds[0], request.all_seeds[-1]
    lines.append(
        f"\n`chance-sum` with `control=0`; seeds {first} to {last}. Failures do not depend on the "
        "weights, so that a run's variance follows from its weights alone. The first ratio is that "
        "of root mean squares."
    )
    return ExperimentReport({"seeds": [first, last], "rows": rows}, "\n".join(lines))


def measure(cell: Cell) -> dict[str, Any]:
    """Variance of one run's estimate relative to Monte Carlo's, v(1−v)·Σ(w/n)² to v(1−v)/N."""
    method = find_method("ape")
    problem = make("chance-sum", beta=-float(ndtri(cell["v"])), control=0.0).blind()
    simulation = Simulation(problem, make_key(cell["seed"]), Budget(episodes=cell["episodes"]))
    learner = method.start(problem, method.config())
    while learner.advance(simulation):
        pass
    frozen = run_frozen_stage(learner.proposal(), simulation, 0.95, counted=learner.counted())
    weights = frozen.sample.weights / frozen.sample.n
    return {"relative_variance": cell["episodes"] * float(weights @ weights)}


def _row(v: float, n: int, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    variance = np.array([o["relative_variance"] for o in outcomes])
    return {
        "v": v,
        "episodes": n,
        "shown": v * n,
        "ratio": float(np.sqrt(variance.mean())),
        "median": float(np.sqrt(np.median(variance))),
        "q90": float(np.sqrt(np.quantile(variance, 0.9))),
    }
