"""How often does a cart-pole controller let the pole fall in gusty wind?

    apeval check FILE            finds mistakes, and says how to mend them
    apeval run FILE --episodes 2000 --out runs/first

Replace the environment, the policy, the disturbance and the failure by your own.
"""

from __future__ import annotations

import math
from typing import Any

import apeval


def policy(obs: Any) -> int:
    """The agent: any function of what it observes.

    A model of Stable-Baselines3 (policy=model, or policy="model.zip") and a torch module can be
    given to `from_env` as they are. One with memory is an object with reset() -> state and
    act(obs, state) -> (action, state).
    """
    x, v, angle, rate = obs
    return int(angle + 0.5 * rate + 0.05 * x + 0.1 * v > 0.0)


def margin(obs: Any) -> float:
    """The distance to failure: ≤ 0 exactly where the episode fails. Optional, but with it rare
    failures are found much sooner. The units do not matter."""
    x, _, angle, _ = obs
    return float(min(math.radians(12.0) - abs(angle), (2.4 - abs(x)) / 10.0))


def problem(gust: float = 0.03, horizon: int = 100) -> apeval.Problem:
    """What is evaluated. Its arguments can be set: --set problem.gust=0.05"""
    return apeval.from_env(
        "CartPole-v1",  # an id that gymnasium knows, or a function that makes an environment
        policy=policy,
        # What nature does, with its probability distribution: here a gust that turns the pole,
        # a new one every 10 steps. Others: ActionNoise, ObservationNoise, StartNoise,
        # DropAction, BlankSensor, Event, CustomNoise; several go into a list.
        disturb=apeval.ParameterNoise("state[3]", std=gust, kick=True, hold=10),
        # When an episode has failed: "terminated", "info.crashed", "horizon", or a function
        # of the observation such as lambda obs: abs(obs[0]) > 2.4
        fails="terminated",
        margin=margin,
        horizon=horizon,  # steps of the environment
        description="cart-pole in gusty wind",
    )


if __name__ == "__main__":
    result = apeval.evaluate(problem(), episodes=2_000, seed=0)
    print(result)  # noqa: T201
