"""Simulators that are functions, state in and state out, as a vector environment.

All of an episode's chance is addressed by its own seed and the number of the step, so that an
episode is the same alone, in company and when it is replayed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from apeval.errors import ProblemError, number_of
from apeval.problem.draws import Draws, make_key
from apeval.problem.types import Array

_KEY = make_key(0, 0x66756E63)  # apart from those of runs
START = -1
"""The number of the step that a reset is."""

Stepped = tuple[Any, Any, Any, Any, Any, dict[str, Any]]
"""Observations, state, rewards, terminated, truncated (None: never) and info, a row per episode."""


class Functions(ABC):
    """Pure functions that start and move n episodes."""

    params: Any = None
    """What stays the same in all episodes, unless a disturbance changes it."""

    @abstractmethod
    def reset(self, seeds: list[int]) -> tuple[Any, Any]:
        """Observations and states of new episodes."""

    @abstractmethod
    def step(self, env: FunctionalEnv, actions: Any) -> Stepped:
        """What a step makes of the states in `env`."""

    def spread(self, n: int) -> Any:
        """The parameters with a row for each of n episodes."""
        raise ProblemError("the functions have no params: disturb a part of the state")

    def observe(self, env: FunctionalEnv) -> Any:
        """The observations of the states in `env`.

        Raises:
            ProblemError: Nothing says how states are observed.
        """
        if env.state_is_seen:
            return env.state
        raise ProblemError(
            "the functions do not say how a changed state is observed: give "
            "observe=lambda env: …, the first observations, a row for each, from env.state"
        )


class FunctionalEnv:
    """Episodes side by side, in the form of a vector environment.

    `state` is what the functions return, with a row per episode in every array; `params` is
    theirs, or has a row per episode where `params_by_row` says so.

    Args:
        functions: What starts and moves episodes.
        num_envs: Episodes.
        spaces: The spaces of one action and of one observation.
        limit: Steps after which an episode is truncated, for whoever asks.
    """

    metadata = {"autoreset_mode": "Disabled"}  # noqa: RUF012

    def __init__(
        self, functions: Functions, num_envs: int, spaces: tuple[Any, Any], limit: int | None = None
    ) -> None:
        self.functions, self.num_envs = functions, num_envs
        self.single_action_space, self.single_observation_space = spaces
        self.spec = SimpleNamespace(max_episode_steps=limit, kwargs={})
        self.state: Any = None
        self.params, self.params_by_row = functions.params, False
        self.state_is_seen = False
        self.seeds: list[int] = []
        self.taken = 0

    def reset(self, *, seed: list[int]) -> tuple[Any, dict[str, Any]]:
        """New episodes, each from its own seed."""
        self.seeds, self.taken = list(seed), 0
        self.params, self.params_by_row = self.functions.params, False
        obs, self.state = self.functions.reset(self.seeds)
        array = hasattr(self.state, "dtype") and hasattr(obs, "dtype")
        self.state_is_seen = array and np.array_equal(np.asarray(obs), np.asarray(self.state))
        return obs, {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """A step of every episode."""
        obs, self.state, reward, terminated, truncated, info = self.functions.step(self, actions)
        self.taken += 1
        truncated = np.zeros(self.num_envs, bool) if truncated is None else truncated
        return obs, reward, terminated, truncated, info

    def spread_params(self) -> None:
        """Give every episode parameters of its own, which disturbances may change."""
        if not self.params_by_row:
            self.params, self.params_by_row = self.functions.spread(self.num_envs), True

    def _get_obs(self) -> Any:
        """The observations of a state that was changed, where the functions tell."""
        return self.functions.observe(self)


@dataclass(frozen=True)
class FunctionalMaker:
    """Makes them; all share the functions, which are compiled once."""

    functions: Functions
    spaces: tuple[Any, Any]
    limit: int | None = None

    def __call__(self, n: int) -> FunctionalEnv:
        """One of n episodes."""
        return FunctionalEnv(self.functions, n, self.spaces, self.limit)


class NumpyFunctions(Functions):
    """Functions of all episodes at once, with `Draws` for their chance.

    Args:
        reset: ``reset(draws)`` gives observations and states.
        step: ``step(draws, state, actions)`` gives observations, states, rewards, done and info.
        observe: ``observe(state)`` gives the observations of states; None: not known.
    """

    def __init__(
        self,
        reset: Callable[[Draws], Any],
        step: Callable[[Draws, Any, Array], Any],
        observe: Callable[[Any], Any] | None = None,
    ) -> None:
        self.start, self.move, self.look = reset, step, observe

    def reset(self, seeds: list[int]) -> tuple[Any, Any]:
        return as_started(self.start(_draws(seeds, START)))

    def step(self, env: FunctionalEnv, actions: Any) -> Stepped:
        return as_stepped(self.move(_draws(env.seeds, env.taken), env.state, actions))

    def observe(self, env: FunctionalEnv) -> Any:
        return super().observe(env) if self.look is None else self.look(env.state)


def _draws(seeds: list[int], t: int) -> Draws:
    return Draws(_KEY, np.array(seeds, np.int64), t)


def as_started(answer: Any) -> tuple[Any, Any]:
    """What a reset returned, checked."""
    if isinstance(answer, tuple) and len(answer) == 2:
        return answer
    raise ProblemError(
        f"reset returned {_size(answer)}, expected two: observations and state (the same array "
        "twice, where the state is what is observed)"
    )


def as_stepped(answer: Any) -> Stepped:
    """What a step returned, checked: with one word for the end (done) or with two."""
    if isinstance(answer, tuple) and len(answer) == 6:
        return answer
    if isinstance(answer, tuple) and len(answer) == 5:
        obs, state, reward, done, info = answer
        return obs, state, reward, done, None, info
    raise ProblemError(
        f"step returned {_size(answer)}, expected five: observations, state, reward, done, info "
        "(or six, with terminated and truncated in place of done)"
    )


def _size(answer: Any) -> str:
    return (
        number_of(len(answer), "value")
        if isinstance(answer, tuple)
        else f"a {type(answer).__name__}"
    )
