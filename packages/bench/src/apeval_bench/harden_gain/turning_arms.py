"""A left turn against an oncoming car: an agent that begins with constant speed."""

from __future__ import annotations

from typing import Any

from apeval.problem.problem import Problem
from apeval_bench.harden_gain.turning_ego import TurningEgo, turning

SETTINGS: dict[str, Any] = {
    "std": 1.0,
    "steps": 11_520,
    "episodes": 1_000,
    "return_episodes": 600,
    "failure_reward": -10.0,
}
"""Chosen on tuning seeds 0 to 2, so that a seed takes a few minutes."""


def in_traffic(policy: Any) -> Problem:
    """Int-v1 with disturbances twice as wide: of those of 0.5 two in a million turns end in a
    crash, which few training steps and few nominal episodes could show anything about."""
    return turning(policy, SETTINGS["std"])


def constant_speed(seed: int) -> Any:
    """A PPO model that has learned nothing: its most likely acceleration is exactly 0."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    envs = make_vec_env(TurningEgo, 32, seed=seed)
    model = PPO(
        "MlpPolicy", envs, seed=seed, device="cpu", n_steps=36, batch_size=288, gamma=1.0,
        learning_rate=1e-3, policy_kwargs={"log_std_init": -1.0},
    )  # fmt: skip
    last: Any = model.policy.action_net
    with torch.no_grad():
        last.weight.zero_()
        last.bias.zero_()
    return model
