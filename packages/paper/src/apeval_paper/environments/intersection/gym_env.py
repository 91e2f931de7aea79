"""The intersection as a Gymnasium environment: the action is the adversary's a_E.

The agent drives inside. Without `stock`, a reset rebuilds only the two cars and no lane is
looked up; with it, every reset builds the road and both cars as highway-env does, and every
sub-step looks the lanes up: the reference for equality and speed.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from gymnasium import spaces
from highway_env.envs.common.graphics import EnvViewer
from highway_env.envs.intersection_env import IntersectionEnv

from apeval.problem.types import FloatArray
from apeval_paper.environments.intersection.columns import CRASHED, PENDING, SEPARATION, K, V, Y
from apeval_paper.environments.intersection.geometry import PRESETS, Geometry
from apeval_paper.environments.intersection.highway import (
    advance,
    ego_path,
    make_scene,
    rectangle_gap,
)
from apeval_paper.environments.intersection.state import make_views

SCREEN = 600


class IntersectionAdversary(IntersectionEnv):  # type: ignore[misc]
    """Int-v0 or Int-v1 with nature as the player. Reward: 1 for a crash, else 0."""

    viewer: EnvViewer | None

    def __init__(
        self,
        name: str = "int-v1",
        geometry: Geometry | None = None,
        view: str = "paper",
        stock: bool = False,
        render_mode: str | None = None,
    ) -> None:
        g = self.geometry = geometry or PRESETS[name]
        self.stock = stock
        path = ego_path(g)
        self._view = make_views(g)[view]
        span = max(abs(path.poses[0, 1]), abs(path.start_y)) + 6.0
        config = {
            "simulation_frequency": g.frames,
            "screen_width": SCREEN,
            "screen_height": SCREEN,
            "centering_position": [0.5, 0.5],
            "scaling": SCREEN / (2.0 * max(span, 35.0)),
        }
        super().__init__(config=config, render_mode=render_mode)

    def define_spaces(self) -> None:
        """a_E in its box, and the chosen view of the state."""
        g = self.geometry
        self.action_space = spaces.Box(-g.box, g.box, (g.d_E,), np.float64)
        width = self._view(np.zeros((1, 6))).shape[1]
        self.observation_space = spaces.Box(-1.0, 1.0, (width,), np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Both cars at their start. Nothing is random: `seed` has no effect."""
        super(IntersectionEnv.__base__, self).reset(seed=seed, options=options)
        self.time = self.steps = 0
        self.road, ego, self.challenger = make_scene(self.geometry, stock=self.stock)
        self.controlled_vehicles = [ego]
        self.separation = rectangle_gap(ego, self.challenger)
        return self._view(self.state)[0], self._state_info()

    def step(self, action: Any) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """One decision: a_E is held for a second, or until the crash."""
        self.challenger.a_E = np.asarray(action, dtype=np.float64).tolist()
        done, self.separation = advance(self.road, self.geometry.frames, self.separation)
        self.steps += done
        self.time += 1
        crashed = bool(self.vehicle.crashed)
        over = self.time >= self.geometry.decisions
        observation = self._view(self.state)[0]
        if self.render_mode == "human":
            self.render()
        return observation, float(crashed), crashed, over and not crashed, self._state_info()

    @property
    def state(self) -> FloatArray:
        """The state x of `apeval`'s problems, one row."""
        x = np.zeros((1, 6))
        x[0, K], x[0, Y], x[0, V] = self.steps, self.challenger.position[1], self.challenger.speed
        x[0, CRASHED] = self.vehicle.crashed
        x[0, PENDING] = self.vehicle.impact is not None and not self.vehicle.crashed
        x[0, SEPARATION] = self.separation
        return x

    def _state_info(self) -> dict[str, Any]:
        return {"crashed": bool(self.vehicle.crashed), "separation": self.separation}

    def render(self) -> Any:
        """highway-env's viewer, looking at the middle of the intersection."""
        if self.viewer is None and self.render_mode is not None:
            self.viewer = _open_viewer(self)
        return super().render()


def _open_viewer(env: IntersectionAdversary) -> EnvViewer:
    """A viewer; for pictures in memory, on SDL's dummy driver, which needs no screen."""
    quiet = env.render_mode == "rgb_array" and "SDL_VIDEODRIVER" not in os.environ
    if quiet:
        os.environ["SDL_VIDEODRIVER"] = "dummy"
    try:
        viewer = EnvViewer(env)
    finally:
        if quiet:
            del os.environ["SDL_VIDEODRIVER"]
    viewer.enabled = True  # highway-env switches drawing off under the dummy driver
    viewer.window_position = lambda: np.zeros(2)
    return viewer
