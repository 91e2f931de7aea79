"""Recurrent policies of sb3-contrib: RecurrentPPO. It is imported only when used."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from apeval.adapt.batches import stacked
from apeval.adapt.policies import Answer, InBatches
from apeval.adapt.spaces import is_discrete
from apeval.adapt.torch_policy import quietly
from apeval.adapt.training import Training
from apeval.errors import ProblemError
from apeval.problem.laws import pick
from apeval.problem.types import Array, FloatArray


def is_recurrent(model: Any) -> bool:
    """Whether a model of Stable-Baselines3, or its policy, keeps an LSTM's state."""
    if "stable_baselines3" not in sys.modules:
        return False
    from stable_baselines3.common.policies import BasePolicy

    network = getattr(model, "policy", model)
    return isinstance(network, BasePolicy) and hasattr(network, "lstm_hidden_state_shape")


class SB3RecurrentPolicy(InBatches):
    """A model with an LSTM, ``predict(obs, state=…)``; what it remembers are the hidden and the
    cell state of its layers.

    Args:
        model: A RecurrentPPO, or its policy.
        training: What it tells of its training.
        deterministic: Whether the most likely action is taken, not one that is drawn.
    """

    has_memory = True

    def __init__(self, model: Any, training: Training, deterministic: bool = True) -> None:
        self.model, self.training = model, training
        self.network = getattr(model, "policy", model)
        self.deterministic = deterministic
        if not deterministic:
            space = self.network.action_space
            squashed = getattr(self.network, "squash_output", False)
            if squashed or not (is_discrete(space) or hasattr(space, "low")):
                raise ProblemError(
                    f"the randomness of a policy over {space} is not known to apeval: use its most "
                    "likely action (deterministic=True)"
                )
            self.chance = 1 if is_discrete(space) else int(np.prod(space.shape))

    def start(self) -> tuple[Array, Array]:
        layers, _, width = self.network.lstm_hidden_state_shape
        return np.zeros((layers, width), np.float32), np.zeros((layers, width), np.float32)

    def rows(self, observations: Any, u: FloatArray, memories: Sequence[Any]) -> Answer:
        size = len(memories)
        state = tuple(np.moveaxis(part, 0, 1) for part in stacked(memories, np.arange(size), size))
        if self.deterministic:
            starts = np.zeros(size, bool)  # a new episode comes with a new state
            with quietly():
                actions, kept = self.network.predict(
                    observations, state=state, episode_start=starts, deterministic=True
                )
        else:
            actions, kept = self._drawn(observations, state, u)
        hidden, cell = (np.moveaxis(part, 1, 0) for part in kept)
        return actions, [(hidden[row].copy(), cell[row].copy()) for row in range(size)]

    def _drawn(
        self, observations: Any, state: tuple[Array, ...], u: FloatArray
    ) -> tuple[Array, tuple[Array, Array]]:
        """Actions from the policy's distribution, by the episodes' own random numbers."""
        import torch

        network = self.network
        network.set_training_mode(False)
        with quietly():
            tensor, _ = network.obs_to_tensor(observations)
            states = tuple(torch.tensor(part, dtype=torch.float32) for part in state)
            found, kept = network.get_distribution(tensor, states, torch.zeros(len(u)))
            law = found.distribution
            if hasattr(law, "probs"):
                actions = pick(law.probs.numpy().astype(np.float64), u)[:, 0]
            else:
                mean, std = (part.numpy().astype(np.float64) for part in (law.mean, law.stddev))
                space = network.action_space
                actions = (mean + std * ndtri(u)).reshape(len(u), *space.shape)
                actions = np.clip(actions, space.low, space.high)
        return actions, (kept[0].numpy(), kept[1].numpy())
