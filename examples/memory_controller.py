"""A policy with memory: a controller with an integral holds a pendulum against a steady push.

    apeval run examples/memory_controller.py --episodes 1000

What it remembers is handed on: `reset()` gives the state that an episode starts with, `act(obs,
state)` an action and the next state. It belongs to the episode, so failures can be replayed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import apeval

LIMIT = np.cos(np.deg2rad(40.0))


class Controller:
    """Proportional, integral and derivative."""

    def reset(self) -> float:
        """The integral before the first step."""
        return 0.0

    def act(self, obs: Any, state: float) -> Any:
        """The torque, and the integral after this step."""
        _, sine, rate = map(float, obs)
        state = 0.95 * state + sine
        return [-10.0 * sine - 2.0 * rate - 0.8 * state], state


def problem(push: float = 0.8, shown: bool = False) -> apeval.Problem:
    """With `shown` a method sees the integral as well."""
    views: dict[str, Any] = {"observation": lambda obs, info: obs}
    if shown:
        views = {"with memory": lambda obs, info, memory: [*obs, memory]}
    return apeval.from_env(
        "Pendulum-v1",
        policy=Controller(),
        disturb=[
            apeval.ActionNoise(std=push, hold=5, correlation=0.8),
            apeval.StartNoise("state", std=[0.05, 0.1], replace=True),
        ],
        fails=lambda obs: obs[0] < LIMIT,
        margin=lambda obs: float(obs[0]) - LIMIT,
        horizon=40,
        views=views,
        description="a controller with an integral must hold a pendulum",
    )


if __name__ == "__main__":
    print(apeval.evaluate(problem(), episodes=1_000, seed=10_000))
