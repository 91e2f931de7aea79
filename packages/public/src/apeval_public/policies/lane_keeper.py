"""`lane-keeper`: a car at 25 m/s that must stay in its lane, steered through six noisy sensors.

A kinematic bicycle with a slow steering actuator (Rajamani, "Vehicle Dynamics and Control", ch. 2).
A car of 1.8 m in a lane of 3.5 m may be 0.85 m off the middle. The steering angle that is asked for
is proportional to the lateral offset and to the heading, as they are measured, and is limited.
Speed, yaw rate, and two sensors of other things are measured as well and not used. Every sensor has
fresh Gaussian noise at every step of 0.1 s.
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

OFFSET, HEADING, WHEEL = 0, 1, 2
SPEED, WHEELBASE, DT = 25.0, 2.8, 0.1
GAIN = (0.02, 0.5)
LARGEST, LAG = 0.06, 0.3
"""Of the steering angle (rad), and the time that the actuator takes (s)."""
NOISE = (0.4, 0.02, 0.5, 0.02, 0.1, 0.1)
"""Standard deviations: offset (m), heading (rad), speed (m/s), yaw rate (rad/s), two others."""
STEPS, LIMIT = 300, 0.85


def steered(x: Array, noise: Array) -> FloatArray:
    """One step of 0.1 s.

    Args:
        x: Lateral offset, heading and steering angle, shape (n, 3).
        noise: Of all sensors, of which the first two are read, shape (n, 6).

    Returns:
        The next states, shape (n, 3).
    """
    offset, heading, wheel = x.T
    wanted = -GAIN[0] * (offset + noise[:, OFFSET]) - GAIN[1] * (heading + noise[:, HEADING])
    wheel = wheel + DT / LAG * (np.clip(wanted, -LARGEST, LARGEST) - wheel)
    return np.stack(
        [
            offset + DT * SPEED * np.sin(heading),
            heading + DT * SPEED / WHEELBASE * np.tan(wheel),
            wheel,
        ],
        axis=1,
    )


def _step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
    return steered(x, a_E)


@register("lane-keeper", description="a car in its lane, 6 noisy sensors of which 2 matter")
def lane_keeper(limit: float = LIMIT, steps: int = STEPS) -> Problem:
    """The lateral offset must stay below limit (m) at every step."""
    if limit <= 0.0 or steps < 1:
        raise ProblemError(f"limit must be positive and steps at least 1; got {limit}, {steps}")

    def failed(x: Array) -> Array:
        return np.where(x[:, OFFSET] <= -limit, 1, np.where(x[:, OFFSET] >= limit, 2, 0))

    def margin(x: Array) -> FloatArray:
        m: FloatArray = limit - np.abs(x[:, OFFSET])
        return m

    problem = Problem(
        nominal=Normal(0.0, NOISE, dim=len(NOISE)),
        reset=lambda draws: np.zeros((draws.n, 3)),
        step=_step,
        failed=failed,
        margin=margin,
        horizon=steps,
        kinds=("left", "right"),
        chunk=2048,
        name="lane-keeper",
        description="a car keeps its lane through noisy sensors",
        parameters={"limit": limit, "steps": steps},
    )
    return with_stored_truth(problem)
