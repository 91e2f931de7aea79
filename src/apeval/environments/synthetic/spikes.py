"""A failure region with holes, and no margin: `discontinuous`."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import bdtrc, ndtr, ndtri

from apeval.environments.synthetic.check import checked_by
from apeval.environments.synthetic.sums import check_sizes
from apeval.errors import ProblemError
from apeval.problem.draws import NATURE, Draws, make_key
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Truth
from apeval.problem.types import Array, FloatArray


@register("discontinuous", description="hits of a narrow band are counted; no margin at all")
def discontinuous(low: float = 2.0, high: float = 2.5, hits: int = 4, steps: int = 10) -> Problem:
    """Failure when `hits` of the disturbances lie in (low, high): more of a good thing misses."""
    check_sizes(steps, 1, low, high)
    if not (low < high and 1 <= hits <= steps):
        raise ProblemError(
            f"low must be below high and hits in [1, steps]; got {low}, {high}, {hits}"
        )

    def step(x: Array, a_A: Array, a_E: Array, draws: object) -> Array:
        return x + ((a_E > low) & (a_E < high))

    def truth() -> Truth:
        p = float(ndtr(-low) - ndtr(-high))
        return Truth(float(bdtrc(hits - 1, steps, p)), 0.0, "closed form, binomial tail")

    problem = Problem(
        nominal=Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=step,
        failed=lambda x: x[:, 0] >= hits,
        horizon=steps,
        kinds=("hits",),
        chunk=4096,
        name="discontinuous",
        description="a narrow band hit several times",
        parameters={"low": low, "high": high, "hits": hits, "steps": steps},
        truth=truth,
    )
    return checked_by(problem, partial(_weights, problem, low, high, hits / steps))


def _weights(
    problem: Problem, low: float, high: float, share: float, n: int, seed: int
) -> FloatArray:
    """Each disturbance from a mixture of the nominal and the uniform on the band."""
    draws = Draws(make_key(seed), np.arange(n))
    x, w, kind = problem.reset(draws), np.ones(n), np.zeros(n, bool)
    for t in range(problem.longest):
        now = draws.at(t)
        choice, u = now.stream(NATURE, 2).T
        z = np.where(choice < share, low + (high - low) * u, ndtri(u))
        p = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
        q = share * ((z > low) & (z < high)) / (high - low) + (1.0 - share) * p
        w = np.where(kind, w, w * p / q)
        x = problem.step(x, np.zeros((n, 0)), z[:, None], now)
        kind |= problem.failed(x)
    return np.where(kind, w, 0.0)
