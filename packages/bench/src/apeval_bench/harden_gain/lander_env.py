"""Gymnasium's LunarLander in gusts, each action held for four frames."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding

from apeval.problem.types import Array

ENV = "LunarLander-v3"
FRAMES = 4
"""Of an action (0.08 s): an episode takes a fourth of the decisions, and of the time."""
_SCENE = 1
"""Seed of the terrain and of the push at the start, which stay: those of the paper's lander."""


class GustyLander(gymnasium.Wrapper[Any, Any, Any, Any]):
    """LunarLander-v3 with discrete actions. A sideways force ``unwrapped.gust`` (N) pushes it until
    a leg touches the ground, as Gymnasium's own wind does; after a reset the air is still. Terrain
    and start are always the same; an episode's seed is that of the engines' dispersion."""

    def __init__(self) -> None:
        super().__init__(gymnasium.make(ENV, disable_env_checker=True))

        self._dispersion = np.random.default_rng()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """In still air."""
        if seed is not None:
            self._dispersion, _ = seeding.np_random(seed)
        it: Any = self.unwrapped
        started = self.env.reset(seed=_SCENE)
        it.gust, it.np_random = 0.0, self._dispersion
        return started

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Four frames, ending at a landing or a failure; their rewards add up."""
        it: Any = self.unwrapped
        total = 0.0
        for _ in range(FRAMES):
            if not (it.legs[0].ground_contact or it.legs[1].ground_contact):
                it.lander.ApplyForceToCenter((it.gust, 0.0), True)
            obs, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return obs, total, terminated, truncated, info


def blow(env: Any, e: Array) -> None:
    """Nature's gust."""
    env.unwrapped.gust = float(e[0])
