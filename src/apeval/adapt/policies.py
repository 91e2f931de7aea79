"""Policies that an environment is run with: functions, networks, and random ones.

A random policy gets its random numbers from the episode's own stream, so that an episode can be
repeated; it knows its density as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri

from apeval.adapt.spaces import is_discrete
from apeval.adapt.training import Training
from apeval.errors import ProblemError
from apeval.problem.laws import NormalLaw, pick
from apeval.problem.own import own
from apeval.problem.types import Array, FloatArray


class Policy(ABC):
    """π_A on one observation."""

    chance: int = 0
    """Random numbers that an action takes."""

    @abstractmethod
    def act(self, obs: Any, u: FloatArray) -> Any:
        """An action from `chance` uniforms in (0, 1)."""

    training: Training | None = None
    """What a trained model tells of its training, to compare with the environment here."""


class FunctionPolicy(Policy):
    """A function of the observation."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def act(self, obs: Any, u: FloatArray) -> Any:
        return self.function(obs)


class DiscretePolicy(Policy):
    """A random policy over K actions 0 … K−1.

    Args:
        probabilities: ``probabilities(obs)`` on one observation gives K numbers that sum to 1.

    Examples:
        >>> coin = DiscretePolicy(lambda obs: [0.25, 0.75])
        >>> coin.act(None, np.array([0.3])), round(coin.log_prob(None, 1), 4)
        (1, -0.2877)
    """

    chance = 1

    def __init__(self, probabilities: Callable[[Any], Any]) -> None:
        self.probabilities = probabilities

    def act(self, obs: Any, u: FloatArray) -> int:
        return int(pick(self._row(obs), u[None])[0, 0])

    def log_prob(self, obs: Any, action: int) -> float:
        """The log-probability log π_A(action | obs).

        Args:
            obs: One observation.
            action: An action, 0 … K−1.

        Returns:
            The logarithm; −∞ for an action that is never taken.

        Raises:
            ProblemError: The probabilities are none.
        """
        with np.errstate(divide="ignore"):
            return float(np.log(self._row(obs)[0, action]))

    def _row(self, obs: Any) -> FloatArray:
        p = np.asarray(self.probabilities(obs), np.float64)
        if p.ndim != 1 or not (np.all(p >= 0.0) and abs(float(p.sum()) - 1.0) <= 1e-5):
            raise ProblemError(
                f"the policy's probabilities are {np.array2string(p, threshold=8)}: return one per "
                "action, each ≥ 0, that sum to 1"
            )
        return p[None]


class GaussianPolicy(Policy):
    """A random policy over continuous actions: N(mean(obs), std(obs)²) per component.

    Args:
        mean: ``mean(obs)`` on one observation gives `dim` numbers.
        std: The standard deviation, a number or such a function.
        dim: The number of components of an action.
        squash: Maps the Gaussian into the action space, as tanh does for SAC; the density stays
            that of the Gaussian before it.
    """

    def __init__(
        self,
        mean: Callable[[Any], Any],
        std: float | Callable[[Any], Any],
        dim: int = 1,
        squash: Callable[[Array], Array] | None = None,
    ) -> None:
        self.mean, self.std, self.chance, self.squash = mean, std, dim, squash

    def act(self, obs: Any, u: FloatArray) -> Array:
        law = self._law(obs)
        if law.mean.shape[1] != self.chance:
            raise ProblemError(
                f"the policy's mean has {law.mean.shape[1]} components, but dim={self.chance}: "
                "give GaussianPolicy dim= the number of components of an action"
            )
        action: FloatArray = (law.mean + law.std * ndtri(u[None]))[0]
        return action if self.squash is None else self.squash(action)

    def log_prob(self, obs: Any, action: Any) -> float:
        """The log-density log π_A(action | obs), before `squash`.

        Args:
            obs: One observation.
            action: An action before `squash`, `dim` numbers.

        Returns:
            The logarithm of the density.

        Raises:
            ProblemError: A standard deviation is not positive.
        """
        return float(self._law(obs).log_prob(np.asarray(action, np.float64).reshape(1, -1))[0])

    def _law(self, obs: Any) -> NormalLaw:
        mean = np.asarray(self.mean(own(obs)), np.float64).reshape(1, -1)
        std = self.std(obs) if callable(self.std) else self.std
        row = np.broadcast_to(np.asarray(std, np.float64).reshape(1, -1), mean.shape)
        if not np.all(row > 0.0):
            raise ProblemError(f"the policy's std is {std}: every one must be positive")
        return NormalLaw(mean, row)


class TorchPolicy(Policy):
    """A torch module, put into evaluation mode: the largest output's number for discrete actions,
    the outputs themselves for continuous ones."""

    def __init__(self, module: Any, space: Any) -> None:
        self.module, self.space = module.eval(), space

    def act(self, obs: Any, u: FloatArray) -> Any:
        import torch

        weights = next(self.module.parameters(), None)
        like: dict[str, Any] = (
            {} if weights is None else {"device": weights.device, "dtype": weights.dtype}
        )
        with torch.no_grad():
            out = self.module(torch.as_tensor(np.asarray(obs), **like)[None])
        if not isinstance(out, torch.Tensor):
            raise ProblemError(
                f"the torch module returned a {type(out).__name__}, expected one tensor: give "
                "policy=lambda obs: … and pick the action out of what it returns"
            )
        values = out[0].cpu().numpy()
        if not is_discrete(self.space):
            return values
        if values.shape != (int(self.space.n),):
            raise ProblemError(
                f"the torch module returned shape {tuple(out.shape)} for {self.space}: it must "
                f"give {self.space.n} scores, the largest of which is chosen"
            )
        return int(values.argmax()) + int(self.space.start)
