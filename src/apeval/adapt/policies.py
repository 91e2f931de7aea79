"""Policies that an environment is run with: of one observation, or of a batch.

A random policy gets its random numbers from the episode's own stream, so that an episode can be
repeated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.adapt.batches import SIZE, calls, kind_of, mixed, stacked
from apeval.adapt.training import Training
from apeval.errors import ProblemError
from apeval.problem.argument_copies import own
from apeval.problem.types import Array, FloatArray, IntArray


@dataclass(frozen=True)
class Ask:
    """The question for the next action in each of n episodes."""

    observations: Sequence[Any]
    u: FloatArray
    """Uniforms in (0, 1), (n, chance)."""
    ids: IntArray
    """The episodes' numbers, (n,)."""
    memories: Sequence[Any]
    """What the policy remembers in each episode; None without memory."""


Answer = tuple[Sequence[Any] | Array, Sequence[Any]]
"""An action for each episode, and what the policy then remembers."""


class Policy(ABC):
    """π_A on observations."""

    chance: int = 0
    """Random numbers that an action takes."""
    training: Training | None = None
    """What a trained model tells of its training, to compare with the environment here."""
    has_memory: bool = False
    """Whether an action depends on more than the observation."""

    @abstractmethod
    def act(self, obs: Any, u: FloatArray) -> Any:
        """An action from `chance` uniforms in (0, 1)."""

    def start(self) -> Any:
        """What is remembered before the first action of an episode."""
        return None

    def answer(self, ask: Ask) -> Answer:
        """An action for each episode: here one after the other."""
        rows = zip(ask.observations, ask.u, strict=True)
        return [own(self.act(own(obs), u)) for obs, u in rows], ask.memories

    def fitted(self, space: Any, seen: Any) -> Policy:
        """The policy for these spaces of actions and observations; may refuse them."""
        if self.training is not None:
            self.training.fit(space, seen)
        return self


class FunctionPolicy(Policy):
    """A function of the observation."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def act(self, obs: Any, u: FloatArray) -> Any:
        return self.function(obs)


class InBatches(Policy):
    """A policy that answers for `SIZE` observations at once."""

    together: bool = True
    """Whether it is asked so; else for a batch of one."""

    @abstractmethod
    def rows(self, observations: Any, u: FloatArray, memories: Sequence[Any]) -> Answer:
        """Actions for a batch, first axis first, and what is then remembered."""

    def kind_of_memory(self, memory: Any) -> Any:
        """What memories must share to stand in one batch."""
        return memory is None

    def act(self, obs: Any, u: FloatArray) -> Any:
        u, first = np.reshape(u, (1, -1)), np.zeros(1, np.int64)
        return self.answer(Ask([obs], u, first, [self.start()]))[0][0]

    def answer(self, ask: Ask) -> Answer:
        if not self.together:
            return self._each(ask)
        kinds = [
            (kind_of(obs), self.kind_of_memory(memory))
            for obs, memory in zip(ask.observations, ask.memories, strict=True)
        ]
        actions: list[Any] = [None] * len(ask.ids)
        memories = list(ask.memories)
        for asked in calls(ask.ids, kinds):
            found, kept = self._call(ask, asked, ask.ids[asked] % SIZE, SIZE)
            if len(asked) == len(actions):  # as nearly always: one call for all
                return found, kept
            for k, row in enumerate(asked.tolist()):
                actions[row], memories[row] = found[k], kept[k]
        return actions, memories

    def _each(self, ask: Ask) -> Answer:
        here = np.zeros(1, np.int64)
        answers = [self._call(ask, np.array([row]), here, 1) for row in range(len(ask.ids))]
        return [found[0] for found, _ in answers], [kept[0] for _, kept in answers]

    def _call(self, ask: Ask, asked: IntArray, places: IntArray, size: int) -> tuple[Array, Any]:
        """One batch: the chosen rows at their places."""
        observations = stacked([ask.observations[row] for row in asked], places, size)
        memories = [ask.memories[asked[0]]] * size
        for row, place in zip(asked.tolist(), places.tolist(), strict=True):
            memories[place] = ask.memories[row]
        u = stacked(ask.u[asked], places, size) if self.chance else np.empty((size, 0))
        found, kept = self.rows(observations, u, memories)
        actions = np.asarray(found)
        if actions.shape[:1] != (size,):
            raise ProblemError(
                f"the policy answered a batch of {size} observations with shape {actions.shape}: "
                "return one action for each, first axis first"
            )
        return actions[places], [kept[place] for place in places.tolist()]


class BatchPolicy(InBatches):
    """A function of a batch of observations, such as a network in NumPy or JAX.

    It is called on 16 observations at once, also where fewer are needed: an episode's bits then
    do not depend on which others run beside it, and a compiled function is compiled once.

    Args:
        function: ``function(observations)`` with observations of shape (16, …), or a mapping or
            tuple of such arrays, gives 16 actions, first axis first. Rows must not mix.

    Examples:
        >>> push = BatchPolicy(lambda obs: (obs[:, 2] > 0.0).astype(int))
        >>> int(push.act(np.array([0.0, 0.0, 0.1, 0.0]), np.empty(0)))
        1
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def rows(self, observations: Any, u: FloatArray, memories: Sequence[Any]) -> Answer:
        return np.asarray(self.function(observations)), memories

    def fitted(self, space: Any, seen: Any) -> Policy:
        """Refuses a function that does not answer row by row.

        Raises:
            ProblemError: It cannot take a batch, or its rows mix.
        """
        refuse_mixed("BatchPolicy", self.function, seen)
        return super().fitted(space, seen)


def refuse_mixed(
    what: str,
    function: Callable[[Any], Any],
    seen: Any,
    leave_out: str = "BatchPolicy or batch=True",
) -> None:
    """A `ProblemError` for a user's function of a batch that does not answer row by row."""
    why = mixed(function, seen)
    if why is not None:
        raise ProblemError(
            f"{what}: {why}. The function gets {SIZE} observations and must answer for each by "
            f"itself; give a function of one observation without {leave_out}"
        )
