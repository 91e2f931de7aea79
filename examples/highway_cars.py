"""Several cars at once: how often does a cautious driver crash among erratic ones?

    apeval run examples/highway_cars.py --episodes 600

Nature changes the speeds of highway-env's other cars once a second, all in one disturbance."""

from __future__ import annotations

from typing import Any

import numpy as np

import apeval

CARS, SLOWER, IDLE = 4, 4, 1


def make() -> Any:
    import gymnasium
    import highway_env  # noqa: F401

    config = {
        "lanes_count": 2, "vehicles_count": CARS, "duration": 10, "initial_spacing": 1.2,
        "observation": {"type": "Kinematics", "vehicles_count": CARS + 1, "normalize": False},
    }  # fmt: skip
    return gymnasium.make("highway-fast-v0", config=config)


def driver(obs: Any) -> int:
    """Slow down where a car ahead in the same lane is near; obs: presence, x, y, vx, vy."""
    present, x, y = obs[1:, 0] > 0.0, obs[1:, 1], obs[1:, 2]
    return SLOWER if np.any(present & (np.abs(y) < 2.0) & (x > 0.0) & (x < 35.0)) else IDLE


def change_speeds(env: Any, e: Any) -> None:
    for car, change in zip(env.unwrapped.road.vehicles[1:], e, strict=True):
        car.speed = max(0.0, car.speed + float(change))


def margin(obs: Any, terminated: bool, truncated: bool, info: dict[str, Any]) -> float:
    """The nearest car's distance, along or (times 4) across the road."""
    gaps = np.maximum(np.abs(obs[1:, 1]) - 5.0, 4.0 * (np.abs(obs[1:, 2]) - 2.0))
    nearest = float(gaps[obs[1:, 0] > 0.0].min(initial=100.0))
    return min(nearest, 0.0) if info["crashed"] else max(nearest, 0.01)


def problem(std: float = 1.0) -> apeval.Problem:
    return apeval.from_env(
        make,
        policy=driver,
        disturb=apeval.CustomNoise(change_speeds, std=std, dim=CARS),
        fails="info.crashed",
        margin=margin,
        horizon=10,
        description="a cautious driver among four erratic cars",
    )


if __name__ == "__main__":
    print(apeval.evaluate(problem(), episodes=600, seed=10_000))
