"""Many episodes at once in one of Gymnasium's vector environments, all functions on arrays.

    apeval run examples/vector_pendulum.py --episodes 1000

A controller holds a pendulum upright while its motor is noisy and the first angle and rate vary. It
fails if the pendulum leans by more than 40°. `mode="async"` puts every pendulum into a process of
its own; then the start cannot be disturbed from outside, and the motor alone is noisy. `autoreset`
(NEXT_STEP, SAME_STEP or DISABLED) makes no difference.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

import apeval

LIMIT = np.cos(np.deg2rad(40.0))


def hold(obs: Any) -> Any:
    """The torque for each row of (cos θ, sin θ, rate)."""
    return -12.0 * obs[:, 1] - 2.5 * obs[:, 2]


def many(n: int, mode: str, autoreset: str) -> Any:
    return gymnasium.make_vec(
        "Pendulum-v1", num_envs=n, vectorization_mode=mode, disable_env_checker=True,
        vector_kwargs={"autoreset_mode": AutoresetMode[autoreset]},
    )  # fmt: skip


def problem(
    motor: float = 0.9, num_envs: int = 64, mode: str = "sync", autoreset: str = "NEXT_STEP"
) -> apeval.Problem:
    disturb: list[Any] = [apeval.ActionNoise(std=motor, hold=5)]
    if mode == "sync":
        disturb.append(apeval.StartNoise("state", std=[0.05, 0.1], replace=True))
    return apeval.from_vector_env(
        lambda n: many(n, mode, autoreset),
        policy=hold,
        disturb=disturb,
        fails=lambda obs: obs[:, 0] < LIMIT,
        margin=lambda obs: obs[:, 0] - LIMIT,
        horizon=40,
        num_envs=num_envs,
        description="a noisy motor must hold a pendulum, in a vector environment",
    )


if __name__ == "__main__":
    print(apeval.evaluate(problem(), episodes=1_000, seed=10_000))
