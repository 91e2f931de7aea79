"""Train the agent of the MiniGrid problems by deep Q-learning, and freeze two checkpoints.

    python -m apeval_paper.environments.minigrid.train --seed 0 --out DIRECTORY

`dqn.npz` is the checkpoint that fails least; p_stay is then set so that it fails with the
paper's 4·10⁻³. `dqn-stuck.npz` is a checkpoint of the same training in which the policy has
relapsed: where the lava comes down onto its row and bars the way, the agent goes round it, misses
the goal by one turn and walks against the wall in a corner until the time is up. About a fifth of
its failures are of that kind. Both are chosen by exact failure probabilities (backward
recursion over the table), not by sampled ones. Needs Stable-Baselines3.
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

from apeval.errors import ApevalError
from apeval.problem.exact import exact_by_kind, exact_values
from apeval_paper.environments.minigrid import policy, rules
from apeval_paper.environments.minigrid.env import FlowingLavaEnv

SETTINGS: dict[str, Any] = {
    "learning_rate": 1e-3,
    "buffer_size": 50_000,
    "batch_size": 64,
    "gamma": 0.95,
    "train_freq": 4,
    "target_update_interval": 500,
    "exploration_fraction": 0.4,
    "exploration_final_eps": 0.05,
    "policy_kwargs": {"net_arch": [64, 64]},
}
CHECKPOINT_EVERY = 250
TARGET = 3.97e-3  # the mean of the paper's three Monte Carlo values (Table I)
P_STAY_GRID = np.round(np.arange(0.70, 0.96, 0.01), 2)
STUCK_SHARE = 0.2
STUCK_TOLERANCE = 0.05
STUCK_RANGE = (1e-3, 2e-2)

Checkpoints = dict[int, policy.Layers]


def train(seed: int, steps: int, p_stay: float) -> Checkpoints:
    """Deep Q-learning with the lava starting anywhere; the network at every checkpoint."""
    import torch
    from stable_baselines3 import DQN

    torch.set_num_threads(1)  # sums in a fixed order: the same seed gives the same network
    agent = DQN("MlpPolicy", FlowingLavaEnv(p_stay), seed=seed, device="cpu", **SETTINGS)
    checkpoints: Checkpoints = {}

    def keep(_locals: dict[str, Any], _globals: dict[str, Any]) -> bool:
        if agent.num_timesteps % CHECKPOINT_EVERY == 0:
            layers = agent.policy.get_submodule("q_net").modules()
            checkpoints[agent.num_timesteps] = [
                (m.weight.detach().numpy().copy(), m.bias.detach().numpy().copy())
                for m in layers
                if isinstance(m, torch.nn.Linear)
            ]
        return True

    agent.learn(steps, callback=keep)
    return checkpoints


def failure_probabilities(layers: policy.Layers, p_stay: float) -> dict[str, float]:
    """The exact v*(s0) for each of the three starts."""
    first = next(iter(rules.LAVA_STARTS.values()))
    v = exact_values(rules.model(policy.greedy(layers), p_stay, first))[0]
    return {name: float(v[rules.start_state(at)]) for name, at in rules.LAVA_STARTS.items()}


def failure_kinds(layers: policy.Layers, p_stay: float) -> dict[str, float]:
    """The exact v*(s1) by kind of failure."""
    return exact_by_kind(rules.model(policy.greedy(layers), p_stay, rules.LAVA_STARTS["s1"]))


def best_checkpoint(checkpoints: Checkpoints, p_stay: float) -> int:
    """The checkpoint whose failure probability, averaged over the starts, is the lowest."""
    return min(
        checkpoints,
        key=lambda k: sum(failure_probabilities(checkpoints[k], p_stay).values()),
    )


def calibrated_p_stay(layers: policy.Layers) -> float:
    """The p_stay, to two decimals, that brings the three starts nearest to the paper's value."""

    def distance(p_stay: float) -> float:
        values = np.array(list(failure_probabilities(layers, p_stay).values()))
        return float(np.abs(np.log(values / TARGET)).max())

    return float(min(P_STAY_GRID, key=distance))


def stuck_checkpoint(checkpoints: Checkpoints, p_stay: float) -> int:
    """The checkpoint whose failures from s1 are nearest to one fifth stuck ones."""

    def distance(step: int) -> float:
        kinds = failure_kinds(checkpoints[step], p_stay)
        total = sum(kinds.values())
        in_range = STUCK_RANGE[0] <= total <= STUCK_RANGE[1]
        return abs(kinds["stuck"] / total - STUCK_SHARE) if in_range else np.inf

    nearest = min(checkpoints, key=distance)
    if distance(nearest) > STUCK_TOLERANCE:
        raise ApevalError(
            "no checkpoint fails by getting stuck in about a fifth of its failures: "
            "train for more steps, or with another seed"
        )
    return nearest


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, choose, write, and print what was chosen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20_000, help="environment steps")
    parser.add_argument("--p-stay", type=float, default=0.83, help="p_stay while training")
    parser.add_argument("--out", type=Path, required=True, help="directory for the two files")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)

    checkpoints = train(options.seed, options.steps, options.p_stay)
    best = best_checkpoint(checkpoints, options.p_stay)
    p_stay = calibrated_p_stay(checkpoints[best])
    chosen = {"dqn": best, "dqn-stuck": stuck_checkpoint(checkpoints, p_stay)}
    libraries = ("stable-baselines3", "torch", "gymnasium", "minigrid", "numpy")
    for name, step in chosen.items():
        layers = checkpoints[step]
        provenance = {
            "command": f"python -m apeval_paper.environments.minigrid.train --seed {options.seed}"
            f" --steps {options.steps} --p-stay {options.p_stay}",
            "seed": options.seed,
            "steps": options.steps,
            "checkpoint": step,
            "p_stay_training": options.p_stay,
            "p_stay": p_stay,
            "failure_probability": failure_probabilities(layers, p_stay),
            "failure_kinds_s1": failure_kinds(layers, p_stay),
            "settings": SETTINGS,
            "versions": {library: version(library) for library in libraries},
        }
        policy.save(options.out / f"{name}.npz", layers, provenance)
        sys.stdout.write(f"{name} {json.dumps(provenance, indent=2)}\n")


if __name__ == "__main__":
    main()
