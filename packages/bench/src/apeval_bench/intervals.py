"""Coverage of the interval where it is hard: frozen proposals that fit the failures badly.

Each case samples a known problem from N(μ_t·push, (σ_t·spread)²) per decision, in whitened
coordinates, with a tenth of the episodes nominal. μ_t and σ_t are nearly the best of their kind;
`push` and `spread` spoil them, and the weights become as heavy-tailed as after a poor run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import t as student

from apeval.environments import make
from apeval.estimate.interval import effective_size, estimate, one_sided, stratified
from apeval.estimate.precision_target import PrecisionTarget
from apeval.estimate.sample import Sample
from apeval.learn.whitened import log_phi, to_action, to_z
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray
from apeval.run.frozen_stage import run_frozen_stage
from apeval.run.reduction import reduce
from apeval.simulate.adversary import Adversary, Mixture, Nominal, Situation, mixture
from apeval.simulate.rollout import rollout
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.cells import Cell, run_cells
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

#: Of the failures of int-v1 and gaussian-sum (β = 4.5, T = 4), per decision and component.
MEAN = {
    "int-v1": [[4.08, -0.82], [2.40, -0.35], [0.44, 0.14]],
    "gaussian-sum": [[2.3]] * 4,
}
STD = {
    "int-v1": [[0.57, 0.99], [0.89, 0.99], [1.0, 1.0]],
    "gaussian-sum": [[0.9]] * 4,
}
SETTINGS: dict[str, dict[str, Any]] = {"int-v1": {}, "gaussian-sum": {"steps": 4}}
SPOILT = ((1.0, 1.0), (0.8, 1.3), (1.0, 0.85), (0.9, 0.85), (1.15, 0.85), (1.0, 0.7))
SIZES = (150, 400, 1_000)
STOPPED = ((1.0, 1.0), (0.8, 1.3), (0.9, 0.85))
TARGETS = (0.1, 0.3)
BLOCK = 50  # seeds in a cell
_NOMINAL, _CONFIDENCE, _MOST = 0.1, 0.95, 300_000
Interval = Callable[[Sample], tuple[float, float]]


class Spoilt(Adversary):
    """z_t ~ N(μ_t, σ_t²) in whitened coordinates."""

    def __init__(self, mean: FloatArray, std: FloatArray) -> None:
        self.mean, self.std = mean, std

    def sample(self, now: Situation, u: FloatArray) -> Array:
        return to_action(now.law, self.mean[now.t] + self.std[now.t] * ndtri(u))

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        z, std = to_z(now.law, a_E), self.std[now.t]
        log_q: FloatArray = log_phi((z - self.mean[now.t]) / std) - np.log(std).sum(axis=1)
        return now.law.log_prob(a_E) + log_q - log_phi(z)


@experiment("bench", "intervals", "coverage of intervals for badly fitted proposals", seeds=400)
def intervals(request: ExperimentRequest) -> ExperimentReport:
    """Coverage and width by proposal and sample size, then with a target error."""
    fixed = [(name, *spoilt, "episodes", n) for name in MEAN for spoilt in SPOILT for n in SIZES]
    ended = [(name, *spoilt, "target", e) for name in MEAN for spoilt in STOPPED for e in TARGETS]
    names = ("problem", "push", "spread")
    blocks = [list(request.all_seeds[i : i + BLOCK]) for i in range(0, request.seeds, BLOCK)]
    cells: list[Cell] = [
        {**dict(zip(names, case, strict=True)), kind: size, "seeds": [seeds[0], seeds[-1]]}
        for *case, kind, size in fixed + ended
        for seeds in blocks
    ]
    outcomes = iter(run_cells("intervals", run, cells, request))
    rows = []
    for *case, kind, size in fixed + ended:
        runs = [one for _ in blocks for one in next(outcomes)["runs"]]
        summary = _fixed(runs) if kind == "episodes" else _stopped(runs, float(size))
        rows.append({**dict(zip(names, case, strict=True)), kind: size, **summary})
    data = {
        "seeds": [request.all_seeds[0], request.all_seeds[-1]],
        "confidence": _CONFIDENCE,
        "fixed": rows[: len(fixed)],
        "stopped": rows[len(fixed) :],
    }
    return ExperimentReport(data, _as_text(data))


def run(cell: Cell) -> dict[str, Any]:
    """A block of seeds of one case."""
    name = str(cell["problem"])
    problem = make(name, **SETTINGS[name])
    proposal = _proposal(name, cell["push"], cell["spread"])
    first, last = cell["seeds"]
    if "episodes" in cell:
        runs = [_draw(problem, proposal, cell["episodes"], s) for s in range(first, last + 1)]
    else:
        runs = [_stop(problem, proposal, cell["target"], s) for s in range(first, last + 1)]
    return {"runs": runs}


def _proposal(name: str, push: float, spread: float) -> Mixture:
    learned = Spoilt(np.array(MEAN[name]) * push, np.array(STD[name]) * spread)
    return mixture([learned, Nominal()], [1.0 - _NOMINAL, _NOMINAL])


def _truth(problem: Problem) -> float:
    return problem.truth().value if problem.truth else float("nan")


def _draw(problem: Problem, proposal: Mixture, n: int, seed: int) -> dict[str, Any]:
    """Every interval on the same sample of n episodes."""
    truth, where = _truth(problem), np.arange(n)
    sample = reduce(rollout(problem, proposal, make_key(seed), where, where), proposal)
    x = sample.weights * sample.failed
    found = {name: interval(sample) for name, interval in INTERVALS.items()}
    return {
        "covered": {name: bool(lo <= truth <= hi) for name, (lo, hi) in found.items()},
        "half_width": {name: float(hi - lo) / (2.0 * truth) for name, (lo, hi) in found.items()},
        "bounded": bool(truth <= one_sided(sample, _CONFIDENCE)[1]),
        "variation": float(x.std() / x.mean()) if x.any() else None,
        "ess": effective_size(x[sample.failed]),
    }


def _fixed(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "variation": float(np.median([r["variation"] for r in runs if r["variation"]])),
        "ess": float(np.median([r["ess"] for r in runs])),
        "coverage": {k: float(np.mean([r["covered"][k] for r in runs])) for k in INTERVALS},
        "half_width": {k: float(np.median([r["half_width"][k] for r in runs])) for k in INTERVALS},
        "upper_bound": float(np.mean([r["bounded"] for r in runs])),
    }


def _stop(problem: Problem, proposal: Mixture, error: float, seed: int) -> dict[str, Any]:
    """A run that ends at a target error."""
    truth, target = _truth(problem), PrecisionTarget(error)
    simulation = Simulation(problem, make_key(seed, 1), Budget(episodes=_MOST))
    frozen = run_frozen_stage(proposal, simulation, _CONFIDENCE, target=target)
    lo, hi = frozen.estimate.interval
    n = frozen.sample.n
    return {
        "covered": bool(lo <= truth <= hi),
        "met": bool(target.reached(frozen.estimate)),
        "episodes": n,
        "looks": frozen.looks,
        "variance": n * (frozen.estimate.standard_error / truth) ** 2,
    }


def _stopped(runs: list[dict[str, Any]], error: float) -> dict[str, Any]:
    """Against a design with n fixed in advance, by one who knows the variance."""
    in_advance = 1.96**2 * float(np.mean([r["variance"] for r in runs])) / error**2
    episodes = float(np.median([r["episodes"] for r in runs]))
    return {
        "coverage": float(np.mean([r["covered"] for r in runs])),
        "reached": float(np.mean([r["met"] for r in runs])),
        "median_episodes": episodes,
        "looks": float(np.mean([r["looks"] for r in runs])),
        "times_fixed": episodes / in_advance,
    }


def _ours(sample: Sample) -> tuple[float, float]:
    return estimate(sample, _CONFIDENCE).interval


def _moments(sample: Sample) -> tuple[FloatArray, float, float, float]:
    """Values, mean, standard error, and Student's quantile for the effective sample size."""
    x = sample.weights * sample.failed
    mean, error = stratified(sample, x)
    df = max(effective_size(x[sample.failed]) - 1.0, 1.0)
    return x, mean, error, float(student.ppf(0.5 + _CONFIDENCE / 2.0, df))


def log_t(sample: Sample) -> tuple[float, float]:
    """Student's interval for log v, without the one more failure."""
    _, mean, error, t = _moments(sample)
    half = min(t * error / mean, 700.0) if mean > 0.0 else 0.0
    return (mean * np.exp(-half), min(1.0, mean * np.exp(half))) if mean > 0.0 else (0.0, 1.0)


def skewed_t(sample: Sample) -> tuple[float, float]:
    """Hall's (1992) cubic correction of Student's interval for skewness."""
    x, mean, error, t = _moments(sample)
    if mean <= 0.0:
        return 0.0, 1.0
    g = float(((x - mean) ** 3).mean()) / (sample.n**2 * error**3)

    def quantile(z: float) -> float:
        return z if g < 1e-6 else 3.0 / g * (float(np.cbrt(1.0 + g * (z - g / 6.0))) - 1.0)

    return max(0.0, mean - quantile(t) * error), min(1.0, mean - quantile(-t) * error)


def bootstrap_t(sample: Sample, repeats: int = 299) -> tuple[float, float]:
    """The bootstrap-t interval of log v; resampling within components."""
    x, mean, error, _ = _moments(sample)
    if mean <= 0.0:
        return 0.0, 1.0
    rng = np.random.default_rng(sample.n)
    means, variances = np.zeros(repeats), np.zeros(repeats)
    for j, m in enumerate(sample.counts):
        again = rng.choice(x[sample.component == j], (repeats, m))
        means += again.sum(axis=1) / sample.n
        variances += m * again.var(axis=1, ddof=1) / sample.n**2
    good = (means > 0.0) & (variances > 0.0)
    t = np.log(means[good] / mean) * means[good] / np.sqrt(variances[good])
    low, high = np.quantile(t, [0.5 - _CONFIDENCE / 2.0, 0.5 + _CONFIDENCE / 2.0])
    relative = error / mean
    return mean * np.exp(-high * relative), min(1.0, mean * np.exp(min(-low * relative, 700.0)))


INTERVALS: dict[str, Interval] = {
    "apeval": _ours,
    "log-t": log_t,
    "skewed t": skewed_t,
    "bootstrap-t": bootstrap_t,
}


def _as_text(data: dict[str, Any]) -> str:
    names = list(INTERVALS)
    head = " | ".join(f"{name}" for name in names)
    lines = [
        "Coverage of 95 % intervals (and median half-width relative to the truth)\n",
        f"| problem | push, spread | episodes | cv | ESS | {head} | upper bound, 95 % |",
        "|---" * (len(names) + 6) + "|",
    ]
    for r in data["fixed"]:
        cells = " | ".join(f"{r['coverage'][k]:.1%} ({r['half_width'][k]:.2f})" for k in names)
        lines.append(
            f"| {r['problem']} | {r['push']:g}, {r['spread']:g} | {r['episodes']:,} | "
            f"{r['variation']:.1f} | {r['ess']:.0f} | {cells} | {r['upper_bound']:.1%} |"
        )
    lines += [
        "\nStopped at a target error\n",
        "| problem | push, spread | target | coverage | reached | episodes | looks "
        "| episodes / fixed design |",
        "|---" * 8 + "|",
    ]
    for r in data["stopped"]:
        lines.append(
            f"| {r['problem']} | {r['push']:g}, {r['spread']:g} | {r['target']:g} | "
            f"{r['coverage']:.1%} | {r['reached']:.0%} | {r['median_episodes']:,.0f} | "
            f"{r['looks']:.1f} | {r['times_fixed']:.2f} |"
        )
    lines.append(
        f"\nSeeds {data['seeds'][0]} … {data['seeds'][1]}. push, spread: factors on mean and "
        "standard deviation of a well-fitted proposal. cv: of weight × failure."
    )
    return "\n".join(lines)
