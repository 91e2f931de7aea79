"""A sum of disturbances that nature shares with chance: `chance-sum`."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from apeval.environments.synthetic.check import checked
from apeval.environments.synthetic.sums import check_sizes
from apeval.errors import ProblemError
from apeval.problem.draws import Draws
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Truth
from apeval.problem.types import Array


@register("chance-sum", description="gaussian-sum of which nature controls only a part: Φ(−β)")
def chance_sum(beta: float = 1.88, steps: int = 5, control: float = 0.0) -> Problem:
    """x_T = Σ ρ z_t + √(1−ρ²) ε_t > β√T, with ρ = `control` and ε_t nobody's.

    Given nature's disturbances failures stay a matter of chance. With ρ = 0 there is nothing to
    learn, and no method can do better than to count; with ρ = 1 this is `gaussian-sum`.
    """
    check_sizes(steps, 1, beta)
    if not 0.0 <= control <= 1.0:
        raise ProblemError(f"control must lie between 0 and 1; got {control}")
    limit, rest = beta * np.sqrt(steps), np.sqrt(1.0 - control**2)

    def step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
        return np.asarray(x + control * a_E + rest * draws.normal(1))

    problem = Problem(
        nominal=Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=step,
        failed=lambda x: x[:, 0] > limit,
        margin=lambda x: limit - x[:, 0],
        judge_at_end=True,
        horizon=steps,
        chunk=4096,
        name="chance-sum",
        description="sum of disturbances that nature shares with chance",
        parameters={"beta": beta, "steps": steps, "control": control},
        truth=lambda: Truth(float(ndtr(-beta)), 0.0, "closed form, Φ(−β)"),
    )
    return checked(problem, lambda: np.full((1, steps, 1), control * limit / steps))
