"""The pendulum: its constants, its controller, how it swings, and when it has fallen."""

from __future__ import annotations

import numpy as np

from apeval.problem.types import Array, FloatArray

THETA, OMEGA = 0, 1
LIMIT = float(np.pi / 4.0)
START = np.array([np.pi / 18.0, 0.1])
"""θ_0 and ω_0 are uniform on ± these."""
DT, TOP_SPEED, TORQUE = 0.1, 8.0, 2.0
STEPS, STD = 19, 0.3
VALUES = np.array([-1.0, -0.25, 0.0, 0.25, 1.0])
DISCRETE_STD = 0.4
LEFT, RIGHT = 1, 2


def discrete_probabilities(std: float = DISCRETE_STD) -> FloatArray:
    """Proportional to the density of N(0, std²) at the five values.

    >>> discrete_probabilities().round(4).tolist()
    [0.0161, 0.301, 0.3659, 0.301, 0.0161]
    """
    density = np.exp(-0.5 * (VALUES / std) ** 2)
    p: FloatArray = density / density.sum()
    return p


def controller(x: Array) -> FloatArray:
    """π_A: the torque that stops a fall, saturated at ± 2."""
    theta = x[:, THETA]
    wanted = -x[:, OMEGA] - np.sign(theta) * np.sqrt(60.0 * (1.0 - np.cos(theta)))
    a_A: FloatArray = np.clip(wanted, -TORQUE, TORQUE)
    return a_A[:, None]


def swing(x: Array, torque: FloatArray) -> Array:
    """One step of 0.1 s."""
    omega = x[:, OMEGA] + DT * (15.0 * np.sin(x[:, THETA]) + 3.0 * torque)
    theta = x[:, THETA] + DT * omega
    return np.stack([theta, np.clip(omega, -TOP_SPEED, TOP_SPEED)], axis=1)


def failed(x: Array) -> Array:
    """Fallen to the left, to the right, or not."""
    theta = x[:, THETA]
    return np.where(theta < -LIMIT, LEFT, np.where(theta > LIMIT, RIGHT, 0))


def margin(x: Array) -> FloatArray:
    """π/4 − |θ|."""
    m: FloatArray = LIMIT - np.abs(x[:, THETA])
    return m
