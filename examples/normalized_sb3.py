"""A policy trained under VecNormalize, with its statistics: a pendulum in a gusty room.

    python examples/normalized_sb3.py        trains for some minutes, then estimates
    apeval run examples/normalized_sb3.py --episodes 1000

Needs the extra `train`: pip install 'apeval[train]'
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import apeval

MODEL = Path(__file__).with_name("pendulum_ppo.zip")


def train(steps: int = 200_000, path: Path = MODEL) -> Path:
    """PPO on normalised observations. The statistics are saved beside the model, once as
    Stable-Baselines3 does, and once as a plain file: `apeval convert-statistics` does the same."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    venv = VecNormalize(make_vec_env("Pendulum-v1", n_envs=4, seed=0))
    model = PPO("MlpPolicy", venv, gamma=0.9, use_sde=True, seed=0, device="cpu")
    model.learn(steps).save(path)
    venv.save(str(path.with_suffix(".pkl")))
    rms: Any = venv.obs_rms
    np.savez(path.with_suffix(".npz"), mean=rms.mean, variance=rms.var, clip=venv.clip_obs)
    return path


def problem(gust: float = 1.0, model: str = str(MODEL), plain: bool = True) -> apeval.Problem:
    """Starts upright; a gust turns the pendulum every 10 steps. It fails if it falls over."""
    path = Path(model)
    if not path.exists():
        train(path=path)
    statistics = path.with_suffix(".npz" if plain else ".pkl")
    return apeval.from_env(
        "Pendulum-v1",
        policy=apeval.load_sb3(path, normalize=statistics),
        disturb=[
            apeval.ParameterNoise("state[1]", std=gust, kick=True, hold=10),
            apeval.StartNoise("state", std=[0.05, 0.1], replace=True),
        ],
        fails=lambda obs: obs[0] < 0.0,
        margin=lambda obs: float(obs[0]),
        horizon=60,
        description="a PPO on normalised observations holds a pendulum in gusts",
    )


if __name__ == "__main__":
    print(apeval.evaluate(problem(), episodes=1_000, seed=10_000))
