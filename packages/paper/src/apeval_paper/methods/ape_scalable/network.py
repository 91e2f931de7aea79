"""v_ψ as a small neural network: the alternative that the paper argues against."""

from __future__ import annotations

import numpy as np
import torch

from apeval.problem.types import FloatArray

_HIDDEN = 64
_STEPS = 50


class Network:
    """Two hidden layers, trained online by weighted squared error (Adam)."""

    def __init__(self, d: int, seed: int, rate: float = 3e-3) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            last = torch.nn.Linear(_HIDDEN, 1)
            self.net = torch.nn.Sequential(
                torch.nn.Linear(d, _HIDDEN),
                torch.nn.Tanh(),
                torch.nn.Linear(_HIDDEN, _HIDDEN),
                torch.nn.Tanh(),
                last,
            ).double()
        torch.nn.init.zeros_(last.weight)
        torch.nn.init.zeros_(last.bias)
        self._adam = torch.optim.Adam(self.net.parameters(), lr=rate)

    def train(self, X: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        """Gradient steps on ½(v_ψ(s) − target)², averaged over these data with their weights."""
        inputs, targets = torch.from_numpy(X), torch.from_numpy(y)
        share = torch.from_numpy(weight / weight.sum())
        for _ in range(_STEPS):
            loss = 0.5 * share @ (self.net(inputs)[:, 0] - targets).square()
            if not torch.isfinite(loss):
                raise FloatingPointError("the loss of v_ψ's network is not finite")
            self._adam.zero_grad()
            loss.backward()
            self._adam.step()

    def mean(self, X: FloatArray) -> FloatArray:
        """v_ψ."""
        with torch.no_grad():
            return np.asarray(self.net(torch.from_numpy(X))[:, 0].numpy())
