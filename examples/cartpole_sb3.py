"""A policy trained with Stable-Baselines3: how often does it drop the pole in gusts?

    python examples/cartpole_sb3.py          trains for a few minutes, then estimates
    apeval run examples/cartpole_sb3.py --episodes 2000 --out runs/cartpole

Needs the extra `train`: pip install 'apeval[train]'
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apeval

MODEL = Path(__file__).with_name("cartpole_ppo.zip")


def train(steps: int = 60_000, path: Path = MODEL) -> Path:
    """PPO on the undisturbed environment; the model is saved as a zip file."""
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu", n_steps=512, batch_size=128)
    model.learn(steps)
    model.save(path)
    return path


def margin(obs: Any) -> float:
    """≤ 0 exactly where CartPole terminates: at 12 degrees, or 2.4 m from the middle."""
    x, _, angle, _ = map(float, obs)
    return min(0.20943951 - abs(angle), (2.4 - abs(x)) / 10.0)


def problem(gust: float = 0.02, model: str = str(MODEL)) -> apeval.Problem:
    """A gust turns the pole for 10 steps (0.2 s), then another one does."""
    if not Path(model).exists():
        train(path=Path(model))
    return apeval.from_env(
        "CartPole-v1",
        policy=model,  # loading a zip file executes code in it: load only what you trust
        disturb=apeval.ParameterNoise("state[3]", std=gust, kick=True, hold=10),
        fails="terminated",
        margin=margin,
        horizon=100,
        description="a PPO policy balances a pole in gusts",
    )


if __name__ == "__main__":
    print(apeval.evaluate(problem(), episodes=2_000, seed=10_000))
