"""A torch module with a hidden state: a network that filters what a noisy sensor tells it.

    apeval run examples/torch_memory.py --episodes 1000

Needs torch, which the extra `train` brings: pip install 'apeval[train]'
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import apeval

LIMIT = np.cos(np.deg2rad(40.0))


class Filter(torch.nn.Module):
    """forward(obs, state) -> (action, state), with observations of shape (n, 3). The state is None
    at an episode's start; what a GRU or an LSTM returns will do as well."""

    def __init__(self, share: float = 0.5) -> None:
        super().__init__()
        self.register_buffer("share", torch.tensor(share))
        self.gain = torch.nn.Linear(3, 1, bias=False)
        with torch.no_grad():
            self.gain.weight[:] = torch.tensor([[0.0, -10.0, -2.0]])

    def forward(self, obs: Any, state: Any = None) -> Any:
        state = obs if state is None else state + self.share * (obs - state)
        return self.gain(state), state


def problem(noise: float = 0.15, share: float = 0.5) -> apeval.Problem:
    """The sensor errs at every other step; the start varies a little."""
    return apeval.from_env(
        "Pendulum-v1",
        policy=Filter(share),
        disturb=[
            apeval.ObservationNoise(std=noise, index=[1, 2], hold=2),
            apeval.StartNoise("state", std=[0.05, 0.1], replace=True),
        ],
        fails=lambda obs: obs[0] < LIMIT,
        margin=lambda obs: float(obs[0]) - LIMIT,
        horizon=40,
        description="a network with a hidden state must hold a pendulum",
    )


if __name__ == "__main__":
    print(apeval.evaluate(problem(), episodes=1_000, seed=10_000))
