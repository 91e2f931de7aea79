"""`aa228v-pendulum`: the inverted pendulum of Stanford's course AA228V, with a noisy sensor.

"Validation of Safety-Critical Systems", project 2, medium system: github.com/sisl/AA228VProjects
and github.com/sisl/StanfordAA228V.jl (`src/inverted_pendulum.jl`). The task there is to estimate
its failure probability within 10,000 calls of `step`. A rollout has 41 states, hence 40 decisions
of nature here, and begins with nature's choice of the initial state.
"""

from __future__ import annotations

import numpy as np

from apeval.problem.draws import Draws
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.types import Array, FloatArray
from apeval_public.truth.known import with_stored_truth

THETA, OMEGA = 0, 1
DT, TOP_SPEED, TORQUE, LIMIT = 0.05, 8.0, 2.0, np.pi / 4.0
GAIN = np.array([-15.0, -8.0])
START = (np.pi / 32.0, 0.5)
NOISE, STATES = 0.1, 41


def swing(x: Array, seen: Array) -> FloatArray:
    """One step of 0.05 s, the torque being proportional to what is seen.

    Args:
        x: θ and ω, shape (n, 2).
        seen: The same with the sensor's noise.

    Returns:
        The next states, shape (n, 2).
    """
    wanted = GAIN[THETA] * seen[:, THETA] + GAIN[OMEGA] * seen[:, OMEGA]
    torque = np.clip(wanted, -TORQUE, TORQUE)
    omega = x[:, OMEGA] + (15.0 * np.sin(x[:, THETA]) + 3.0 * torque) * DT
    theta = x[:, THETA] + omega * DT
    return np.stack([theta, np.clip(omega, -TOP_SPEED, TOP_SPEED)], axis=1)


def _step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
    return swing(x, x + a_E)


def _failed(x: Array) -> Array:
    theta = x[:, THETA]
    return np.where(theta <= -LIMIT, 1, np.where(theta >= LIMIT, 2, 0))


def _margin(x: Array) -> FloatArray:
    m: FloatArray = LIMIT - np.abs(x[:, THETA])
    return m


@register("aa228v-pendulum", description="pendulum of Stanford's AA228V, sensor noise (8e-3)")
def aa228v_pendulum() -> Problem:
    """|θ| must stay below π/4 in all of 41 states."""
    problem = Problem(
        nominal=Normal(0.0, NOISE, dim=2),
        initial=Normal(0.0, START, dim=2),
        reset=lambda draws, a_0: np.array(a_0),
        step=_step,
        failed=_failed,
        margin=_margin,
        horizon=STATES - 1,
        kinds=("left", "right"),
        chunk=4096,
        name="aa228v-pendulum",
        description="inverted pendulum with a proportional controller and a noisy sensor",
    )
    return with_stored_truth(problem)
