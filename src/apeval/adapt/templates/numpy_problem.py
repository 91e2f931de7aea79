"""How often does a drone leave its corridor in gusty wind? A simulator written in NumPy.

    apeval check FILE            finds mistakes, and says how to mend them
    apeval run FILE --steps 20000 --out runs/first

All functions act on n episodes at once: the first axis of every array counts the episodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import apeval

Y, V = 0, 1  # the state's columns: offset from the corridor's middle, sideways speed
HALF_WIDTH, DT = 2.0, 0.2


def reset(draws: Any) -> Any:
    """The initial states, shape (n, 2). Chance that nature does not control comes from `draws`:
    draws.uniform(k) and draws.normal(k), shape (n, k)."""
    start = np.zeros((draws.n, 2))
    start[:, Y] = 0.1 * draws.normal(1)[:, 0]
    return start


def policy(x: Any) -> Any:
    """The agent: an action per episode, shape (n, 1)."""
    return np.clip(-1.5 * x[:, [Y]] - 1.2 * x[:, [V]], -3.0, 3.0)


def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    """One decision of nature: the next states. Work on a copy, never on x itself."""
    v = x[:, V] + DT * (a_A[:, 0] + a_E[:, 0])
    return np.stack([x[:, Y] + DT * v, v], axis=1)


def failed(x: Any) -> Any:
    """The failure event: n booleans."""
    return np.abs(x[:, Y]) >= HALF_WIDTH


def margin(x: Any) -> Any:
    """The distance to failure, n numbers, ≤ 0 exactly where it fails. Optional, but with it rare
    failures are found much sooner."""
    return HALF_WIDTH - np.abs(x[:, Y])


def problem(gust: float = 1.5, horizon: int = 25) -> apeval.Problem:
    """What is evaluated. Its arguments can be set: --set problem.gust=1.8"""
    return apeval.Problem(
        nominal=apeval.Normal(0.0, gust),  # the disturbance a_E, with its density
        reset=reset,
        step=step,
        agent=policy,
        failed=failed,
        margin=margin,
        horizon=horizon,
        description="a drone in a corridor, in gusty wind",
    )


if __name__ == "__main__":
    result = apeval.evaluate(problem(), steps=20_000, seed=0)
    print(result)  # noqa: T201
