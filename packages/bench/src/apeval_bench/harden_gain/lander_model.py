"""The lander's network: its settings, and its weights as plain arrays."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from apeval_bench.harden_gain.lander_env import GustyLander

ENVS = 16
PPO_SETTINGS: dict[str, Any] = {
    "n_steps": 128,
    "batch_size": 64,
    "learning_rate": 3e-4,
    "gae_lambda": 0.95,
    "gamma": 0.996,
    "n_epochs": 4,
    "ent_coef": 0.0,
}
FILE = "lander-ppo.npz"
_ABOUT = "provenance"


def untrained(seed: int) -> Any:
    """A Stable-Baselines3 model that has learned nothing.

    Args:
        seed: Of everything random in it.
    """
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    envs = make_vec_env(GustyLander, ENVS, seed=seed, env_kwargs={"dispersed": True})
    return PPO("MlpPolicy", envs, seed=seed, device="cpu", **PPO_SETTINGS)


def save(model: Any, path: Path, provenance: dict[str, Any]) -> None:
    """Write all weights as plain arrays, and how they came about as text.

    Args:
        model: A Stable-Baselines3 model.
        path: The file, ending in ``.npz``.
        provenance: Anything that JSON can hold.
    """
    arrays: dict[str, Any] = {_ABOUT: np.array(json.dumps(provenance))}
    arrays |= {name: it.detach().numpy() for name, it in model.policy.state_dict().items()}
    np.savez(path, **arrays)


def put_into(model: Any) -> Any:
    """The kept weights in a model of the same shape; nothing in the file is executed.

    Args:
        model: A PPO model with the default network, of `untrained`.

    Returns:
        The same model.
    """
    import torch

    with (files(__package__) / FILE).open("rb") as file, np.load(file, allow_pickle=False) as held:
        weights = {name: torch.as_tensor(held[name]) for name in held if name != _ABOUT}
    model.policy.load_state_dict(weights)
    return model
