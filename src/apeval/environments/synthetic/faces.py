"""Failure behind any face of a box, or in two opposite corners: `many-modes` and `product`."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr

from apeval.environments.synthetic.check import checked
from apeval.environments.synthetic.sums import check_sizes
from apeval.errors import ProblemError
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Truth
from apeval.problem.types import Array


def _take(x: Array, a_A: Array, a_E: Array, draws: object) -> Array:
    return a_E


@register("many-modes", description="one decision that must stay in a box: 8 ways to leave it")
def many_modes(beta: float = 4.7, dim: int = 4) -> Problem:
    """Failure when any of the disturbances exceeds β in size; v* = 1 − (1 − 2Φ(−β))^dim."""
    check_sizes(1, dim, beta)
    v = float(-np.expm1(dim * np.log1p(-2.0 * ndtr(-beta))))
    problem = Problem(
        nominal=Normal(0.0, 1.0, dim=dim),
        reset=lambda draws: np.zeros((draws.n, dim)),
        step=_take,
        failed=lambda x: np.abs(x).max(axis=1) > beta,
        margin=lambda x: beta - np.abs(x).max(axis=1),
        horizon=1,
        chunk=4096,
        name="many-modes",
        description="2 × dim failure modes, all alike",
        parameters={"beta": beta, "dim": dim},
        truth=lambda: Truth(v, 0.0, "closed form, 1 − (1 − 2Φ(−β))^dim"),
    )
    faces = beta * np.concatenate([np.eye(dim), -np.eye(dim)])
    return checked(problem, lambda: faces[:, None, :])


@cache
def beyond(limit: float) -> tuple[float, float]:
    """P(z_1·z_2 > limit) of two standard normals, 2 ∫_0^∞ φ(x) Φ(−limit/x) dx, and its error.

    >>> f"{beyond(12.0)[0]:.3e}"
    '6.749e-07'
    """

    def integrand(x: float) -> float:
        return float(np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi) * ndtr(-limit / x))

    peak = float(np.sqrt(limit))
    low, high = (
        quad(integrand, a, b, epsabs=0.0, epsrel=1e-10)
        for a, b in ((1e-9, peak), (peak, peak + 40.0))
    )
    return 2.0 * (low[0] + high[0]), 2.0 * (low[1] + high[1])


@register("product", description="two disturbances that fail together, in two opposite corners")
def product(limit: float = 12.0) -> Problem:
    """Failure when z_1·z_2 exceeds the limit: both high, or both low."""
    if not 0.0 < limit <= 100.0:
        raise ProblemError(f"limit must lie above 0 and be at most 100; got {limit}")
    problem = Problem(
        nominal=Normal(0.0, 1.0, dim=2),
        reset=lambda draws: np.zeros((draws.n, 2)),
        step=_take,
        failed=lambda x: np.where(x.prod(axis=1) > limit, np.where(x[:, 0] > 0.0, 1, 2), 0),
        margin=lambda x: limit - x.prod(axis=1),
        horizon=1,
        kinds=("high", "low"),
        chunk=4096,
        name="product",
        description="two failure modes, both curved",
        parameters={"limit": limit},
        truth=lambda: Truth(*beyond(limit), "deterministic quadrature"),
    )
    both = 1.001 * np.sqrt(limit) * np.array([[1.0, 1.0], [-1.0, -1.0]])
    return checked(problem, lambda: both[:, None, :])
