"""A policy that lands in still air, trained once and kept as plain arrays: a network that imitates
Gymnasium's heuristic, then goes on by PPO. The engines have their dispersion there.

    python -m apeval_bench.harden_gain.lander_policy --out DIRECTORY

The file holds the policy's and the value function's weights, so that the training can go on. Needs
Stable-Baselines3 and Box2D.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from apeval.problem.types import Array
from apeval_bench.harden_gain.lander_env import ENV, GustyLander
from apeval_bench.harden_gain.lander_model import ENVS, FILE, PPO_SETTINGS, save, untrained

_STEPS, _EPISODES, _FIRST_SEED = 98_304, 100, 1_000
_ACTIONS = 4
_IMITATED, _EPOCHS, _BATCH, _ODD = 200, 15, 256, 0.1
"""Episodes of the heuristic, epochs and batch of the fit, and actions that are drawn at random, so
that it shows how it comes back."""


def trained(seed: int, steps: int) -> Any:
    """The recipe, in still air.

    Args:
        seed: Of everything random in it.
        steps: Environment steps.

    Returns:
        A Stable-Baselines3 model.
    """
    import torch

    torch.set_num_threads(1)  # sums in a fixed order: the same seed gives the same network
    model = untrained(seed)
    imitate(model, *shown(seed, model.gamma))
    return model.learn(steps)


def shown(seed: int, gamma: float) -> tuple[Array, Array, Array]:
    """What the heuristic does.

    Args:
        seed: Of the first episode, and of the random actions.
        gamma: The discount of a step.

    Returns:
        Observations, its actions, and the discounted returns from there.
    """
    from apeval_paper.environments.lunarlander.box2d import heuristic

    env, rng = GustyLander(dispersed=True), np.random.default_rng(seed)
    seen: list[Any] = []
    done: list[int] = []
    returns: list[float] = []
    for episode in range(_IMITATED):
        obs, _ = env.reset(seed=seed + episode)
        rewards: list[float] = []
        over = False
        while not over:
            action = int(heuristic(env.unwrapped, obs))
            seen.append(obs)
            done.append(action)
            if rng.random() < _ODD:
                action = int(rng.integers(_ACTIONS))
            obs, reward, terminated, truncated, _ = env.step(action)
            rewards.append(reward)
            over = terminated or truncated
        to_go = 0.0
        own = []
        for reward in reversed(rewards):
            to_go = reward + gamma * to_go
            own.append(to_go)
        returns += own[::-1]
    env.close()
    return np.array(seen, np.float32), np.array(done), np.array(returns, np.float32)


def imitate(model: Any, seen: Array, done: Array, returns: Array) -> None:
    """Fit the policy's actions and the value function by gradient steps.

    Args:
        model: Of `untrained`; it is changed.
        seen: Observations, one below the other.
        done: An action for each.
        returns: A return for each.
    """
    import torch

    obs, actions, targets = map(torch.as_tensor, (seen, done, returns))
    steps = torch.optim.Adam(model.policy.parameters(), lr=1e-3)
    for _ in range(_EPOCHS):
        shuffled = torch.randperm(len(obs))
        for first in range(0, len(obs), _BATCH):
            rows = shuffled[first : first + _BATCH]
            value, log_prob, _ = model.policy.evaluate_actions(obs[rows], actions[rows])
            off = (value.flatten() - targets[rows]) / 100.0
            steps.zero_grad()
            (off.square().mean() - log_prob.mean()).backward()
            steps.step()


def reached(model: Any, episodes: int = _EPISODES) -> dict[str, float]:
    """Returns of episodes in still air.

    Args:
        model: A trained model.
        episodes: How many.

    Returns:
        Mean return, number of crashes and mean length.
    """
    env = GustyLander(dispersed=True)
    returns, lengths, crashes = [], [], 0
    for seed in range(_FIRST_SEED, _FIRST_SEED + episodes):
        obs, _ = env.reset(seed=seed)
        total, length, over = 0.0, 0, False
        while not over:
            action, _ = model.predict(obs, deterministic=True)
            obs, reward, terminated, truncated, _ = env.step(int(action))
            total, length, over = total + reward, length + 1, terminated or truncated
        returns.append(total)
        lengths.append(length)
        crashes += reward <= -50.0
    env.close()
    return {
        "episodes": episodes,
        "mean_return": float(np.mean(returns)),
        "crashes": crashes,
        "mean_length": float(np.mean(lengths)),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, write, and print how it was trained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=_STEPS)
    parser.add_argument("--out", type=Path, required=True, help="directory for the file")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    model = trained(options.seed, options.steps)
    provenance = {
        "command": "python -m apeval_bench.harden_gain.lander_policy"
        f" --seed {options.seed} --steps {options.steps}",
        "env": ENV,
        "algorithm": "PPO",
        "settings": {**PPO_SETTINGS, "n_envs": ENVS},
        "still_air": reached(model),
        "versions": {it: version(it) for it in ("stable-baselines3", "torch", "gymnasium")},
    }
    save(model, options.out / FILE, provenance)
    sys.stdout.write(json.dumps(provenance, indent=2) + "\n")


if __name__ == "__main__":
    main()
