"""What a good proposal can reach on LunarLander, whose engine noise nobody controls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from apeval.environments import make
from apeval.learn.whitened import to_action, to_z
from apeval.problem.draws import make_key
from apeval.problem.types import Array, FloatArray
from apeval.run.reduction import reduce
from apeval.simulate.adversary import Adversary, Nominal, Situation, mixture
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.cells import Cell, run_cells
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_DECISION, _COMPONENT = 1, 0  # the main engine, one second after the start
_DRAWN = (-1.6, 1.0)
_MEANS, _SPREADS = (-1.0, -1.3, -1.6, -2.0, -2.4), (0.7, 0.85, 1.0, 1.2)
_NOMINAL = 0.1
_EPISODES = 5_000  # per seed
_STEPS = 10_000


@dataclass(frozen=True)
class LanderPush(Adversary):
    """Nominal but for one component of one decision: z ~ N(mean, spread²)."""

    mean: float
    spread: float

    def sample(self, now: Situation, u: FloatArray) -> Array:
        z = ndtri(u)
        at = now.t == _DECISION
        z[at, _COMPONENT] = self.mean + self.spread * z[at, _COMPONENT]
        return to_action(now.law, z)

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        z = to_z(now.law, a_E)[:, _COMPONENT]
        return now.law.log_prob(a_E) + np.where(now.t == _DECISION, self.log_ratio(z), 0.0)

    def log_ratio(self, z: FloatArray) -> FloatArray:
        """log q/p of the pushed component."""
        ratio: FloatArray = 0.5 * (z * z - ((z - self.mean) / self.spread) ** 2)
        return ratio - float(np.log(self.spread))


def draw(cell: Cell) -> dict[str, Any]:
    """Failures from one wide push, with their weights and the pushed component."""
    problem = make("lunarlander").blind()
    proposal = mixture([Nominal(), LanderPush(*_DRAWN)], [_NOMINAL, 1.0 - _NOMINAL])
    simulation = Simulation(problem, make_key(cell["seed"]), Budget(episodes=_EPISODES))
    z, w, steps = [], [], 0
    while (n := min(problem.chunk, simulation.affordable())) > 0:
        batch = simulation.run(proposal, n, simulation.episodes)
        sample = reduce(batch, proposal)
        failed = sample.failed
        rows = (batch.t == _DECISION) & failed[batch.episode]
        z += to_z(batch.situation.law, batch.a_E)[rows, _COMPONENT].tolist()
        w += sample.weights[failed & np.isin(np.arange(n), batch.episode[rows])].tolist()
        steps += int(batch.length[batch.component == 0].sum())
    return {"z": z, "w": w, "nominal_steps": steps}


@experiment("bench", "lander-push", "what one well-chosen push reaches on LunarLander", 8)
def lander_push(request: ExperimentRequest) -> ExperimentReport:
    """The variation per episode of every push in a grid, from one weighted sample of failures."""
    cells = [{"problem": "lunarlander", "seed": seed} for seed in request.all_seeds]
    found = run_cells("lander-push", draw, cells, request)
    z = np.concatenate([f["z"] for f in found])
    weight = np.concatenate([f["w"] for f in found]) / (_EPISODES * len(found))
    v = float(weight.sum())
    rows = []
    for mean in _MEANS:
        for spread in _SPREADS:
            q = _NOMINAL + (1.0 - _NOMINAL) * np.exp(LanderPush(mean, spread).log_ratio(z))
            variation = float(np.sqrt((weight / q).sum() / v**2 - 1.0))
            rows.append({"mean": mean, "spread": spread, "variation": variation})
    best = min(rows, key=lambda r: r["variation"])
    length = sum(f["nominal_steps"] for f in found) / (_NOMINAL * _EPISODES * len(found))
    data = {
        "seeds": [request.all_seeds[0], request.all_seeds[-1]],
        "episodes": _EPISODES * len(found),
        "failures": len(z),
        "estimate": v,
        "rows": rows,
        "best": best,
        "error_at_10000_steps": best["variation"] / float(np.sqrt(_STEPS / length)),
    }
    return ExperimentReport(data, _as_text(data))


def _as_text(data: dict[str, Any]) -> str:
    lines = ["| mean | " + " | ".join(f"spread {s:g}" for s in _SPREADS) + " |"]
    lines.append("|---" * (1 + len(_SPREADS)) + "|")
    for mean in _MEANS:
        own = [f"{r['variation']:.1f}" for r in data["rows"] if r["mean"] == mean]
        lines.append(f"| {mean:g} | " + " | ".join(own) + " |")
    best = data["best"]
    lines.append(
        f"\nStandard deviation of an episode's weighted failure, relative to the estimate "
        f"({data['estimate']:.3e} from {data['failures']:,} failures in {data['episodes']:,} "
        f"episodes), when the main engine's second disturbance is drawn from N(mean, spread²) in "
        f"{1 - _NOMINAL:.0%} of the episodes. With the best of them ({best['mean']:g}, "
        f"{best['spread']:g}) known beforehand, {_STEPS:,} decisions give a relative error of "
        f"{data['error_at_10000_steps']:.0%}."
    )
    return "\n".join(lines)
