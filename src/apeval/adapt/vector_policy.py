"""Policies of a vector environment: asked for all of its sub-environments at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from apeval.adapt.given_policy import as_policy
from apeval.adapt.observation_batches import take
from apeval.adapt.policies import Ask, FunctionPolicy, Policy
from apeval.problem.types import FloatArray


class VectorPolicy(ABC):
    """π_A on the observations of all sub-environments."""

    chance: int = 0
    """Random numbers that an action takes."""

    def start(self, n: int) -> Any:
        """What is remembered before the first actions of n episodes."""
        return None

    @abstractmethod
    def act(self, obs: Any, u: FloatArray, memory: Any) -> tuple[Any, Any]:
        """An action for each row, from `chance` uniforms in (0, 1), and what is then
        remembered."""


class OfAll(VectorPolicy):
    """A function of all observations."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def act(self, obs: Any, u: FloatArray, memory: Any) -> tuple[Any, Any]:
        return self.function(obs), None


class OfRows(VectorPolicy):
    """A policy as `from_env` takes it: of one observation, or of batches."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.chance = policy, policy.chance

    def start(self, n: int) -> Any:
        return [self.policy.start() for _ in range(n)]

    def act(self, obs: Any, u: FloatArray, memory: Any) -> tuple[Any, Any]:
        rows = [take(obs, k) for k in range(len(u))]
        # a slot is the episode's number modulo the slots: always the same place
        actions, memory = self.policy.answer(Ask(rows, u, np.arange(len(u)), memory))
        return np.stack([np.asarray(action) for action in actions]), memory


def as_vector_policy(policy: Any, space: Any, seen: Any) -> tuple[VectorPolicy, Policy]:
    """What a user may give as `policy=` of a vector environment, for one sub-environment's spaces
    of actions and observations; and the same as a policy of one environment."""
    one = as_policy(policy, space, seen)
    if isinstance(one, FunctionPolicy):
        return OfAll(one.function), one
    return OfRows(one), one
