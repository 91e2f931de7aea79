"""What an adversary does to the challenger's car, decision by decision: the paper's "accelerates
first, nominal afterwards", of a learned adversary and of the exact zero-variance one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray
from apeval.simulate.adversary import Adversary, only
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.divergence import kl_by_decision
from apeval_paper.environments.intersection.columns import V
from apeval_paper.environments.intersection.geometry import PRESETS, Geometry
from apeval_paper.environments.intersection.state import failed


@dataclass(frozen=True)
class Driving:
    """Means over an adversary's own episodes, one number per decision."""

    kl: tuple[float, ...]
    """KL(π_E‖π_E,gt)."""
    acceleration: tuple[float, ...]
    """Change of the challenger's speed over the decision, m/s²."""
    failure_rate: float


def driving_of(problem: Problem, adversary: Adversary, episodes: int, seed: int) -> Driving:
    """A learned adversary on int-v0 or int-v1, in the view that it learned on."""
    simulation = Simulation(problem, make_key(seed), Budget(episodes=episodes))
    batch = simulation.run(only(adversary), episodes, 0)
    g = PRESETS[problem.name.partition("@")[0]]
    a_E = np.zeros((batch.n, g.decisions, g.d_E))
    a_E[batch.episode, batch.t] = batch.a_E
    return Driving(
        kl=tuple(kl_by_decision(adversary, batch, seed=seed).tolist()),
        acceleration=_accelerations(g, a_E),
        failure_rate=float(batch.failed.mean()),
    )


def _accelerations(g: Geometry, a_E: FloatArray) -> tuple[float, ...]:
    """Replays whole episodes, (n, T, d_E), on the twin until each crashes."""
    from apeval_paper.environments.intersection.highway import reset
    from apeval_paper.environments.intersection.twin import TwinStep

    step, x, means = TwinStep(g), reset(len(a_E), g), []
    for t in range(g.decisions):
        alive = ~failed(x)
        if not alive.any():
            break
        after = step(x[alive], a_E[alive, t])
        means.append(float((after[:, V] - x[alive, V]).mean()))
        x[alive] = after
    return tuple(means)
