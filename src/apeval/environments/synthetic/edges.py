"""Edge cases: p = 0, p = 1, a failure that the first decision settles, a flat margin."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from apeval.environments.synthetic.check import checked
from apeval.environments.synthetic.sums import check_sizes
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Truth
from apeval.problem.types import Array


def _add(x: Array, a_A: Array, a_E: Array, draws: object) -> Array:
    return x + a_E


@register("never", description="nothing can fail: p = 0")
def never(steps: int = 10) -> Problem:
    """A sum that never counts as failure, with a margin that falls all the same."""
    check_sizes(steps, 1)
    problem = Problem(
        nominal=Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=_add,
        failed=lambda x: np.zeros(len(x), bool),
        margin=lambda x: 1.0 / (1.0 + np.exp(np.minimum(x[:, 0], 50.0))),
        horizon=steps,
        chunk=4096,
        name="never",
        description="no failure exists",
        parameters={"steps": steps},
        truth=lambda: Truth(0.0, 0.0, "by construction"),
    )
    return checked(problem, lambda: np.zeros((1, steps, 1)))


@register("always", description="every episode fails at its end: p = 1")
def always(steps: int = 10) -> Problem:
    """A sum whose every end is a failure."""
    check_sizes(steps, 1)
    problem = Problem(
        nominal=Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=_add,
        failed=lambda x: np.ones(len(x), bool),
        margin=lambda x: np.full(len(x), -1.0),
        judge_at_end=True,
        horizon=steps,
        chunk=4096,
        name="always",
        description="every episode fails",
        parameters={"steps": steps},
        truth=lambda: Truth(1.0, 0.0, "by construction"),
    )
    return checked(problem, lambda: np.zeros((1, steps, 1)))


@register("first-step", description="the first of T decisions alone settles a failure: Φ(−β)")
def first_step(beta: float = 4.5, steps: int = 10) -> Problem:
    """The state holds the first disturbance, and how many decisions were made."""
    check_sizes(steps, 1, beta)

    def step(x: Array, a_A: Array, a_E: Array, draws: object) -> Array:
        first = np.where(x[:, 1] == 0.0, a_E[:, 0], x[:, 0])
        return np.stack([first, x[:, 1] + 1.0], axis=1)

    problem = Problem(
        nominal=Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 2)),
        step=step,
        failed=lambda x: x[:, 0] > beta,
        margin=lambda x: beta - x[:, 0],
        horizon=steps,
        chunk=4096,
        name="first-step",
        description="settled by the first decision",
        parameters={"beta": beta, "steps": steps},
        truth=lambda: Truth(float(ndtr(-beta)), 0.0, "closed form, Φ(−β)"),
    )
    return checked(problem, lambda: beta * np.eye(1, steps)[:, :, None])


@register("flat-margin", description="gaussian-sum whose margin is 1 until failure: Φ(−β)")
def flat_margin(beta: float = 4.5, steps: int = 20) -> Problem:
    """The margin says nothing but failed or not."""
    check_sizes(steps, 1, beta)
    limit = beta * np.sqrt(steps)
    problem = Problem(
        nominal=Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=_add,
        failed=lambda x: x[:, 0] > limit,
        margin=lambda x: np.where(x[:, 0] > limit, -1.0, 1.0),
        judge_at_end=True,
        horizon=steps,
        chunk=4096,
        name="flat-margin",
        description="sum of Gaussian disturbances with a margin without slope",
        parameters={"beta": beta, "steps": steps},
        truth=lambda: Truth(float(ndtr(-beta)), 0.0, "closed form, Φ(−β)"),
    )
    return checked(problem, lambda: np.full((1, steps, 1), beta / np.sqrt(steps)))
