"""A simulator of your own, written in NumPy for n episodes at once: landing in gusts.

    apeval run examples/numpy_simulator.py --steps 100000

The aircraft sinks at 3 m/s from 60 m; gusts change its sideways speed. It must touch down within
8 m of the runway's middle.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import apeval

HEIGHT, SIDE, SPEED = range(3)
HALF_WIDTH, DT = 8.0, 1.0


def reset(draws: Any) -> Any:
    x = np.zeros((draws.n, 3))
    x[:, HEIGHT] = 60.0
    x[:, SIDE] = 2.0 * draws.normal(1)[:, 0]  # chance that nobody controls
    return x


def pilot(x: Any) -> Any:
    return np.clip(-0.15 * x[:, [SIDE]] - 0.6 * x[:, [SPEED]], -1.5, 1.5)


def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    speed = x[:, SPEED] + DT * (a_A[:, 0] + a_E[:, 0])
    return np.stack([x[:, HEIGHT] - 3.0 * DT, x[:, SIDE] + DT * speed, speed], axis=1)


def touchdown(x: Any) -> Any:
    return x[:, HEIGHT] <= 0.0


def problem(gust: float = 0.6) -> apeval.Problem:
    return apeval.Problem(
        nominal=apeval.Normal(0.0, gust),
        reset=reset,
        step=step,
        agent=pilot,
        done=touchdown,
        failed=lambda x: np.abs(x[:, SIDE]) >= HALF_WIDTH,
        margin=lambda x: HALF_WIDTH - np.abs(x[:, SIDE]),
        judge_at_end=True,  # only where it touches down counts
        horizon=20,
        description="an aircraft lands in gusts",
    )


if __name__ == "__main__":
    print(apeval.evaluate(problem(), steps=100_000, seed=10_000))
