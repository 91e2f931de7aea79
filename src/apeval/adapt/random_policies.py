"""Random policies with their density: their random numbers are the episode's own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from apeval.adapt.batches import stacked
from apeval.adapt.policies import Answer, Ask, InBatches, Policy, refuse_mixed
from apeval.errors import ProblemError
from apeval.problem.argument_copies import own
from apeval.problem.laws import NormalLaw, pick
from apeval.problem.types import Array, FloatArray


class RandomPolicy(InBatches):
    """A law of actions given observations, by the user's functions of one or of 16."""

    @abstractmethod
    def _functions(self) -> list[Callable[[Any], Any]]:
        """The user's functions."""

    def _each(self, ask: Ask) -> Answer:
        return Policy.answer(self, ask)

    def _asked(self, function: Callable[[Any], Any], observations: Any) -> FloatArray:
        """What a function says of a batch, or of one observation as a batch of one."""
        said = np.asarray(function(own(observations)), np.float64)
        return said if self.together else said[None]

    def _one(self, obs: Any) -> Any:
        """One observation as the functions take it; its answer is the first row."""
        return stacked([obs], np.zeros(1, np.int64)) if self.together else obs

    def fitted(self, space: Any, seen: Any) -> Policy:
        if self.together:
            for function in self._functions():
                refuse_mixed(type(self).__name__, function, seen)
        return super().fitted(space, seen)


class DiscretePolicy(RandomPolicy):
    """A random policy over K actions 0 … K−1.

    Args:
        probabilities: ``probabilities(obs)`` on one observation gives K numbers that sum to 1.
        batch: Whether it takes 16 observations at once, shape (16, …), and gives (16, K).

    Examples:
        >>> coin = DiscretePolicy(lambda obs: [0.25, 0.75])
        >>> coin.act(None, np.array([0.3])), round(coin.log_prob(None, 1), 4)
        (1, -0.2877)
    """

    chance = 1

    def __init__(self, probabilities: Callable[[Any], Any], *, batch: bool = False) -> None:
        self.probabilities, self.together = probabilities, batch

    def _functions(self) -> list[Callable[[Any], Any]]:
        return [self.probabilities]

    def act(self, obs: Any, u: FloatArray) -> int:
        if self.together:
            return int(super().act(obs, u))
        return int(pick(self._law(obs), u[None])[0, 0])

    def rows(self, observations: Any, u: FloatArray, memories: Sequence[Any]) -> Answer:
        return pick(self._law(observations), u)[:, 0], memories

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
            return float(np.log(self._law(self._one(obs))[0, action]))

    def _law(self, observations: Any) -> FloatArray:
        p = self._asked(self.probabilities, observations)
        if p.ndim != 2 or not np.all((p >= 0.0).all(axis=1) & (np.abs(p.sum(axis=1) - 1) <= 1e-5)):
            shown = p[0] if len(p) == 1 else p
            raise ProblemError(
                f"the policy's probabilities are {np.array2string(shown, threshold=8)}: return one "
                "per action, each ≥ 0, that sum to 1"
            )
        return p


class GaussianPolicy(RandomPolicy):
    """A random policy over continuous actions: N(mean(obs), std(obs)²) per component.

    Args:
        mean: ``mean(obs)`` on one observation gives `dim` numbers.
        std: The standard deviation, a number or such a function.
        dim: The number of components of an action.
        squash: Maps the Gaussian into the action space, as tanh does for SAC; the density stays
            that of the Gaussian before it.
        batch: Whether the functions take 16 observations at once, shape (16, …), and give
            (16, dim); `squash` then gets (16, dim) as well.
    """

    def __init__(
        self,
        mean: Callable[[Any], Any],
        std: float | Callable[[Any], Any],
        dim: int = 1,
        squash: Callable[[Array], Array] | None = None,
        *,
        batch: bool = False,
    ) -> None:
        self.mean, self.std, self.chance, self.squash = mean, std, dim, squash
        self.together = batch

    def _functions(self) -> list[Callable[[Any], Any]]:
        return [self.mean, *([self.std] if callable(self.std) else [])]

    def act(self, obs: Any, u: FloatArray) -> Array:
        if self.together:
            return np.asarray(super().act(obs, u))
        action = self._drawn(obs, u[None])[0]
        return action if self.squash is None else self.squash(action)

    def rows(self, observations: Any, u: FloatArray, memories: Sequence[Any]) -> Answer:
        actions = self._drawn(observations, u)
        return (actions if self.squash is None else self.squash(actions)), memories

    def _drawn(self, observations: Any, u: FloatArray) -> FloatArray:
        law = self._law(observations)
        if law.mean.shape[1] != self.chance:
            raise ProblemError(
                f"the policy's mean has {law.mean.shape[1]} components, but dim={self.chance}: "
                "give GaussianPolicy dim= the number of components of an action"
            )
        actions: FloatArray = law.mean + law.std * ndtri(u)
        return actions

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
        law = self._law(self._one(obs))
        actions = np.tile(np.asarray(action, np.float64).reshape(1, -1), (len(law.mean), 1))
        return float(law.log_prob(actions)[0])

    def _law(self, observations: Any) -> NormalLaw:
        mean = self._asked(self.mean, observations)
        mean = mean.reshape(len(mean), -1)
        std = self._asked(self.std, observations) if callable(self.std) else self.std
        rows = np.asarray(std, np.float64)
        rows = np.broadcast_to(rows.reshape(len(mean) if callable(self.std) else 1, -1), mean.shape)
        if not np.all(rows > 0.0):
            raise ProblemError(f"the policy's std is {std}: every one must be positive")
        return NormalLaw(mean, rows)
