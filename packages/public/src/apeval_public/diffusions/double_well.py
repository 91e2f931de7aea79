"""`double-well`: a particle that must not reach the other of two wells in time.

An example of pyTAMS (github.com/nlesc-eTAOC/pyTAMS, `examples/DoubleWell2D`): the gradient flow of
V = x⁴/4 − x²/2 + y² with noise √ε dW, by Euler's scheme with dt = 0.01 over 1,000 steps, from the
well at (−1, 0); reached is a score of 0.95, a disc around (1, 0). Published: 50 trajectories, up to
2,000 splits, ε = 0.1, a figure.
"""

from __future__ import annotations

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.draws import Draws
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.types import Array, FloatArray
from apeval_public.diffusions.double_well_score import DT, STEPS, TARGET, drift, score
from apeval_public.truth.known import with_stored_truth


@register("double-well", description="two-dimensional double well of pyTAMS, 1,000 steps")
def double_well(epsilon: float = 0.1) -> Problem:
    """The particle starts in one well and must not reach the other; epsilon is the noise's
    strength."""
    if epsilon <= 0.0:
        raise ProblemError(f"epsilon must be positive; got {epsilon}")
    noise = float(np.sqrt(DT * epsilon))

    def step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
        return np.stack(drift(x[:, 0], x[:, 1]), axis=1) + noise * a_E

    def margin(x: Array) -> FloatArray:
        return TARGET - score(x[:, 0], x[:, 1])

    problem = Problem(
        nominal=Normal(0.0, 1.0, dim=2),
        reset=lambda draws: np.tile([-1.0, 0.0], (draws.n, 1)),
        step=step,
        failed=lambda x: margin(x) <= 0.0,
        margin=margin,
        horizon=STEPS,
        chunk=2048,
        name="double-well",
        description="a particle passes from one well to the other",
        parameters={"epsilon": epsilon},
    )
    return with_stored_truth(problem)
