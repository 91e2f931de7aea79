"""Sums of Gaussian disturbances that must not exceed β√T in the end: closed forms, any T and d_E.

S_T/√T is standard normal, so P(S_T > β√T) = Φ(−β), and twice that for |S_T|.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from apeval.environments.synthetic.check import checked
from apeval.errors import ProblemError
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Truth
from apeval.problem.types import Array, FloatArray

_SCALE, _FARTHEST = 1e6, 1e3


def check_sizes(steps: int, dim: int, *limits: float) -> None:
    """Refuse sizes that no episode can have, and events that no double can tell from 0 or 1."""
    if not (1 <= steps <= 10_000 and 1 <= dim <= 1_000):
        raise ProblemError(f"steps must lie in [1, 10000] and dim in [1, 1000]; got {steps}, {dim}")
    for limit in limits:
        if not -_FARTHEST <= limit <= _FARTHEST:
            raise ProblemError(
                f"a limit must lie in ± {_FARTHEST:g} standard deviations; got {limit}"
            )


def _sum_problem(
    name: str, description: str, beta: float, steps: int, dim: int, two_sided: bool, scaled: bool
) -> Problem:
    """The state is the sum so far along the mean direction (1, …, 1)/√d_E; `scaled` gives it a
    second column a million times as large, and such a margin."""
    check_sizes(steps, dim, beta)
    limit, unit = beta * np.sqrt(steps), _SCALE if scaled else 1.0
    columns = np.array([1.0, _SCALE]) if scaled else np.ones(1)

    def excess(x: Array) -> FloatArray:
        over: FloatArray = (np.abs(x[:, 0]) if two_sided else x[:, 0]) - limit
        return over

    def failed(x: Array) -> Array:
        low = two_sided & (x[:, 0] < 0.0)
        return np.where(excess(x) > 0.0, np.where(low, 2, 1), 0)

    def step(x: Array, a_A: Array, a_E: Array, draws: object) -> Array:
        after: Array = x + a_E.sum(axis=1, keepdims=True) / np.sqrt(dim) * columns
        return after

    def shifts() -> FloatArray:
        towards = np.full((1, steps, dim), beta / np.sqrt(steps * dim))
        return np.concatenate([towards, -towards]) if two_sided else towards

    problem = Problem(
        nominal=Normal(0.0, 1.0, dim=dim),
        reset=lambda draws: np.zeros((draws.n, len(columns))),
        step=step,
        failed=failed,
        margin=lambda x: -unit * excess(x),
        judge_at_end=True,
        horizon=steps,
        kinds=("high", "low") if two_sided else ("high",),
        chunk=4096,
        name=name,
        description=description,
        parameters={"beta": beta, "steps": steps, "dim": dim, "two_sided": two_sided},
        truth=lambda: Truth(
            float(ndtr(-beta)) * (1 + two_sided),
            0.0,
            "closed form, " + ("2Φ(−β)" if two_sided else "Φ(−β)"),
        ),
    )
    return checked(problem, shifts)


@register("gaussian-sum", description="sum of T Gaussians that must not exceed β√T: Φ(−β)")
def gaussian_sum(
    beta: float = 4.5, steps: int = 20, dim: int = 1, two_sided: bool = False
) -> Problem:
    """One-sided or (`two_sided`) with two equally likely modes."""
    return _sum_problem(
        "gaussian-sum", "sum of Gaussian disturbances", beta, steps, dim, two_sided, False
    )


@register("gaussian-sum-two", description="|sum of T Gaussians| that must not exceed β√T: 2Φ(−β)")
def gaussian_sum_two(beta: float = 4.5, steps: int = 20, dim: int = 1) -> Problem:
    """Two equally likely failure modes."""
    return _sum_problem(
        "gaussian-sum-two", "two-sided sum of Gaussian disturbances", beta, steps, dim, True, False
    )


@register("one-step", description="one Gaussian decision that must not exceed β: Φ(−β)")
def one_step(beta: float = 4.5, dim: int = 1) -> Problem:
    """An episode of a single decision."""
    return _sum_problem("one-step", "a single decision", beta, 1, dim, False, False)


@register("scaled", description="gaussian-sum with a million-fold range of state and margin")
def scaled(beta: float = 4.5, steps: int = 20) -> Problem:
    """Columns of the state differ a million-fold, and the margin is × 10⁶."""
    return _sum_problem("scaled", "sum in units a million apart", beta, steps, 1, False, True)
