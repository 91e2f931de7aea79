"""The paper's Table I: tabular APE against Monte Carlo on MiniGrid, published beside ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.environments import make
from apeval.learn.ape_tabular.config import ApeTabularConfig
from apeval.learn.ape_tabular.stagnation import Stagnation
from apeval.learn.method import find_method
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.run.evaluate import run_frozen_stage
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

STARTS = ("minigrid-s1", "minigrid-s2", "minigrid-s3")
WINDOW, TOLERANCE = 2_000, 0.01
_CAP = 1_000_000  # steps after which a run that never stagnates is given up

#: Table I as printed: (mean, std); values in units of 1e-3.
PUBLISHED = {
    "mc": {
        "minigrid-s1": (3.99, 0.38),
        "minigrid-s2": (3.93, 0.47),
        "minigrid-s3": (4.00, 0.50),
        "steps": (78_300.0, 10_600.0),
        "episodes": (19_306.0, 2_612.0),
    },
    "ape": {
        "minigrid-s1": (3.90, 0.24),
        "minigrid-s2": (3.94, 0.23),
        "minigrid-s3": (3.94, 0.17),
        "steps": (8_884.0, 2_595.0),
        "episodes": (552.0, 134.0),
    },
}


@dataclass(frozen=True)
class StopRule:
    """Where the stopping rule ended a run."""

    value: float
    steps: int
    episodes: int


@dataclass(frozen=True)
class ApeRun:
    """An APE run at the stopping rule, and a frozen stage of as many steps again."""

    stop: StopRule
    frozen: float
    covered: bool


def run_ape(problem: Problem, seed: int, truth: float) -> ApeRun:
    """Learn until the rule of Table I holds; then estimate with as many steps again."""
    method = find_method("ape-tabular")
    config = ApeTabularConfig(stop_window=WINDOW, stop_tolerance=TOLERANCE, learn_share=0.99)
    simulation = Simulation(problem.blind(), make_key(seed), Budget(steps=_CAP))
    learner = method.start(simulation.problem, config)
    while learner.advance(simulation):
        pass
    stop = StopRule(learner.value() or 0.0, simulation.steps, simulation.episodes)
    simulation.budget = Budget(steps=2 * simulation.steps)
    frozen = run_frozen_stage(learner.proposal(), simulation, 0.95).estimate
    return ApeRun(stop, frozen.value, frozen.interval[0] <= truth <= frozen.interval[1])


def run_mc(problem: Problem, seed: int) -> StopRule:
    """Monte Carlo until the rule of Table I holds for its running mean."""
    simulation = Simulation(problem.blind(), make_key(seed), Budget(steps=_CAP))
    rule = Stagnation(WINDOW, TOLERANCE, 0.0)
    failures = episodes = n = 0
    while (size := min(problem.chunk, simulation.affordable())) > 0:
        batch = simulation.run(only(Nominal()), size, simulation.episodes)
        for length, failed in zip(batch.length.tolist(), batch.failed.tolist(), strict=True):
            if rule.reached(n + length - 1, failures):  # before this episode's end changes v
                at = max(n, WINDOW, rule.last_outside + WINDOW + 1)
                return StopRule(failures / episodes, at, episodes)
            n, episodes, failures = n + length, episodes + 1, failures + failed
            if failures:
                rule.change(n, failures / episodes)
    return StopRule(failures / max(1, episodes), n, episodes)


@experiment("reproduce", "table1", "Table I: tabular APE and Monte Carlo on MiniGrid", seeds=30)
def table1(request: ExperimentRequest) -> ExperimentReport:
    """Mean, std, steps and episodes at the stopping rule, for MC and APE and three lava starts."""
    data: dict[str, Any] = {
        "seeds": [request.all_seeds[0], request.all_seeds[-1]],
        "window": WINDOW,
        "tolerance": TOLERANCE,
        "published": PUBLISHED,
        "starts": {},
    }
    done, total = 0, len(STARTS) * request.seeds
    for name in STARTS:
        problem = make(name)
        truth = problem.truth().value if problem.truth else float("nan")
        ape, mc = [], []
        for seed in request.all_seeds:
            ape.append(run_ape(problem, seed, truth))
            mc.append(run_mc(problem, seed))
            done += 1
            request.tick(name, done, total)
        data["starts"][name] = {
            "exact": truth,
            "mc": _summary(mc),
            "ape": _summary([run.stop for run in ape]),
            "frozen": {
                **_mean_std("value", [run.frozen for run in ape]),
                "covered": sum(run.covered for run in ape),
            },
        }
    data["steps_ratio"] = _pooled(data, "mc", "steps")[0] / _pooled(data, "ape", "steps")[0]
    files = {}
    if request.out is not None:
        from apeval_paper.environments.minigrid.picture import save_picture

        files["environment"] = request.out / "minigrid.png"
        save_picture(files["environment"])
    return ExperimentReport(data, _as_text(data, request.seeds), files=files)


def _summary(stops: list[StopRule]) -> dict[str, float]:
    return {
        **_mean_std("value", [s.value for s in stops]),
        **_mean_std("steps", [s.steps for s in stops]),
        **_mean_std("episodes", [s.episodes for s in stops]),
    }


def _mean_std(name: str, values: list[float] | list[int]) -> dict[str, float]:
    std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {f"{name}_mean": float(np.mean(values)), f"{name}_std": std}


def _pooled(data: dict[str, Any], method: str, what: str) -> tuple[float, float]:
    """Mean over the starts, and the mean of the variances within them as a std."""
    parts = [start[method] for start in data["starts"].values()]
    mean = float(np.mean([p[f"{what}_mean"] for p in parts]))
    return mean, float(np.sqrt(np.mean([p[f"{what}_std"] ** 2 for p in parts])))


def _as_text(data: dict[str, Any], seeds: int) -> str:
    lines = [
        "| | exact | MC published | MC ours | APE published | APE ours | frozen stage | covers |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, start in data["starts"].items():
        cells = [f"v({name.removeprefix('minigrid-')}) (1e-3)", f"{start['exact'] * 1e3:.3f}"]
        for method in ("mc", "ape"):
            mean, std = PUBLISHED[method][name]
            ours = start[method]
            cells.append(f"{mean:.2f} ± {std:.2f}")
            cells.append(f"{ours['value_mean'] * 1e3:.3f} ± {ours['value_std'] * 1e3:.3f}")
        frozen = start["frozen"]
        cells.append(f"{frozen['value_mean'] * 1e3:.3f} ± {frozen['value_std'] * 1e3:.3f}")
        cells.append(f"{frozen['covered']}/{seeds}")
        lines.append("| " + " | ".join(cells) + " |")
    for what in ("steps", "episodes"):
        cells = [f"num. of {what}", ""]
        for method in ("mc", "ape"):
            mean, std = PUBLISHED[method][what]
            ours_mean, ours_std = _pooled(data, method, what)
            cells += [f"{mean:,.0f} ± {std:,.0f}", f"{ours_mean:,.0f} ± {ours_std:,.0f}"]
        cells += ["as many steps again" if what == "steps" else "", ""]
        lines.append("| " + " | ".join(cells) + " |")
    first, last = data["seeds"]
    lines.append(
        f"\n{seeds} seeds ({first} … {last}), mean ± std; at the stopping rule |v(n′) − v(n)| < "
        f"{TOLERANCE:.0%} of v(n) over {WINDOW:,} steps. MC needs {data['steps_ratio']:.1f} times "
        "the steps of APE."
    )
    return "\n".join(lines)
