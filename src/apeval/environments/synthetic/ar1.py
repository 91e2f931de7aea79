"""An autoregressive process that must stay below a threshold for T steps: `ar1`."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
from scipy.special import ndtr

from apeval.environments.synthetic.check import checked
from apeval.environments.synthetic.sums import check_sizes
from apeval.errors import ProblemError
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Truth
from apeval.problem.types import Array, FloatArray

_NODES = (400, 600)
_REACH = 12.0
_TIMES = np.arange(0.2, 1.01, 0.05)


@lru_cache(maxsize=64)
def first_passage(phi: float, threshold: float, steps: int, nodes: int) -> float:
    """P(x_t > threshold for some t ≤ steps), x_t = φ x_{t−1} + ε_t from 0.

    The density f_t of the paths still below is carried on Gauss–Legendre nodes:
    f_{t+1}(y) = ∫ f_t(x) N(y; φx, 1) dx, and Σ_t ∫ f_t(x) Φ(φx − threshold) dx passes. Only
    positive terms are added, so small probabilities keep their digits.
    """
    spread = float(np.sqrt(sum(phi ** (2 * k) for k in range(steps))))
    u, w = np.polynomial.legendre.leggauss(nodes)
    low = min(-_REACH * spread, threshold - 1.0)
    x = low + 0.5 * (u + 1.0) * (threshold - low)
    w = w * 0.5 * (threshold - low)
    K = np.exp(-0.5 * (x[:, None] - phi * x[None, :]) ** 2) / np.sqrt(2.0 * np.pi) * w
    passes = ndtr(phi * x - threshold) * w
    f = np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)
    p = float(ndtr(-threshold))
    for _ in range(steps - 1):
        p += float(passes @ f)
        f = K @ f
    return p


def _truth(phi: float, threshold: float, steps: int) -> Truth:
    coarse, fine = (first_passage(phi, threshold, steps, n) for n in _NODES)
    return Truth(
        fine,
        abs(fine - coarse),
        "deterministic quadrature",
        {
            "error_is": "difference of the two numbers of Gauss–Legendre nodes",
            "nodes": {str(n): v for n, v in zip(_NODES, (coarse, fine), strict=True)},
        },
    )


@register("ar1", description="AR(1) process over 100 steps that must stay below a threshold")
def ar1(phi: float = 0.95, threshold: float = 17.5, steps: int = 100) -> Problem:
    """x_t = φ x_{t−1} + ε_t from 0; failure when x_t exceeds the threshold at any time."""
    check_sizes(steps, 1, threshold)
    if not (0.0 <= phi <= 1.0 and threshold > 0.0):
        raise ProblemError(f"phi must lie in [0, 1] and threshold above 0; got {phi}, {threshold}")

    def step(x: Array, a_A: Array, a_E: Array, draws: object) -> Array:
        return phi * x + a_E

    problem = Problem(
        nominal=Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=step,
        failed=lambda x: x[:, 0] > threshold,
        margin=lambda x: threshold - x[:, 0],
        horizon=steps,
        kinds=("passed",),
        chunk=2048,
        name="ar1",
        description="first passage of an autoregressive process",
        parameters={"phi": phi, "threshold": threshold, "steps": steps},
        truth=partial(_truth, phi, threshold, steps),
    )
    return checked(problem, partial(_paths, phi, threshold, steps))


def _paths(phi: float, threshold: float, steps: int) -> FloatArray:
    """The likeliest disturbances that lead to the threshold at time τ, for several τ."""
    paths = []
    for tau in sorted({max(1, round(steps * share)) for share in _TIMES}):
        effect = np.zeros(steps)
        effect[:tau] = phi ** np.arange(tau - 1, -1, -1)
        paths.append(threshold * effect / (effect @ effect))
    return np.stack(paths)[:, :, None]
