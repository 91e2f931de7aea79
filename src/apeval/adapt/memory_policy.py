"""Policies with memory, given as functions: what they remember comes in and goes out with each
action, and belongs to the episode."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from apeval.adapt.batches import SIZE, kind_of, stacked
from apeval.adapt.observation_batches import take
from apeval.adapt.policies import Answer, Ask, InBatches, Policy, refuse_mixed
from apeval.adapt.user_calls import told
from apeval.errors import ProblemError
from apeval.problem.argument_copies import own
from apeval.problem.types import Array, FloatArray


class MemoryPolicy(InBatches):
    """A policy with memory, such as a recurrent network or a controller with an integral.

    What it remembers, its state, is part of each episode: `reset` makes it when the episode starts,
    every action hands it on. So it is replayed, resumed and sent to workers with the episode. An
    object with these two methods may be given as it is, ``policy=controller``.

    Args:
        act: ``act(obs, state) -> (action, state)``: an action for one observation, and the state
            for the next one. Nothing may be kept anywhere else.
        reset: ``reset() -> state``: a new state for the start of an episode; not None.
        batch: Whether `act` takes 16 observations and 16 states at once and gives 16 actions and
            states, first axis first. A state is then an array, a number, or a mapping or tuple of
            these, for one episode in what `reset` returns.

    Examples:
        >>> def act(obs, total):
        ...     total = total + obs[2]
        ...     return int(obs[2] + 0.1 * total > 0.0), total
        >>> policy = MemoryPolicy(act, reset=lambda: 0.0)
        >>> policy.act(np.array([0.0, 0.0, 0.1, 0.0]), np.empty(0))
        1
    """

    has_memory = True

    def __init__(
        self, act: Callable[[Any, Any], Any], reset: Callable[[], Any], *, batch: bool = False
    ) -> None:
        self.function, self.reset_state, self.together = act, reset, batch

    def start(self) -> Any:
        """A new state, which no other episode has a hold on."""
        state = self.reset_state()
        if state is None:
            raise ProblemError(
                "the policy's reset() returned None, expected the state that an episode starts "
                "with: keep nothing in the policy itself, return it from reset() and hand it on, "
                "act(obs, state) -> (action, state)"
            )
        return copy.deepcopy(state)

    def kind_of_memory(self, memory: Any) -> Any:
        return kind_of(memory)

    def _each(self, ask: Ask) -> Answer:
        pairs = [
            _pair(self.function(own(obs), own(state)))
            for obs, state in zip(ask.observations, ask.memories, strict=True)
        ]
        return [action for action, _ in pairs], [state for _, state in pairs]

    def rows(self, observations: Any, u: FloatArray, memories: Sequence[Any]) -> Answer:
        states = stacked(memories, np.arange(len(memories)), len(memories))
        actions, states = _pair(self.function(observations, states))
        return np.asarray(actions), [take(states, row) for row in range(len(memories))]

    def fitted(self, space: Any, seen: Any) -> Policy:
        """Refuses a policy that has no state to start with, or whose rows mix.

        Raises:
            ProblemError: One of these.
        """
        told("policy", self.start)
        if self.together:
            refuse_mixed("MemoryPolicy", self._first, seen, "batch=True")
        return super().fitted(space, seen)

    def _first(self, observations: Any) -> Array:
        """The first actions and the states after them, a row for each."""
        states = stacked([self.start()], np.zeros(1, np.int64))
        return joined_rows(_pair(self.function(observations, states)))


def is_memory_policy(policy: Any) -> bool:
    """Whether an object has reset() and act(obs, state).

    >>> class Controller:
    ...     def reset(self): return 0.0
    ...     def act(self, obs, state): return 0, state
    >>> is_memory_policy(Controller())
    True
    """
    reset, act = getattr(policy, "reset", None), getattr(policy, "act", None)
    if isinstance(policy, type) or not callable(reset) or not callable(act):
        return False
    try:
        inspect.signature(act).bind(None, None)
        inspect.signature(reset).bind()
    except (TypeError, ValueError):
        return False
    wanted = [
        p for p in inspect.signature(act).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]  # fmt: skip
    return len(wanted) == 2


def joined_rows(values: Any, size: int = SIZE) -> Array:
    """Everything in nested tuples, mappings and arrays with `size` rows, as one array of rows."""
    if isinstance(values, dict):
        values = tuple(values.values())
    if isinstance(values, tuple | list):
        return np.concatenate([joined_rows(value, size) for value in values], axis=1)
    return np.asarray(values, np.float64).reshape(size, -1)


def _pair(answer: Any) -> tuple[Any, Any]:
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise ProblemError(
            f"the policy's act(obs, state) returned a {type(answer).__name__}, expected a pair: "
            "return action, state"
        )
    return answer
