"""A failure that comes from the start alone: does the brake hold a car that is already rolling?

    apeval run examples/mountain_car.py --episodes 1000

The car stands in a valley, somewhere between −0.6 and −0.4, and rolls with a random velocity when
the brake sets in. It fails if it gets over the hill.
"""

from __future__ import annotations

from typing import Any

import apeval

FLAG = 0.45  # the hill's top, where the environment terminates


def brake(obs: Any) -> list[float]:
    """Three tenths of full power against the direction of travel."""
    _, velocity = obs
    return [-0.3 if velocity > 0.0 else 0.3]


def problem(std: float = 0.013, horizon: int = 60) -> apeval.Problem:
    return apeval.from_env(
        "MountainCarContinuous-v0",
        policy=brake,
        disturb=apeval.StartNoise("state[1]", std=std),  # the velocity, 0 without it
        fails="terminated",
        margin=lambda obs: FLAG - float(obs[0]),
        horizon=horizon,
        description="a brake must hold a rolling car in the valley",
    )


if __name__ == "__main__":
    print(apeval.evaluate(problem(), episodes=1_000, seed=10_000))
