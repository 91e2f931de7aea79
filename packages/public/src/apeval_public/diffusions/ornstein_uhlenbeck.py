"""`ornstein-uhlenbeck`: a stationary process that must not pass six standard deviations.

An example of pyTAMS (github.com/nlesc-eTAOC/pyTAMS, `examples/OrnsteinUhlenbeck`), after Lestang,
Ragone, Bréhier, Herbert and Bouchet, "Computing return times or return periods with rare event
algorithms", 2018: dX = −θ X dt + √(2ε) dW with θ = 1 and ε = ½ by Euler's scheme with dt = 0.01
over 500 steps; the start is N(0, ε/θ), and the level 6 √(ε/θ). Published: a figure, from
32 trajectories.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from apeval.errors import ProblemError
from apeval.problem.draws import Draws
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.types import Array
from apeval_public.diffusions.ornstein_uhlenbeck_passage import DT, NOISE, SIGMA, STEPS, truth


@register(
    "ornstein-uhlenbeck", description="Ornstein-Uhlenbeck process of pyTAMS over 6 σ, 500 steps"
)
def ornstein_uhlenbeck(level: float = 6.0, controlled_start: bool = False) -> Problem:
    """The process must stay below level standard deviations. The stationary start is nobody's, or
    (controlled_start) nature's."""
    if level <= 0.0:
        raise ProblemError(f"level must be positive; got {level}")
    top = level * SIGMA

    def step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
        return (1.0 - DT) * x + NOISE * a_E

    def start(draws: Draws, a_0: Array | None = None) -> Array:
        return SIGMA * (draws.normal(1) if a_0 is None else a_0)

    problem = Problem(
        nominal=Normal(0.0, 1.0),
        initial=Normal(0.0, 1.0) if controlled_start else None,
        reset=start,
        step=step,
        failed=lambda x: x[:, 0] >= top,
        margin=lambda x: top - x[:, 0],
        horizon=STEPS,
        chunk=2048,
        name="ornstein-uhlenbeck",
        description="an Ornstein-Uhlenbeck process passes a level",
        parameters={"level": level, "controlled_start": controlled_start},
    )
    return replace(problem, truth=partial(truth, level))
