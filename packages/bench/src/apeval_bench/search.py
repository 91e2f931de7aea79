"""Hyperparameters as the paper chose them: random search, then a grid around the best. What was
found has to hold against the defaults on fresh seeds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.results.store import write_json
from apeval_bench.cells import run_cells
from apeval_bench.registry import TUNING, ExperimentReport, ExperimentRequest, experiment
from apeval_bench.study import ENTRIES, code, plain, run, truth_of, warm_start

WORST = 6.0
"""|log10 error| of an estimate of zero, or one further off than this."""


@dataclass(frozen=True)
class Effort:
    """What a problem's search costs, the same for every method."""

    steps: int
    """Per run."""
    seeds: int
    """Runs per trial."""
    random: int
    """Trials: the defaults, and random ones."""
    grid: int
    """Trials around the best of them."""
    finalists: int
    """The best of all these trials that go on to the confirmation, with the defaults."""
    confirming: int
    """Fresh seeds of the confirmation."""


EFFORT = {
    "int-v0": Effort(3_000, 3, 12, 6, 2, 8),
    "int-v1": Effort(3_000, 3, 12, 6, 2, 8),
    "lunarlander": Effort(10_000, 1, 3, 2, 1, 3),  # its simulator is a thousand times slower
}
FRESH = 100
"""The first seed of the confirmation: a tuning seed that no trial has seen."""
SEARCHED = {"ape-scalable": "ape-scalable cross-entropy"}
"""The row of Table II that a method's settings are searched for, where it is not named alike."""
VIEWS = {"ape-discrete": "paper", "cem-discrete": "paper", "ape-scalable": "markov"}

#: Values in order: a neighbour is the next one on either side.
SPACES: dict[str, dict[str, list[Any]]] = {
    "ape-discrete": {
        "state_slots": [10, 20, 50, 100, 200],
        "action_slots": [5, 10, 20, 40],
        "delta": [0.01, 0.03, 0.1, 0.3, 1.0],
        "step_size": [3.0, 10.0, 30.0],
        "v_init": [1e-4, 1e-3, 1e-2, 0.05],
        "policy_update": ["visited", "row"],
    },
    "cem-discrete": {
        "state_slots": [10, 20, 50, 100, 200],
        "action_slots": [5, 10, 20, 40],
        "delta": [0.01, 0.03, 0.1, 0.3, 1.0],
        "episodes_per_update": [20, 50, 100, 200],
    },
    "ape-scalable": {
        "alpha_pi": [1e-3, 3e-3, 1e-2],
        "flow_steps": [20, 40, 80],
        "hidden": [8, 16, 32],
        "shrinkage": [2.0, 5.0, 10.0, 20.0],
        "target_ess": [15.0, 30.0, 60.0],
        "explore_share": [0.1, 0.2, 0.3],
    },
}

Trial = dict[str, Any]


@experiment("bench", "search", "hyperparameter search: random, then a grid; tuning seeds", seeds=3)
def search(request: ExperimentRequest) -> ExperimentReport:
    """Every learner on every problem of Table II with equal effort. Only tuning seeds are used."""
    if request.first_seed not in TUNING:
        raise ApevalError("hyperparameters are chosen on tuning seeds: add --tuning")
    found = [search_one(problem, method, request) for problem in EFFORT for method in SPACES]
    data = {
        "criterion": CRITERION,
        "confirmation": CONFIRMATION,
        "effort": {p: vars(e) for p, e in EFFORT.items()},
        "spaces": SPACES,
        "settings": {
            p: {f["method"]: f["settings"] for f in found if f["problem"] == p} for p in EFFORT
        },
        "found": found,
    }
    files = {}
    if request.out is not None:
        files["chosen"] = write_json(request.out / "chosen.json", selection(data))
    return ExperimentReport(data, as_text(data), files=files)


def selection(data: dict[str, Any]) -> dict[str, Any]:
    """What Table II reads: the file `chosen.json` beside this one."""
    shown = ("problem", "method", "finalists", "trials")
    return {
        "provenance": {
            "command": "apeval bench search --tuning --out DIR, then DIR/chosen.json",
            "criterion": data["criterion"],
            "confirmation": data["confirmation"],
            "effort": data["effort"],
            "found": [{k: f[k] for k in shown} for f in data["found"]],
        },
        "settings": data["settings"],
    }


CRITERION = (
    "median over seeds of |log10(estimate / truth)|, the estimate being the trajectory-weight one "
    f"and {WORST:g} the most that counts; among those within 0.05 of the best, the largest mean "
    "late failure rate"
)
ALIKE = 1.1
CONFIRMATION = (
    "relative RMSE of the trajectory-weight estimate on fresh seeds, an estimate without failures "
    f"counting as 0; among those within a factor {ALIKE:g} of the smallest, the largest mean late "
    "failure rate"
)


def search_one(problem: str, method: str, request: ExperimentRequest) -> dict[str, Any]:
    """The best of the trials that holds against the defaults, which are the first of them."""
    rng = np.random.default_rng([request.first_seed, *map(ord, f"{problem} {method}")])
    effort = EFFORT[problem]
    trials = random_trials(SPACES[method], effort.random, rng)
    results = judge(problem, method, trials, request)
    start = best(results)["settings"]
    nearby = neighbours(SPACES[method], start, [r["settings"] for r in results], effort.grid, rng)
    results += judge(problem, method, nearby, request)
    finalists, others = results[:1], results[1:]
    for _ in range(min(effort.finalists, len(others))):
        finalists.append(best(others))
        others = [r for r in others if r is not finalists[-1]]
    confirmed = confirm(problem, method, finalists, request)
    return {
        "problem": problem,
        "method": method,
        "settings": kept(confirmed)["settings"],
        "finalists": confirmed,
        "trials": len(results),
        "all": results,
    }


def confirm(
    problem: str, method: str, finalists: Sequence[dict[str, Any]], request: ExperimentRequest
) -> list[dict[str, Any]]:
    """The finalists on fresh seeds."""
    truth = truth_of(problem)
    effort = EFFORT[problem]
    seeds = range(FRESH, FRESH + effort.confirming)
    trials = [f["settings"] for f in finalists]
    outcomes = outcomes_of(problem, method, trials, seeds, effort.steps, request)
    return [
        {
            **finalist,
            "fresh_rmse": relative_rmse([o["estimate"] for o in mine], truth),
            "fresh_late_rate": float(np.mean([o["late_rate"] or 0.0 for o in mine])),
        }
        for finalist, mine in zip(finalists, outcomes, strict=True)
    ]


def kept(confirmed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The finalist to use, by `CONFIRMATION`."""
    smallest = min(f["fresh_rmse"] for f in confirmed)
    close = [f for f in confirmed if f["fresh_rmse"] <= ALIKE * smallest]
    return max(close, key=lambda f: f["fresh_late_rate"])


def relative_rmse(estimates: Sequence[float], truth: float) -> float:
    """Over the truth.

    >>> relative_rmse([0.0, 4.0], 2.0)
    1.0
    """
    return float(np.sqrt(np.mean((np.array(estimates) / truth - 1.0) ** 2)))


def random_trials(
    space: Mapping[str, Sequence[Any]], n: int, rng: np.random.Generator
) -> list[Trial]:
    """The defaults (no setting at all), and n − 1 random points of the space."""
    drawn = [
        {k: values[int(rng.integers(len(values)))] for k, values in space.items()}
        for _ in range(n - 1)
    ]
    return [{}, *drawn]


def neighbours(
    space: Mapping[str, Sequence[Any]],
    centre: Trial,
    known: Sequence[Trial],
    n: int,
    rng: np.random.Generator,
) -> list[Trial]:
    """n points of the grid around `centre` that were not tried, each setting at most one place
    away; where the defaults were best, around the middle of the space."""
    middle = {k: values[len(values) // 2] for k, values in space.items()}
    centre = centre or middle
    reach = []
    for k, values in space.items():
        i = values.index(centre[k])
        reach.append([(k, v) for v in values[max(0, i - 1) : i + 2]])
    grid = [dict(point) for point in itertools.product(*reach)]
    fresh = [p for p in grid if p not in known]
    order = rng.permutation(len(fresh))[:n]
    return [fresh[int(i)] for i in order]


def judge(
    problem: str, method: str, trials: Sequence[Trial], request: ExperimentRequest
) -> list[dict[str, Any]]:
    """Run the trials and score each."""
    effort = EFFORT[problem]
    truth = truth_of(problem)
    seeds = request.all_seeds[: min(effort.seeds, request.seeds)]
    outcomes = outcomes_of(problem, method, trials, seeds, effort.steps, request)
    return [
        {
            "settings": trial,
            "score": float(np.median([log_error(o["estimate"], truth) for o in mine])),
            "late_rate": float(np.mean([o["late_rate"] or 0.0 for o in mine])),
            "value": plain(float(np.median([o["value"] or 0.0 for o in mine]))),
        }
        for trial, mine in zip(trials, outcomes, strict=True)
    ]


def outcomes_of(
    problem: str,
    method: str,
    trials: Sequence[Trial],
    seeds: Sequence[int],
    steps: int,
    request: ExperimentRequest,
) -> list[list[dict[str, Any]]]:
    """Runs of each trial, seed by seed."""
    entry = ENTRIES[SEARCHED.get(method, method)]
    start = warm_start(problem, entry) | ({"preset": entry.preset} if entry.preset else {})
    cells = [
        {
            "problem": problem,
            "method": method,
            "view": VIEWS[method],
            "settings": trial | start,
            "steps": steps,
            "seed": seed,
        }
        for trial in trials
        for seed in seeds
    ]
    outcomes = run_cells("search", run, cells, request, None, **code())
    n = len(seeds)
    return [outcomes[k * n : (k + 1) * n] for k in range(len(trials))]


def log_error(estimate: float, truth: float) -> float:
    """|log10(estimate / truth)|, at most `WORST`.

    >>> log_error(1e-5, 1e-6), log_error(0.0, 1e-6)
    (1.0, 6.0)
    """
    if estimate <= 0.0:
        return WORST
    return min(WORST, round(abs(math.log10(estimate / truth)), 12))


def best(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The largest late rate among those whose error is within 0.05 of the smallest."""
    smallest = min(r["score"] for r in results)
    close = [r for r in results if r["score"] <= smallest + 0.05]
    return max(close, key=lambda r: r["late_rate"])


def as_text(data: dict[str, Any]) -> str:
    """The chosen settings, and what the confirmation gave."""
    lines = [
        "| problem | method | settings | trials: median log10 error, late rate "
        "| fresh seeds: relative RMSE, late rate | |",
        "|---|---|---|---|---|---|",
    ]
    for found in data["found"]:
        for f in found["finalists"]:
            picked = ", ".join(f"`{k}` {v}" for k, v in f["settings"].items()) or "the defaults"
            verdict = "**taken**" if f["settings"] == found["settings"] else ""
            lines.append(
                f"| {found['problem']} | {found['method']} | {picked} "
                f"| {f['score']:.2f}, {f['late_rate']:.3f} "
                f"| {f['fresh_rmse']:.3g}, {f['fresh_late_rate']:.3f} | {verdict} |"
            )
    lines += [
        "",
        "| problem | method | trials | their TD values v(s0), least, median and largest | v\\* |",
        "|---|---|---|---|---|",
    ]
    for found in data["found"]:
        values = np.array([r["value"] for r in found["all"]], np.float64)
        spread = ", ".join(f"{x:.2g}" for x in np.quantile(values, (0.0, 0.5, 1.0)))
        lines.append(
            f"| {found['problem']} | {found['method']} | {found['trials']} | {spread} "
            f"| {truth_of(found['problem']):.3g} |"
        )
    effort = "; ".join(
        f"{p}: {e['random']} random trials, the defaults among them, and {e['grid']} around the "
        f"best, {e['seeds']} × {e['steps']:,} steps each, then the {e['finalists']} best and the "
        f"defaults, {e['confirming']} × {e['steps']:,} steps each"
        for p, e in data["effort"].items()
    )
    lines.append(
        f"\nThe same effort for every method, on tuning seeds: {effort}. "
        f"Criterion of the trials: {data['criterion']}. Of the confirmation: "
        f"{data['confirmation']}. TD values are medians over the seeds of a trial."
    )
    return "\n".join(lines)
