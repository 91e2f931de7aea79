"""Many episodes at once in a pool of envpool's, whose environments step in C++.

    apeval run examples/envpool_pendulum.py --episodes 1000

A controller holds a pendulum upright while its motor is noisy. It fails if the pendulum leans by
more than 40° after the first second. envpool takes seeds when a pool is made, so the function gets
`seeds`, and every block of episodes has a pool of its own. Needs the extra `envpool`.
"""

from __future__ import annotations

from typing import Any

import envpool
import numpy as np

import apeval

LIMIT = np.cos(np.deg2rad(40.0))


def pool(seeds: list[int]) -> Any:
    return envpool.make(
        "Pendulum-v1", env_type="gymnasium", num_envs=len(seeds), seed=seeds, num_threads=1
    )


def hold(obs: Any) -> Any:
    """Swings up by energy, then holds: a torque for each row of (cos θ, sin θ, rate)."""
    cos, sin, rate = obs.T
    energy = 0.5 * rate**2 - 15.0 * (1.0 - cos)
    swing = np.where(rate >= 0.0, -1.0, 1.0) * energy
    return np.clip(np.where(cos > 0.9, -12.0 * sin - 2.5 * rate, swing), -2.0, 2.0)


def problem(motor: float = 0.5, num_envs: int = 64) -> apeval.Problem:
    return apeval.from_vector_env(
        pool,
        policy=hold,
        disturb=apeval.ActionNoise(std=motor, hold=10),
        fails=lambda obs, info: (info["elapsed_step"] >= 100) & (obs[:, 0] < LIMIT),
        horizon=150,
        num_envs=num_envs,
        description="a noisy motor must swing a pendulum up and hold it, in envpool",
    )


if __name__ == "__main__":
    print(apeval.evaluate(problem(), episodes=1_000, seed=10_000))
