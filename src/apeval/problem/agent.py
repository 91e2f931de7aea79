"""The agent policy π_A under evaluation. It is given, and never changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from apeval.problem.draws import AGENT, Draws
from apeval.problem.laws import pick
from apeval.problem.returned_arrays import as_array
from apeval.problem.types import Array, FloatArray


class Agent(Protocol):
    """a_A ~ π_A(· | x) for a batch of simulator states, shape (n, d_A)."""

    def act(self, x: Any, draws: Draws) -> Array:
        """The agent's action in each of n states.

        Args:
            x: The simulator's state, n episodes.
            draws: Random numbers, for a random policy.

        Returns:
            Actions a_A, (n, d_A).
        """
        ...


class Deterministic:
    """A policy that is a function of the state.

    Args:
        policy: ``policy(x)`` for n simulator states returns actions, shape (n, d_A) or (n,).
    """

    def __init__(self, policy: Callable[[Any], Array]) -> None:
        self.policy = policy

    def act(self, x: Any, draws: Draws) -> Array:
        a_A = as_array("agent", self.policy(x))
        return a_A[:, None] if a_A.ndim == 1 else a_A


class Stochastic:
    """A policy over K actions, coded 0 … K−1, with known probabilities π_A(a_A | x).

    Its actions are drawn from the episode's own random numbers, so that episodes repeat.

    Args:
        probabilities: ``probabilities(x)`` for n simulator states returns (n, K); every row sums
            to 1.
    """

    def __init__(self, probabilities: Callable[[Any], FloatArray]) -> None:
        self.probabilities = probabilities

    def act(self, x: Any, draws: Draws) -> Array:
        p = as_array("agent", self.probabilities(x))
        if p.shape[1] == 1:
            return np.zeros((draws.n, 1), np.int64)
        return pick(p, draws.stream(AGENT, 1))


class Absent:
    """No separate agent: its policy lives inside f_E. Actions have no columns."""

    def act(self, x: Any, draws: Draws) -> Array:
        return np.zeros((draws.n, 0))


def as_agent(policy: Agent | Callable[[Any], Array] | None) -> Agent:
    """What a user may give as `agent=`, as an `Agent`.

    Args:
        policy: A function of x, an object with `act`, or None.

    Returns:
        An object with `act`.
    """
    if policy is None:
        return Absent()
    if hasattr(policy, "act"):
        return policy
    return Deterministic(policy)
