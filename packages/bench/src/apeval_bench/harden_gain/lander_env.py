"""Gymnasium's LunarLander in gusts, each action held for four frames."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.utils import seeding

from apeval.problem.types import Array

ENV = "LunarLander-v3"
FRAMES = 4
"""Of an action (0.08 s): an episode takes a fourth of the decisions, and of the time."""
_TINY = 1e-6  # of a margin that has to have the sign of the outcome
_SCENE = 1
"""Seed of the terrain and of the push at the start, which stay: those of the paper's lander."""


class _Even:
    """The engines' random numbers where they have no dispersion."""

    def uniform(self, low: float, high: float) -> float:
        return 0.5 * (low + high)


class GustyLander(gymnasium.Wrapper[Any, Any, Any, Any]):
    """LunarLander-v3 with discrete actions. A sideways force ``unwrapped.gust`` (N) pushes it until
    a leg touches the ground, as Gymnasium's own wind does; after a reset the air is still. Terrain
    and start are always the same, and so are the engines unless they are `dispersed`. In `info`:
    ``failed``, 1 for a crash and 2 for a lander that left the field, and ``margin``, the smallest
    of the paper's margin in this step, below 0 where it fails."""

    def __init__(self, dispersed: bool = False) -> None:
        super().__init__(gymnasium.make(ENV, disable_env_checker=True))

        # numba takes seconds to load
        from apeval_paper.environments.lunarlander.kernel import margin
        from apeval_paper.environments.lunarlander.lander import start_of

        self._margin_of, self._ground = margin, start_of(_SCENE).ground
        self._dispersion: Any = seeding.np_random()[0] if dispersed else _Even()
        self.dispersed = dispersed

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """In still air."""
        if seed is not None and self.dispersed:
            self._dispersion, _ = seeding.np_random(seed)
        it: Any = self.unwrapped
        started = self.env.reset(seed=_SCENE)
        it.gust, it._np_random = 0.0, self._dispersion
        return started

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Four frames, ending at a landing or a failure; their rewards add up."""
        it: Any = self.unwrapped
        total, smallest = 0.0, 1.0
        for _ in range(FRAMES):
            if not (it.legs[0].ground_contact or it.legs[1].ground_contact):
                it.lander.ApplyForceToCenter((it.gust, 0.0), True)
            obs, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            smallest = min(smallest, self._margin())
            if terminated or truncated:
                break
        failed = 2 if abs(float(obs[0])) >= 1.0 else int(it.game_over)
        smallest = min(smallest, -_TINY) if failed else max(smallest, _TINY)
        return obs, total, terminated, truncated, {**info, "failed": failed, "margin": smallest}

    def _margin(self) -> float:
        it: Any = self.unwrapped
        body = it.lander
        x, y, descent = body.position.x, body.position.y, body.linearVelocity.y
        airborne = not (it.legs[0].ground_contact or it.legs[1].ground_contact)
        m: float = self._margin_of(x, y, descent, body.angle, airborne, 0, self._ground)
        return m


def blow(env: Any, e: Array) -> None:
    """Nature's gust."""
    env.unwrapped.gust = float(e[0])
