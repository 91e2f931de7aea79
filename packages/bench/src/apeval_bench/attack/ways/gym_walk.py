"""The walk behind the doors of Gymnasium: as one environment, and as many in one piece."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv

import apeval

from .walk import LOW

TOP = 2.0
SLOTS = 32
DROPPED = 0.1
"""Of actions: the last one is applied again, so that it matters what was kept of it."""


class WalkEnv(gymnasium.Env[Any, Any]):
    """One walk; its parts can be replaced."""

    action_space = Box(-20.0, 20.0, (1,), np.float64)
    observation_space = Box(-20.0, 20.0, (1,), np.float64)

    def __init__(self) -> None:
        self.x = np.zeros(1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Start at random."""
        super().reset(seed=seed)
        self.x = self.np_random.normal(0.0, 0.5, 1)
        return self.seen(), self.told()

    def step(self, action: Any) -> Any:
        """One decision."""
        self.x = self.moved(action) + 0.1 * self.np_random.normal(size=1)
        return self.seen(), 1.0, bool(self.x[0] < LOW), False, self.told()

    def moved(self, action: Any) -> Any:
        """Without chance."""
        return 0.9 * self.x + action

    def seen(self) -> Any:
        """The observation."""
        return self.x.copy()

    def told(self) -> dict[str, Any]:
        """The info."""
        return {"height": self.x.copy()}


class WalkVector(VectorEnv[Any, Any, Any]):
    """Many walks in one piece, a generator each."""

    metadata = {"autoreset_mode": AutoresetMode.DISABLED}  # noqa: RUF012
    single_action_space = Box(-20.0, 20.0, (1,), np.float64)
    single_observation_space = Box(-20.0, 20.0, (1,), np.float64)

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.x = np.zeros((num_envs, 1))
        self.rngs: list[np.random.Generator] = []

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        """Start each at random, from its own seed."""
        self.rngs = [np.random.default_rng(it) for it in seed]
        self.x = 0.5 * self.chance()
        return self.seen(), self.told()

    def step(self, actions: Any) -> Any:
        """One decision of each."""
        self.x = self.moved(actions) + 0.1 * self.chance()
        never = np.zeros(self.num_envs, bool)
        return self.seen(), np.ones(self.num_envs), self.ended(), never, self.told()

    def chance(self) -> Any:
        """A number of each one's own."""
        return np.array([[rng.normal()] for rng in self.rngs])

    def moved(self, actions: Any) -> Any:
        """Without chance."""
        return 0.9 * self.x + actions

    def ended(self) -> Any:
        """Which of them are over."""
        return self.x[:, 0] < LOW

    def seen(self) -> Any:
        """The observations."""
        return self.x.copy()

    def told(self) -> dict[str, Any]:
        """The info."""
        return {"height": self.x.copy(), "_height": np.ones(self.num_envs, bool)}


def policy(obs: Any) -> Any:
    """The policy, of one observation or of many."""
    return -0.2 * obs


def fails(obs: Any) -> Any:
    """The event in one environment."""
    return bool(obs[0] > TOP)


def margin(obs: Any) -> Any:
    """Distance to failure in one environment."""
    return TOP - obs[0]


def view(obs: Any, info: Any) -> Any:
    """What a method sees."""
    return 1.0 * info["height"]


def all_fail(obs: Any) -> Any:
    """The event in all environments."""
    return obs[:, 0] > TOP


def margins(obs: Any) -> Any:
    """Distance to failure in all environments."""
    return TOP - obs[:, 0]


def noise(**more: Any) -> list[Any]:
    """Disturbances of what is done and of what is seen."""
    return [apeval.ActionNoise(std=0.5), apeval.ObservationNoise(std=0.05, **more)]


def one_env(**parts: Any) -> apeval.Problem:
    """The walk by `from_env`, with some of its parts replaced."""
    given: dict[str, Any] = {
        "env": WalkEnv,
        "policy": policy,
        "disturb": noise(),
        "fails": fails,
        "margin": margin,
        "views": {"state": view},
        "horizon": 6,
    }
    return apeval.from_env(**{**given, **parts})


def lossy_env(**parts: Any) -> apeval.Problem:
    """The same where actions are lost now and then."""
    lost = [apeval.DropAction(probability=DROPPED), apeval.ActionNoise(std=0.5)]
    return one_env(**{"disturb": lost, **parts})


def vector_env(**parts: Any) -> apeval.Problem:
    """The walk by `from_vector_env`, with some of its parts replaced."""
    given: dict[str, Any] = {
        "env": WalkVector,
        "policy": policy,
        "disturb": noise(),
        "fails": all_fail,
        "margin": margins,
        "views": {"state": view},
        "horizon": 6,
        "num_envs": SLOTS,
    }
    return apeval.from_vector_env(**{**given, **parts})


def lossy_vector(**parts: Any) -> apeval.Problem:
    """The same where actions are lost now and then."""
    lost = [apeval.DropAction(probability=DROPPED), apeval.ActionNoise(std=0.5)]
    return vector_env(**{"disturb": lost, **parts})


def apart_vector(**parts: Any) -> apeval.Problem:
    """The same with every walk in a process of its own."""
    kind = parts.pop("one", WalkEnv)
    return vector_env(
        **{"env": lambda n: AsyncVectorEnv([kind] * n, context="fork"), "num_envs": 8, **parts}
    )


def slow_vector(**parts: Any) -> apeval.Problem:
    """The same where a decision of nature lasts for two steps."""
    return vector_env(**{"disturb": apeval.ActionNoise(std=0.4, hold=2), **parts})
