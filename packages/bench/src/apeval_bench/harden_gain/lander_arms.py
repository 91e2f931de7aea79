"""LunarLander in gusts, and a policy that was trained in still air."""

from __future__ import annotations

from typing import Any

from apeval.adapt.from_env import from_env
from apeval.adapt.noises import CustomNoise
from apeval.problem.problem import Problem
from apeval_bench.harden_gain.lander_env import FRAMES, GustyLander, blow
from apeval_bench.harden_gain.lander_model import put_into, untrained

SETTINGS: dict[str, Any] = {
    "gust": 4.0,
    "hold": 12,
    "horizon": 120,
    "steps": 24_576,
    "episodes": 600,
    "return_episodes": 150,
    "failure_reward": -100.0,
}
"""Chosen on tuning seeds, so that a seed takes a few minutes."""
GUST_SECONDS = SETTINGS["hold"] * FRAMES / 50.0
KINDS = ("crash", "away")


def failed(obs: Any, env: Any) -> int:
    """1 for a crash, 2 for a lander that left the field: what costs 100 in the environment."""
    if abs(float(obs[0])) >= 1.0:
        return 2
    return int(env.unwrapped.game_over)


def in_gusts(policy: Any) -> Problem:
    """A gust blows for about a second, then another one does."""
    return from_env(
        GustyLander,
        policy=policy,
        disturb=CustomNoise(blow, std=SETTINGS["gust"], hold=SETTINGS["hold"]),
        fails=failed,
        horizon=SETTINGS["horizon"],
        kinds=KINDS,
        name="lander-gusts",
        description="a PPO policy lands in gusts",
    )


def trained_in_still_air(seed: int) -> Any:
    """The kept policy, in a model that goes on learning with a seed of its own."""
    return put_into(untrained(seed))
