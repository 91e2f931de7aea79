"""`bench splitting`: is splitting unbiased, how near to its ideal, and do its intervals cover?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr

from apeval.environments import make
from apeval.errors import unknown
from apeval.estimate.genealogy import Genealogy
from apeval.learn.population import MarginScore, Population
from apeval.problem.draws import make_key
from apeval.problem.laws import Categorical, Normal
from apeval.problem.problem import Problem
from apeval.run.evaluate import evaluate
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.cells import Cell, run_cells
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

Case = Callable[[], tuple[Problem, float]]
"""A small problem with its exact failure probability."""
_PARTICLES = 12
_REPEATS = 20  # populations of a small problem for every seed
_ROWS = (
    ("gaussian-sum", 10_000),
    ("ar1", 10_000),
    ("ornstein-uhlenbeck", 10_000),
    ("cartpole", 1_000),
)
"""Problems and episode-equivalents, as decisions of episodes of full length."""


def _ties() -> tuple[Problem, float]:
    """A walk on whole numbers: many particles stand at the same level."""
    up, steps, top = 0.35, 8, 4
    p = np.zeros(2 * steps + 1)
    p[steps], total = 1.0, 0.0
    for _ in range(steps):
        p = up * np.roll(p, 1) + (1.0 - up) * np.roll(p, -1)
        total += p[steps + top]
        p[steps + top] = 0.0
    problem = Problem(
        nominal=Categorical([up, 1.0 - up]),
        reset=lambda draws: np.zeros((draws.n, 1), np.int64),
        step=lambda x, a_A, a_E, draws: x + 1 - 2 * a_E,
        failed=lambda x: x[:, 0] >= top,
        margin=lambda x: (top - x[:, 0]).astype(np.float64),
        horizon=steps,
    )
    return problem, float(total)


def _uncontrolled() -> tuple[Problem, float]:
    """A sum, judged at its end, of which a part is nobody's disturbance."""
    limit = 2.0 * np.sqrt(5.0)
    problem = Problem(
        nominal=Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E + 0.5 * draws.normal(1),
        failed=lambda x: x[:, 0] > limit,
        margin=lambda x: limit - x[:, 0],
        judge_at_end=True,
        horizon=4,
    )
    return problem, float(ndtr(-2.0))


def _extinction() -> tuple[Problem, float]:
    """A margin without slope, and a start that is a disturbance: all or nothing in one round."""
    problem = Problem(
        nominal=Normal(0.0, 1.0),
        initial=Normal(0.0, 1.0),
        reset=lambda draws, a_0: a_0,
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=lambda x: x[:, 0] > 3.0,
        margin=lambda x: np.where(x[:, 0] > 3.0, -1.0, 1.0),
        judge_at_end=True,
        horizon=3,
    )
    return problem, float(ndtr(-1.5))


PROBLEMS: dict[str, Case] = {
    "ties": _ties,
    "uncontrolled": _uncontrolled,
    "extinction": _extinction,
}


def one_population(problem: Problem, particles: int, seed: int) -> tuple[float, float]:
    """A population's estimate and its own estimate of its variance, without a floor."""
    simulation = Simulation(problem.blind(), make_key(seed), Budget(episodes=10**9))
    it = Population(simulation, only(Nominal()), particles, 0, MarginScore())
    failed = [it.advance().failed]
    while not it.over:
        failed.append(it.advance().failed)
    parts = np.where(np.concatenate(failed), np.exp(it.log_weight), 0.0)
    n = len(parts)
    descent = Genealogy(
        np.zeros(n, np.int64), it.family, np.zeros(n, bool), it.log_pairs, np.zeros(n, np.int64)
    )
    _, families = descent.families(parts)
    total, D = float(parts.sum()), float(np.exp(it.log_pairs[-1]))
    return total, D * float(families @ families) - (D - 1.0) * total**2


@experiment("bench", "splitting", "bias, error and coverage of splitting", seeds=100, selects=True)
def splitting(request: ExperimentRequest) -> ExperimentReport:
    """Against exact values, against the ideal error, and against Monte Carlo."""
    known = [*PROBLEMS, *(k for k, _ in _ROWS)]
    wanted = request.rows or known
    for name in wanted:
        if name not in known:
            raise unknown("row", name, known)
    exact = [k for k in PROBLEMS if k in wanted]
    whole = [(k, n) for k, n in _ROWS if k in wanted]
    small = [{"problem": k, "seed": s} for k in exact for s in request.all_seeds]
    large = [{"problem": k, "episodes": n, "seed": s} for k, n in whole for s in request.all_seeds]
    populations = iter(run_cells("splitting-populations", measure_small, small, request))
    runs = iter(run_cells("splitting-runs", measure_run, large, request))
    bias = [_bias(k, [next(populations) for _ in request.all_seeds]) for k in exact]
    rows = [_row(k, n, [next(runs) for _ in request.all_seeds]) for k, n in whole]
    lines = [
        f"| {_PARTICLES} particles | exact | mean of populations | standard errors off "
        "| variance between / their own |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {b['problem']} ({b['populations']:,}) | {b['truth']:.4e} | {b['mean']:.4e} "
        f"| {b['errors']:+.1f} | {b['between'] / b['own']:.2f} |"
        for b in bias
    ]
    lines += [
        "",
        "| problem | episodes | truth | relative RMSE | ideal √(−log p / N) | RMSE / ideal "
        "| Monte Carlo's variance / ours | covered | without failures |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['problem']} | {r['episodes']:,} | {r['truth']:.2e}{'' if r['known'] else ' (mean)'} "
        f"| {r['rmse']:.3f} "
        f"| {r['ideal']:.3f} | {r['rmse'] / r['ideal']:.2f} | {r['gain']:.1f} "
        f"| {_covered(r)} | {r['empty']:.0%} |"
        for r in rows
    ]
    first, last = request.all_seeds[0], request.all_seeds[-1]
    lines.append(
        f"\nSeeds {first} to {last}. Episodes are budgets in decisions, of so many episodes of "
        "full length. N of the ideal is the number of roots that count; a score that orders "
        "states as the failure probability does would reach it. Where no truth is known, the "
        "mean of the runs stands in."
    )
    data = {"seeds": [first, last], "bias": bias, "rows": rows}
    return ExperimentReport(data, "\n".join(lines))


def measure_small(cell: Cell) -> dict[str, Any]:
    """Populations of a small problem."""
    problem, _ = PROBLEMS[cell["problem"]]()
    first = cell["seed"] * _REPEATS
    found = [one_population(problem, _PARTICLES, first + k) for k in range(_REPEATS)]
    return {"value": [v for v, _ in found], "variance": [v for _, v in found]}


def measure_run(cell: Cell) -> dict[str, Any]:
    """A whole run."""
    problem = make(cell["problem"])
    steps = cell["episodes"] * problem.longest
    result = evaluate(problem, "splitting", steps=steps, seed=cell["seed"])
    limit = result.detection_limit or 1.0
    return {
        "estimate": result.estimate,
        "interval": list(result.interval),
        "roots": round(np.log(1.0 - result.confidence) / np.log1p(-limit)),
        "trusted": result.trusted,
    }


def _bias(name: str, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    _, truth = PROBLEMS[name]()
    value = np.concatenate([o["value"] for o in outcomes])
    own = np.concatenate([o["variance"] for o in outcomes])
    error = float(value.std(ddof=1)) / np.sqrt(len(value))
    return {
        "problem": name,
        "populations": len(value),
        "truth": truth,
        "mean": float(value.mean()),
        "errors": float((value.mean() - truth) / error),
        "between": float(((value - truth) ** 2).mean()),
        "own": float(own.mean()),
    }


def _row(name: str, episodes: int, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    known = make(name).truth
    found = float(np.mean([o["estimate"] for o in outcomes]))  # unbiased, and better than nothing
    truth = known().value if known is not None else found
    e = np.array([o["estimate"] for o in outcomes]) / truth
    ends = np.array([o["interval"] for o in outcomes])
    roots = float(np.mean([o["roots"] for o in outcomes]))
    mse = float(((e - 1.0) ** 2).mean())
    return {
        "problem": name,
        "episodes": episodes,
        "truth": truth,
        "known": known is not None,
        "rmse": float(np.sqrt(mse)),
        "ideal": float(np.sqrt(-np.log(truth) / roots)),
        "gain": (1.0 - truth) / (truth * episodes) / mse,
        "covered": float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()),
        "empty": float((e == 0.0).mean()),
    }


def _covered(row: dict[str, Any]) -> str:
    return f"{row['covered']:.0%}" if row["known"] else "–"
