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

    @property
    def accelerates_first(self) -> bool:
        """KL at the first decision exceeds that of every later one, and the car accelerates."""
        return self.kl[0] > max(self.kl[1:], default=0.0) and self.acceleration[0] > 0.0


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


def driving_of_exact(name: str, episodes: int, seed: int) -> Driving:
    """The zero-variance adversary of the dynamic programme, on the twin."""
    from apeval_paper.environments.intersection.adversary import ZeroVariance
    from apeval_paper.environments.intersection.dp import solve
    from apeval_paper.environments.intersection.highway import reset
    from apeval_paper.environments.intersection.twin import TwinStep

    g, rng = PRESETS[name], np.random.default_rng(seed)
    q, step, x = ZeroVariance(solve(g)), TwinStep(g), reset(episodes, g)
    alive, kl, a_E = np.arange(episodes), [], np.zeros((episodes, g.decisions, g.d_E))
    for t in range(g.decisions):
        a, log_q = q.sample(x[alive], rng.random((len(alive), q.uniforms)))
        ratio = log_q - q.law.log_prob(a)
        kl.append(float(ratio[np.isfinite(ratio)].mean()))  # its support exceeds the box a little
        a_E[alive, t] = a
        x[alive] = step(x[alive], a)
        alive = alive[~failed(x[alive])]
        if len(alive) == 0:
            break
    return Driving(tuple(kl), _accelerations(g, a_E), float(failed(x).mean()))


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
