"""Two failure modes along independent directions: in many dimensions, and with one of them hidden.

The sums along the two directions are independent, so v* = 1 − Φ(β_1)Φ(β_2).
"""

from __future__ import annotations

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


def either(beta_1: float, beta_2: float) -> float:
    """P(one of two independent standard normals exceeds its β).

    >>> either(0.0, 0.0)
    0.75
    """
    p_1, p_2 = float(ndtr(-beta_1)), float(ndtr(-beta_2))
    return p_1 + p_2 - p_1 * p_2


def _add(x: Array, a_A: Array, a_E: Array, draws: object) -> Array:
    return x + a_E


def _towards(sums: FloatArray, steps: int) -> FloatArray:
    """Constant disturbances that add up to each column of `sums`, (modes, T, d_E)."""
    return np.repeat(sums.T[:, None, :] / steps, steps, axis=1)


def _kinds(excess: FloatArray) -> Array:
    """0, or 1 + the column that exceeds most."""
    return np.where(excess.max(axis=1) > 0.0, 1 + excess.argmax(axis=1), 0)


@register("many-dimensions", description="10 disturbances in each of 10 decisions, two modes")
def many_dimensions(
    beta: float = 4.5, beta_second: float = 4.6, steps: int = 10, dim: int = 10
) -> Problem:
    """Failure when the summed disturbances leave along (1, 1, …) or along (1, −1, 1, …)."""
    check_sizes(steps, dim, beta, beta_second)
    if dim % 2:
        raise ProblemError(f"dim must be even, or the directions are not orthogonal; got {dim}")
    directions = np.stack([np.ones(dim), (-1.0) ** np.arange(dim)], axis=1) / np.sqrt(dim)
    limits = np.array([beta, beta_second]) * np.sqrt(steps)

    def excess(x: Array) -> FloatArray:
        along: FloatArray = x @ directions - limits
        return along

    problem = Problem(
        nominal=Normal(0.0, 1.0, dim=dim),
        reset=lambda draws: np.zeros((draws.n, dim)),
        step=_add,
        failed=lambda x: _kinds(excess(x)),
        margin=lambda x: -excess(x).max(axis=1),
        judge_at_end=True,
        horizon=steps,
        kinds=("even", "alternating"),
        chunk=2048,
        name="many-dimensions",
        description="two modes in steps × dim dimensions",
        parameters={"beta": beta, "beta_second": beta_second, "steps": steps, "dim": dim},
        truth=lambda: Truth(either(beta, beta_second), 0.0, "closed form, 1 − Φ(β)Φ(β_second)"),
    )
    return checked(problem, lambda: _towards(directions * limits, steps))


@register("hidden-mode", description="the margin points to the less likely of two failure modes")
def hidden_mode(beta_shown: float = 4.8, beta_hidden: float = 4.2, steps: int = 10) -> Problem:
    """The margin measures the first sum only; the second fails without notice, more often."""
    check_sizes(steps, 2, beta_shown, beta_hidden)
    limits = np.array([beta_shown, beta_hidden]) * np.sqrt(steps)
    problem = Problem(
        nominal=Normal(0.0, 1.0, dim=2),
        reset=lambda draws: np.zeros((draws.n, 2)),
        step=_add,
        failed=lambda x: _kinds(x - limits),
        margin=lambda x: limits[0] - x[:, 0],
        judge_at_end=True,
        horizon=steps,
        kinds=("shown", "hidden"),
        chunk=4096,
        name="hidden-mode",
        description="a likelier failure mode that the margin does not show",
        parameters={"beta_shown": beta_shown, "beta_hidden": beta_hidden, "steps": steps},
        truth=lambda: Truth(
            either(beta_shown, beta_hidden), 0.0, "closed form, 1 − Φ(β_shown)Φ(β_hidden)"
        ),
    )
    return checked(problem, lambda: _towards(np.diag(limits), steps))
