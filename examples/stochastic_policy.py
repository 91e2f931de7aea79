"""A random policy, with its density: a controller that explores holds a pendulum in gusts.

    apeval run examples/stochastic_policy.py --episodes 1500

The policy's own randomness is not nature's to choose: every episode draws it from a stream of its
own, so that a failure can be replayed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import apeval


def mean(obs: Any) -> list[float]:
    """The torque that holds Pendulum-v1 upright: obs = (cos θ, sin θ, rate)."""
    return [-12.0 * float(obs[1]) - 2.5 * float(obs[2])]


POLICY = apeval.GaussianPolicy(mean, std=0.2)


def upright(env: Any, e: Any) -> None:
    """Start near the top instead of anywhere."""
    env.unwrapped.state = np.array([0.05 * e[0], 0.1 * e[1]])


def problem(gust: float = 0.08, horizon: int = 40) -> apeval.Problem:
    return apeval.from_env(
        "Pendulum-v1",
        policy=POLICY,
        disturb=[
            apeval.CustomNoise(upright, std=1.0, dim=2, once=True),
            apeval.ParameterNoise("state[1]", std=gust, kick=True, hold=4),
        ],
        fails=lambda obs: obs[0] <= 0.0,  # it hangs lower than it stands
        margin=lambda obs: obs[0],
        horizon=horizon,
        description="a random policy holds a pendulum in gusts",
    )


if __name__ == "__main__":
    print("log π_A(1.0 | upright) =", POLICY.log_prob(np.array([1.0, 0.0, 0.0]), 1.0))
    print(apeval.evaluate(problem(), episodes=1_500, seed=10_000))
