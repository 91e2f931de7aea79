"""The paper's conjecture that CEM covers only some failure modes, against the exact adversary."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster.vq import kmeans2, vq
from scipy.special import logsumexp

from apeval.environments import make
from apeval.learn.method import find_method
from apeval.problem.draws import make_key
from apeval.problem.settings import build
from apeval.problem.types import FloatArray
from apeval.simulate.adversary import Adversary
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.cells import Cell, run_cells
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment
from apeval_bench.study import STEPS, cell, code, truth_of

PROBLEMS = ("int-v0", "int-v1")
LABELS = ("cem-discrete", "ape-discrete", "ape-scalable cross-entropy")
EPISODES, CLUSTERS = 2_000, 8
_EXACT_SEED = 777
_FILES = ("apeval_bench/modes.py", "apeval_bench/exact.py")


@experiment("reproduce", "modes", "whether CEM covers only some failure modes", seeds=5)
def modes(request: ExperimentRequest) -> ExperimentReport:
    """True failures, drawn by the exact adversary, under what the methods learned."""
    return report(request, STEPS, EPISODES)


def report(request: ExperimentRequest, steps: dict[str, int], episodes: int) -> ExperimentReport:
    """One row per problem and method, over all seeds."""
    cells = [
        cell(problem, label, seed, steps[problem]) | {"exact_episodes": episodes}
        for problem in PROBLEMS
        for label in LABELS
        for seed in request.all_seeds
    ]
    outcomes = run_cells("modes", coverage, cells, request, None, **code(*_FILES))
    rows = []
    n = request.seeds
    names = [(p, label) for p in PROBLEMS for label in LABELS]
    for k, (problem, label) in enumerate(names):
        rows.append({"problem": problem, "method": label} | pooled(outcomes[k * n : (k + 1) * n]))
    data = {
        "seeds": [request.all_seeds[0], request.all_seeds[-1]],
        "episodes": episodes,
        "rows": rows,
    }
    return ExperimentReport(data, as_text(data))


def pooled(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over seeds."""
    found: dict[str, Any] = {
        key: float(np.median([o[key] for o in outcomes]))
        for key in ("neglected", "effective", "failure_rate", "reached")
    }
    return found | {"modes": [o["modes"] for o in outcomes]}


def coverage(cell: Cell) -> dict[str, Any]:
    """How much of the true failure mass a learned adversary reaches."""
    from apeval_bench.exact import decide_by, decide_exactly, exact_adversary, walk

    problem = make(cell["problem"]).seen_as(cell["view"])
    learned = learn(cell)
    n = int(cell["exact_episodes"])
    true = walk(problem, decide_exactly(exact_adversary(cell["problem"])), n, _EXACT_SEED)
    mass = np.where(true.failed, true.weights(), 0.0)
    mass /= mass.sum()
    log_w = np.full(n, -np.inf)  # also of what never happens: neither law has it
    np.subtract(true.log_nominal(), true.log_density(learned), out=log_w, where=mass > 0.0)
    sampled = walk(problem, decide_by(learned, problem.nominal.dim), n, cell["seed"])
    rate = float(sampled.failed.mean())
    paths, own = (np.concatenate(w.a_E, axis=1)[w.failed] for w in (true, sampled))
    modes_ = clusters(paths, mass[true.failed], own)
    return {
        "neglected": float(mass[log_w > 0.0].sum()),
        "effective": effective_share(mass, log_w, rate, truth_of(cell["problem"])),
        "failure_rate": rate,
        "modes": modes_,
        "reached": reached(modes_),
    }


def learn(cell: Cell) -> Adversary:
    """The adversary that a run freezes."""
    method = find_method(cell["method"])
    problem = make(cell["problem"]).seen_as(cell["view"]).blind()
    simulation = Simulation(problem, make_key(cell["seed"]), Budget(steps=cell["steps"]))
    learner = method.start(problem, build(method.config, cell["settings"]))
    while learner.advance(simulation):
        pass
    return learner.proposal().components[0]


def effective_share(mass: FloatArray, log_w: FloatArray, rate: float, truth: float) -> float:
    """(E w)²/(E w²) over an adversary's own failures, from true ones: with w = p/q on failures,
    E_q[w 1] = v*, E_q[w² 1] = v* Σ mass·w and E_q[1] is its failure rate.

    >>> round(effective_share(np.array([0.5, 0.5]), np.log([0.1, 0.1]), 1.0, 0.1), 9)
    1.0
    """
    second = logsumexp(log_w, b=mass) if (mass > 0.0).any() else np.inf
    return float(truth / rate * np.exp(-second)) if rate > 0.0 else 0.0


def clusters(true: FloatArray, mass: FloatArray, own: FloatArray) -> dict[str, list[float]]:
    """Failing trajectories in `CLUSTERS` clusters of the true ones, by all their disturbances:
    shares of the true failures, and of an adversary's own; the largest first."""
    centres, label = kmeans2(true, CLUSTERS, minit="++", seed=np.random.default_rng(_EXACT_SEED))
    due = np.bincount(label, mass, CLUSTERS)
    near, _ = vq(own, centres)
    got = np.bincount(near, minlength=CLUSTERS) / max(1, len(own))
    order = np.argsort(-due)
    return {"true": due[order].tolist(), "sampled": got[order].tolist()}


def reached(modes: dict[str, list[float]]) -> float:
    """True mass of the clusters that get at least a tenth of their share.

    >>> reached({"true": [0.7, 0.3], "sampled": [1.0, 0.0]})
    0.7
    """
    pairs = zip(modes["true"], modes["sampled"], strict=True)
    return float(sum(due for due, got in pairs if got >= 0.1 * due))


def as_text(data: dict[str, Any]) -> str:
    """The table, and what its columns mean."""
    lines = [
        "| problem | method | failure rate | neglected failures | failure mass in reached clusters "
        "| effective share |",
        "|---|---|---|---|---|---|",
    ]
    for r in data["rows"]:
        lines.append(
            f"| {r['problem']} | {r['method']} | {r['failure_rate']:.2f} | {r['neglected']:.2f} "
            f"| {r['reached']:.2f} | {r['effective']:.2g} |"
        )
    first, last = data["seeds"]
    lines.append(
        f"\nMedians over seeds {first} … {last}. {data['episodes']:,} true failures are drawn by "
        "the exact zero-variance adversary. *Neglected*: the share of true failures that the "
        "learned adversary makes rarer than π_E,gt does, so that sampling with it finds them later "
        f"than Monte Carlo would. *Reached*: of {CLUSTERS} clusters of the true failures' "
        "disturbances, those that get at least a tenth of their share of the adversary's failures. "
        "*Effective share*: (E w)²/E w² of the adversary's failures, measured on true failures, so "
        "that those it never draws count."
    )
    return "\n".join(lines)
