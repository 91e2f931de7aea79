"""Pictures of an episode by highway-env's viewer: a still and an animated replay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from highway_env.vehicle.graphics import VehicleGraphics
from highway_env.vehicle.kinematics import Vehicle

from apeval.atomic_files import written_whole
from apeval.errors import ApevalError
from apeval.problem.types import Array
from apeval_paper.environments.intersection.geometry import Geometry
from apeval_paper.environments.intersection.gym_env import IntersectionAdversary

ROAD_GREY = 110
AFTER_CRASH = 10
"""Frames for which a replay shows the crashed cars."""


def frames(g: Geometry, a_E: Sequence[Sequence[float]] | Array) -> Iterator[Array]:
    """An RGB picture per sub-step of the episode with these disturbances (one per decision)."""
    env = IntersectionAdversary(geometry=g, render_mode="rgb_array")
    try:
        for _ in _drive(env, a_E):
            yield np.array(env.render())
    finally:
        env.close()


def _drive(env: IntersectionAdversary, a_E: Sequence[Sequence[float]] | Array) -> Iterator[int]:
    """Run sub-step by sub-step, with a stop before each and after the last."""
    env.reset()
    k = 0
    yield k
    for a in a_E:
        env.challenger.a_E = np.asarray(a, dtype=np.float64).tolist()
        for _ in range(env.geometry.frames):
            env.road.act()
            env.road.step(env.geometry.dt)
            k += 1
            yield k
            if env.vehicle.crashed:
                return


def picture(
    g: Geometry, a_E: Sequence[Sequence[float]] | Array | None = None, *, until: float | None = None
) -> Array:
    """A still: both cars at the end (or after `until` seconds), pale where they were at every
    full second before. Without disturbances: as the nominal's mean, a_E = 0, leads them."""
    actions = np.zeros((g.decisions, g.d_E)) if a_E is None else np.asarray(a_E)
    env = IntersectionAdversary(geometry=g, render_mode="rgb_array")
    past: list[_Ghost] = []
    try:
        for k in _drive(env, actions):
            if until is not None and k >= until * g.frames:
                break
            if k % g.frames == 0:
                past += [_ghost(v) for v in env.road.vehicles]
        env.render()
        viewer = env.viewer
        if viewer is None:
            raise ApevalError("highway-env opened no viewer")
        surface = viewer.sim_surface
        for ghost in past:
            VehicleGraphics.display(ghost, surface, offscreen=True)
        for v in env.road.vehicles:
            VehicleGraphics.display(v, surface, offscreen=True)
        return np.array(viewer.get_image())
    finally:
        env.close()


class _Ghost(Vehicle):  # type: ignore[misc]
    """A car drawn pale (the viewer gives plain `Vehicle`s wheels)."""


def _ghost(v: Vehicle) -> _Ghost:
    ghost = _Ghost(None, v.position.copy(), v.heading, v.speed)
    ghost.color = tuple((shade + 2 * ROAD_GREY) // 3 for shade in v.color)
    return ghost


def replay(g: Geometry, a_E: Sequence[Sequence[float]] | Array, file: str | Path) -> Path:
    """Write an animated GIF of an episode in real time and return its path."""
    from PIL import Image

    images = [Image.fromarray(frame) for frame in frames(g, a_E)]
    images += [images[-1]] * AFTER_CRASH
    file = Path(file)
    more, duration = images[1:], round(1000 * g.dt)
    with written_whole(file) as gif:
        images[0].save(gif, "GIF", save_all=True, append_images=more, duration=duration, loop=0)
    return file
