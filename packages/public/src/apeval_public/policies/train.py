"""Train the policies of the simulators, and freeze them.

    python -m apeval_public.policies.train cartpole --out DIRECTORY

Settings are those of rl-baselines3-zoo (its `hyperparams/ppo.yml` and `sac.yml`) where a remark
says so. The policies are evaluated undisturbed, on seeds from 1,000 on, and the file keeps what
they reached. Needs Stable-Baselines3.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from apeval_public.policies.network import FrozenNetwork

_EPISODES, _FIRST_SEED = 100, 1_000


@dataclass(frozen=True)
class Recipe:
    """How one policy is trained."""

    env: str
    algorithm: str
    steps: int
    envs: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    linear: tuple[str, ...] = ()
    """Settings that fall linearly to 0 during the training."""
    source: str = ""
    """Where the settings come from."""


RECIPES = {
    "cartpole": Recipe(
        "CartPole-v1",
        "PPO",
        100_000,
        8,
        {
            "n_steps": 32,
            "batch_size": 256,
            "gae_lambda": 0.8,
            "gamma": 0.98,
            "n_epochs": 20,
            "ent_coef": 0.0,
            "learning_rate": 0.001,
            "clip_range": 0.2,
        },
        ("learning_rate", "clip_range"),
        "rl-baselines3-zoo, ppo.yml, CartPole-v1",
    ),
    "inverted-pendulum": Recipe(
        "InvertedPendulum-v5",
        "PPO",
        100_000,
        8,
        {"n_steps": 256, "batch_size": 256, "gamma": 0.99, "learning_rate": 1e-3},
        ("learning_rate",),
        "own; defaults of Stable-Baselines3 elsewhere",
    ),
    "lunarlander": Recipe(
        "LunarLander-v3",
        "PPO",
        1_000_000,
        16,
        {
            "n_steps": 1024,
            "batch_size": 64,
            "gae_lambda": 0.98,
            "gamma": 0.999,
            "n_epochs": 4,
            "ent_coef": 0.01,
        },
        (),
        "rl-baselines3-zoo, ppo.yml, LunarLander-v2",
    ),
    "hopper": Recipe(
        "Hopper-v5",
        "SAC",
        200_000,
        1,
        {
            "learning_starts": 10_000,
            "train_freq": 2,
            "policy_kwargs": {"net_arch": [64, 64]},
        },
        (),
        "rl-baselines3-zoo, sac.yml, Hopper-v3, with a smaller network, an update every second "
        "step and a fifth of the steps",
    ),
}


def train(recipe: Recipe, seed: int, steps: int) -> Any:
    """A trained model of Stable-Baselines3.

    Args:
        recipe: Environment, algorithm and settings.
        seed: Of everything random in it.
        steps: Environment steps.

    Returns:
        The model.
    """
    import stable_baselines3
    import torch
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)  # sums in a fixed order: the same seed gives the same network
    settings = dict(recipe.settings)
    for name in recipe.linear:
        settings[name] = _falling(settings[name])
    envs = make_vec_env(recipe.env, recipe.envs, seed=seed)
    algorithm = getattr(stable_baselines3, recipe.algorithm)
    return algorithm("MlpPolicy", envs, seed=seed, device="cpu", **settings).learn(steps)


def _falling(start: float) -> Callable[[float], float]:
    return lambda remaining: remaining * start


def frozen(model: Any, provenance: dict[str, Any]) -> FrozenNetwork:
    """The layers from the observation to the most likely action.

    Args:
        model: A PPO or SAC model.
        provenance: What the file keeps about it.

    Returns:
        Logits for discrete actions, the action's mean (PPO), or the mean before tanh (SAC).
    """
    import torch

    policy = model.policy
    if hasattr(policy, "actor") and policy.actor is not None:
        parts = [*policy.actor.latent_pi, policy.actor.mu]
    else:
        parts = [*policy.mlp_extractor.policy_net, policy.action_net]
    linear = [m for m in parts if isinstance(m, torch.nn.Linear)]
    layers = [(m.weight.detach().numpy().T.copy(), m.bias.detach().numpy()) for m in linear]
    relu = any(isinstance(m, torch.nn.ReLU) for m in parts)
    return FrozenNetwork(layers, "relu" if relu else "tanh", provenance)


def reached(model: Any, env_id: str) -> dict[str, float]:
    """Returns and lengths of undisturbed episodes.

    Args:
        model: A trained model.
        env_id: Gymnasium's name of the environment.

    Returns:
        Mean and smallest return, mean length and how many episodes there were.
    """
    import gymnasium

    env = gymnasium.make(env_id)
    returns, lengths = [], []
    for seed in range(_FIRST_SEED, _FIRST_SEED + _EPISODES):
        obs, _ = env.reset(seed=seed)
        total, length, over = 0.0, 0, False
        while not over:
            action, _ = model.predict(obs, deterministic=True)
            obs, reward, terminated, truncated, _ = env.step(action)
            total, length, over = total + float(reward), length + 1, terminated or truncated
        returns.append(total)
        lengths.append(length)
    env.close()
    return {
        "episodes": _EPISODES,
        "mean_return": float(np.mean(returns)),
        "smallest_return": float(np.min(returns)),
        "mean_length": float(np.mean(lengths)),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train one policy, write it, and print what it reached."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("policy", choices=sorted(RECIPES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="environment steps; by default the recipe's")
    parser.add_argument("--out", type=Path, required=True, help="directory for the file")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    recipe = RECIPES[options.policy]
    steps = options.steps or recipe.steps
    model = train(recipe, options.seed, steps)
    libraries = ("stable-baselines3", "torch", "gymnasium", "numpy")
    provenance = {
        "command": f"python -m apeval_public.policies.train {options.policy}"
        f" --seed {options.seed} --steps {steps}",
        "env": recipe.env,
        "algorithm": recipe.algorithm,
        "seed": options.seed,
        "steps": steps,
        "settings": {**recipe.settings, "n_envs": recipe.envs, "linear": list(recipe.linear)},
        "settings_from": recipe.source,
        "undisturbed": reached(model, recipe.env),
        "versions": {library: version(library) for library in libraries},
    }
    frozen(model, provenance).save(options.out / f"{options.policy}.npz")
    sys.stdout.write(f"{options.policy} {json.dumps(provenance, indent=2)}\n")


if __name__ == "__main__":
    main()
