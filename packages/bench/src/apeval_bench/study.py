"""The runs behind Table II and the curves: problems, methods, and one run over its whole budget."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from apeval.environments import make
from apeval.estimate.warnings import sample_warnings
from apeval.learn.method import Learner, find_method
from apeval.problem.draws import make_key
from apeval.problem.settings import build
from apeval.run.evaluate import run_frozen_stage
from apeval.simulate.simulation import Budget
from apeval_bench.cells import Cell, run_cells
from apeval_bench.recording import Log, Recording, recorded
from apeval_bench.registry import ExperimentRequest

TASK = "table2"
_RUNS_ARE_MADE_OF = (
    "problem", "environments", "apeval_paper", "simulate", "learn", "estimate", "run",
    "apeval_bench/study.py", "apeval_bench/recording.py",
)  # fmt: skip
_NOT_HERE = ("learn/ape", "learn/cem")
POINTS, WINDOW, SETTLED, LATE = 60, 0.1, 0.05, 0.8
"""Points of a curve; as shares of the budget the window of its sampled rate, how long the frozen
stage's mean is left out at first, and where "late" begins."""
CONFIDENCE = 0.95

#: Budgets of the paper's Section VI, in decisions.
STEPS = {"int-v0": 3_000, "int-v1": 3_000, "lunarlander": 20_000}
#: The paper's units.
UNITS = {"int-v0": 1e-2, "int-v1": 1e-6, "lunarlander": 1e-3}

#: π̂_E on Int-v1: N(1, 2²) in nominal standard deviations. Elsewhere π_E,gt.
WARM_SCALE, WARM_SHIFT = 2.0, 1.0


def code(*files: str) -> dict[str, tuple[str, ...]]:
    """What kept outcomes depend on, for `run_cells`: a change of other methods reruns nothing."""
    return {"of": (*_RUNS_ARE_MADE_OF, *files), "without": _NOT_HERE}


@dataclass(frozen=True)
class StudyProblem:
    """A row of Table II."""

    label: str
    method: str
    view: str
    """What it sees: the paper's state, or a complete one."""
    published: str
    """Its name in the paper."""
    preset: str | None = None


ENTRIES = {
    e.label: e
    for e in (
        StudyProblem("ape-scalable steered", "ape-scalable", "markov", "APE_scalable", "steered"),
        StudyProblem(
            "ape-scalable cross-entropy", "ape-scalable", "markov", "APE_scalable", "cross-entropy"
        ),
        StudyProblem("ape-scalable printed", "ape-scalable", "paper", "APE_scalable", "printed"),
        StudyProblem("ape-discrete", "ape-discrete", "paper", "APE_discrete"),
        StudyProblem("cem-discrete", "cem-discrete", "paper", "CEM_discrete"),
        StudyProblem("mc", "mc", "paper", "MC"),
    )
}

#: Runs that take minutes each are made for the published number of seeds only.
FEWER_SEEDS = {("lunarlander", "ape-scalable printed"): 5}


def warm_start(problem: str, entry: StudyProblem) -> dict[str, Any]:
    """The settings that start a learner from π̂_E where the paper does, and elsewhere from
    π_E,gt; the steered learner finds its start by itself."""
    if entry.method == "mc" or entry.preset == "steered":
        return {}
    if problem != "int-v1":
        return {"warm_scale": 1.0}
    shift = f"{WARM_SHIFT:g}" if entry.method == "ape-scalable" else WARM_SHIFT
    return {"warm_scale": WARM_SCALE, "warm_shift": shift}


@cache
def chosen() -> dict[str, Any]:
    """What `apeval bench search` found, with its provenance."""
    text = files("apeval_bench").joinpath("chosen.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def settings(problem: str, entry: StudyProblem) -> dict[str, Any]:
    """All settings of a row's runs that are not defaults."""
    found: dict[str, Any] = {}
    if entry.preset is not None:
        found["preset"] = entry.preset
    if entry.preset in (None, "cross-entropy"):  # what the search ran with
        found |= chosen()["settings"].get(problem, {}).get(entry.method, {})
    return found | warm_start(problem, entry)


def cell(problem: str, label: str, seed: int, steps: int | None = None) -> dict[str, Any]:
    """One run, as data."""
    entry = ENTRIES[label]
    return {
        "problem": problem,
        "method": entry.method,
        "view": entry.view,
        "settings": settings(problem, entry),
        "steps": steps or STEPS[problem],
        "seed": seed,
    }


def runs(
    request: ExperimentRequest,
    problems: Sequence[str] = tuple(STEPS),
    steps: dict[str, int] | None = None,
    workers: int | None = None,
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Outcomes by problem and row, seed by seed. The dearest runs come first: they would else be
    waited for alone."""
    wanted = [
        (problem, label, seed)
        for problem in sorted(problems, key=lambda p: -STEPS[p])
        for label in sorted(ENTRIES, key=lambda e: "printed" not in e)
        for seed in request.all_seeds[: FEWER_SEEDS.get((problem, label))]
    ]
    budget = STEPS | (steps or {})
    cells = [cell(p, label, seed, budget[p]) for p, label, seed in wanted]
    outcomes = run_cells(TASK, run, cells, request, workers, **code())
    found: dict[str, dict[str, list[dict[str, Any]]]] = {
        p: {label: [] for label in ENTRIES} for p in problems
    }
    for (problem, label, _), outcome in zip(wanted, outcomes, strict=True):
        found[problem][label].append(outcome)
    return found


def truth_of(problem: str) -> float:
    """v*(s0)."""
    known = make(problem).truth
    return math.nan if known is None else known().value


def run(cell: Cell) -> dict[str, Any]:
    """One run: what `apeval.evaluate` does, with a log of every episode."""
    started = time.perf_counter()
    problem = make(cell["problem"]).seen_as(cell["view"])
    method = find_method(cell["method"])
    config = build(method.config, cell["settings"])
    budget = Budget(steps=int(cell["steps"]))
    simulation = Recording(problem.blind(), make_key(int(cell["seed"])), budget)
    learner = recorded(method, config, simulation)
    while learner.advance(simulation):
        pass
    simulation.log.freeze()
    frozen = run_frozen_stage(learner.proposal(), simulation, CONFIDENCE)
    numbers, log, steps = frozen.estimate, simulation.log, int(cell["steps"])
    value = numbers.value if cell["method"] == "mc" else learner.value()
    notes = learner.warnings()
    notes += sample_warnings(frozen.sample, numbers, learner.value(), budget)
    adversary = frozen.sample.component == 0
    return {
        "curve": curve(log, learner, steps, cell["method"] == "mc"),
        "value": plain(value),
        "estimate": numbers.value,
        "standard_error": numbers.standard_error,
        "interval": list(numbers.interval),
        "ess": numbers.ess,
        "steps": simulation.steps,
        "episodes": simulation.episodes,
        "failures": simulation.failures,
        "rate": simulation.failures / simulation.episodes,
        "late_rate": plain(log.rate(LATE * steps)),
        "adversary_rate": float(frozen.sample.failed[adversary].mean()),
        "seconds": time.perf_counter() - started,
        "warnings": [note.text for note in notes],
    }


def curve(log: Log, learner: Learner, steps: int, unweighted: bool) -> dict[str, list[Any]]:
    """The three quantities that the paper plots, at equally spaced steps. v(s0) no longer changes
    once the adversary is frozen; a mean over its first few episodes would only show noise."""
    at = steps * np.arange(1, POINTS + 1) / POINTS
    ends, estimates = log.steps, log.estimates()
    cut = log.frozen_from or 0
    thaw = float(ends[cut - 1]) if cut else math.inf
    settled = thaw + SETTLED * steps
    learned = learner.curve()
    when = np.array([s for s, _ in learned], np.float64)
    found: dict[str, list[Any]] = {"steps": [], "value": [], "estimate": [], "rate": []}
    for x in at.tolist():
        k = int(np.searchsorted(ends, x, side="right")) - 1
        j = int(np.searchsorted(when, x, side="right")) - 1
        estimate = float(estimates[k]) if k >= 0 and not thaw < x <= settled else math.nan
        value = learned[j][1] if j >= 0 else math.nan
        found["steps"].append(x)
        found["estimate"].append(plain(estimate))
        found["value"].append(plain(estimate if unweighted else value))
        found["rate"].append(plain(log.rate(x - WINDOW * steps, x)))
    return found


def plain(x: float | None) -> float | None:
    """A number that JSON has, or None."""
    return None if x is None or not math.isfinite(x) else float(x)
