"""`double-integrator`: a mass that a linear controller holds in place through eight noisy sensors.

x' = x + v dt, v' = v + u dt, u = −k_x x̂ − k_v v̂. The controller is the regulator of Q = I, R = 1.
Two of the eight channels are the position and the velocity that it reads; the others belong to
sensors that it does not use, so that a method must find out which channels matter.
"""

from __future__ import annotations

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.draws import Draws
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.types import Array, FloatArray
from apeval_public.truth.known import with_stored_truth

POSITION, VELOCITY = 0, 1
DT = 0.1
GAIN = (1.0, float(np.sqrt(3.0)))
"""Solves the Riccati equation of Q = I, R = 1 in continuous time."""
NOISE, CHANNELS, STEPS, LIMIT = 0.5, 8, 200, 0.9


def pushed(x: Array, noise: Array) -> FloatArray:
    """One step of 0.1 s.

    Args:
        x: Position and velocity, shape (n, 2).
        noise: Of all channels, of which the first two are read, shape (n, d).

    Returns:
        The next states, shape (n, 2).
    """
    place, speed = x[:, POSITION], x[:, VELOCITY]
    seen_place, seen_speed = place + noise[:, POSITION], speed + noise[:, VELOCITY]
    force = -GAIN[0] * seen_place - GAIN[1] * seen_speed
    return np.stack([place + DT * speed, speed + DT * force], axis=1)


def _step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
    return pushed(x, a_E)


@register(
    "double-integrator", description="a mass held by a regulator, 8 noisy sensors of which 2 matter"
)
def double_integrator(
    limit: float = LIMIT, steps: int = STEPS, channels: int = CHANNELS
) -> Problem:
    """|x| must stay below limit at every step; channels is the number of noisy sensors."""
    if limit <= 0.0 or steps < 1 or channels < 2:
        raise ProblemError(
            "limit must be positive, steps at least 1 and channels at least 2; "
            f"got {limit}, {steps}, {channels}"
        )

    def failed(x: Array) -> Array:
        place = x[:, POSITION]
        return np.where(place <= -limit, 1, np.where(place >= limit, 2, 0))

    def margin(x: Array) -> FloatArray:
        m: FloatArray = limit - np.abs(x[:, POSITION])
        return m

    problem = Problem(
        nominal=Normal(0.0, NOISE, dim=channels),
        reset=lambda draws: np.zeros((draws.n, 2)),
        step=_step,
        failed=failed,
        margin=margin,
        horizon=steps,
        kinds=("left", "right"),
        chunk=2048,
        name="double-integrator",
        description="a mass held in place through noisy sensors",
        parameters={"limit": limit, "steps": steps, "channels": channels},
    )
    return with_stored_truth(problem)
