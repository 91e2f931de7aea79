"""A policy in a folder of rl-zoo3, found by path with its statistics and stacked frames.

    apeval run examples/rl_zoo.py --episodes 1000 --set problem.folder=logs/ppo/Pendulum-v1_1

rl-zoo3 writes such a folder: python -m rl_zoo3.train --algo ppo --env Pendulum-v1. Without one,
this example writes a small one of the same layout. Needs pip install 'apeval[train,zoo]'
"""

from __future__ import annotations

from pathlib import Path

import apeval

FOLDER = Path(__file__).with_name("zoo") / "ppo" / "Pendulum-v1_1"
CONFIG = "normalize: dict(norm_obs=True, norm_reward=False)\nframe_stack: 2\npolicy: MlpPolicy\n"


def train(steps: int = 100_000, folder: Path = FOLDER) -> Path:
    """What rl_zoo3.train leaves behind, in short."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize

    settings = folder / "Pendulum-v1"
    settings.mkdir(parents=True, exist_ok=True)
    venv = VecNormalize(make_vec_env("Pendulum-v1", n_envs=4, seed=0), norm_reward=False)
    model = PPO("MlpPolicy", VecFrameStack(venv, 2), gamma=0.9, seed=0, device="cpu")
    model.learn(steps).save(folder / "Pendulum-v1.zip")
    venv.save(str(settings / "vecnormalize.pkl"))
    (settings / "config.yml").write_text(CONFIG)
    return folder


def problem(gust: float = 1.0, folder: str = str(FOLDER)) -> apeval.Problem:
    """Starts upright; a gust turns the pendulum every 10 steps. It fails if it falls over."""
    if not Path(folder).exists():
        train(folder=Path(folder))
    return apeval.from_env(
        "Pendulum-v1",
        policy=folder,
        disturb=[
            apeval.ParameterNoise("state[1]", std=gust, kick=True, hold=10),
            apeval.StartNoise("state", std=[0.05, 0.1], replace=True),
        ],
        fails=lambda obs: obs[0] < 0.0,
        margin=lambda obs: float(obs[0]),
        horizon=60,
        description="a policy of rl-zoo3 holds a pendulum in gusts",
    )


if __name__ == "__main__":
    print(apeval.evaluate(problem(), episodes=1_000, seed=10_000))
