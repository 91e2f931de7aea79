"""A recurrent policy of sb3-contrib: how often does it drop a pole whose speeds it cannot see?

    python examples/recurrent_ppo.py         trains for some minutes, then estimates
    apeval run examples/recurrent_ppo.py --episodes 1000

Needs the extras `train` and `zoo`: pip install 'apeval[train,zoo]'
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import apeval

MODEL = Path(__file__).with_name("cartpole_lstm.zip")


def positions() -> Any:
    """CartPole that shows position and angle, not their rates."""
    env = gymnasium.make("CartPole-v1")
    space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    return gymnasium.wrappers.TransformObservation(env, lambda obs: obs[[0, 2]], space)


def train(steps: int = 100_000, path: Path = MODEL) -> Path:
    """RecurrentPPO on the undisturbed environment; the model is saved as a zip file."""
    from sb3_contrib import RecurrentPPO

    options = {"lstm_hidden_size": 64, "net_arch": [64]}
    model = RecurrentPPO("MlpLstmPolicy", positions(), policy_kwargs=options, seed=0, device="cpu")
    model.learn(steps).save(path)
    return path


def problem(gust: float = 0.02, model: str = str(MODEL)) -> apeval.Problem:
    """A gust turns the pole for 10 steps (0.2 s), then another one does."""
    if not Path(model).exists():
        train(path=Path(model))
    return apeval.from_env(
        positions,
        policy=model,  # loading a zip file executes code in it: load only what you trust
        disturb=apeval.ParameterNoise("state[3]", std=gust, kick=True, hold=10),
        margin=lambda obs: min(0.20943951 - abs(float(obs[1])), (2.4 - abs(float(obs[0]))) / 10.0),
        horizon=100,
        description="a recurrent policy balances a pole in gusts",
    )


if __name__ == "__main__":
    print(apeval.evaluate(problem(), episodes=2_000, seed=10_000))
