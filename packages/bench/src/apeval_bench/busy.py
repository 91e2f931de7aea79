"""A simulator of known cost: every step of every episode burns so much time of a core."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.special import ndtr

from apeval.problem.draws import Draws
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.truth import Truth
from apeval.problem.types import Array


def problem(
    cost: float = 1.0, beta: float = 3.0, decisions: int = 10, together: int = 8
) -> Problem:
    """Fails when the sum of `decisions` standard normals is above β·√decisions; a step takes
    `cost` milliseconds. `together` episodes make a block, as with environments side by side.

    >>> round(problem().truth().value, 6)
    0.00135
    """
    level = beta * float(np.sqrt(decisions))

    def step(x: Array, a_A: Any, a_E: Array, draws: Draws) -> Array:
        burn(len(x) * cost / 1_000.0)
        return np.asarray(x + a_E)

    return Problem(
        nominal=Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=step,
        failed=lambda x: x[:, 0] > level,
        judge_at_end=True,
        margin=lambda x: level - x[:, 0],
        horizon=decisions,
        chunk=together,
        description="a sum of normals, simulated at a known cost",
        truth=lambda: Truth(float(ndtr(-beta)), 0.0, "closed form"),
    )


def burn(seconds: float) -> None:
    """Keep this thread's core busy for so long, by its own clock."""
    ends = time.thread_time() + seconds
    while time.thread_time() < ends:
        sum(range(500))  # a look at the clock is a call to the system: not too often
