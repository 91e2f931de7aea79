"""What a frame computes besides Box2D, compiled: the heuristic's thrust and the margin.

Gymnasium hands the heuristic an observation in single precision, so its arithmetic is done in
single precision; `thrust` repeats it rounding by rounding. The result equals gymnasium's bit by
bit, and no engine fires a frame earlier or later.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from apeval.problem.types import FloatArray
from apeval_paper.environments.lunarlander.box2d import (
    FPS,
    LANDER_POLY,
    LEG_DOWN,
    MAIN_ENGINE_POWER,
    MAIN_ENGINE_Y_LOCATION,
    SCALE,
    SIDE_ENGINE_AWAY,
    SIDE_ENGINE_HEIGHT,
    SIDE_ENGINE_POWER,
    VIEWPORT_H,
    VIEWPORT_W,
)

HALF_WIDTH = VIEWPORT_W / SCALE / 2
HALF_HEIGHT = VIEWPORT_H / SCALE / 2
PAD_Y = VIEWPORT_H / SCALE / 4
REST_Y = PAD_Y + LEG_DOWN / SCALE  # the y at which the observation's vertical coordinate is 0
CHUNKS = 11  # corners of the terrain
CHUNK_WIDTH = VIEWPORT_W / SCALE / (CHUNKS - 1)
MAX_FRAMES = 1000  # 20 s
REST_CLEARANCE = 0.23  # m: of the hull when the lander stands on its legs (measured)
NEAR, FASTEST = 2.0, 8.0  # m, m/s: where descent is judged, and what no landing survives
_HULL = np.array(LANDER_POLY, dtype=np.float64) / SCALE
_f = np.float32
Thrust = tuple[bool, float, float, float, float, bool, float, float, float, float]


@numba.njit(cache=True)
def thrust(
    px: float, py: float, vx: float, vy: float, angle: float, spin: float, touch: bool,
    w_main: float, w_side: float, u0: float, u1: float,
) -> Thrust:  # fmt: skip
    """The impulses of a frame: (main engine fires, impulse x, y, point x, y), the same for side.

    Body position, velocity, angle and spin are Box2D's; u0 and u1 are the frame's two uniforms
    on (−1, 1) for the engines' dispersion; w is nature's disturbance of the command.
    """
    y = _f((py - REST_Y) / HALF_HEIGHT)
    v_y = _f(vy * HALF_HEIGHT / FPS)
    if touch:
        main, side = -v_y * _f(0.5) * _f(20.0) - _f(1.0), _f(0.0)
    else:
        x = _f((px - HALF_WIDTH) / HALF_WIDTH)
        v_x = _f(vx * HALF_WIDTH / FPS)
        target = min(max(x * _f(0.5) + v_x, _f(-0.4)), _f(0.4))
        turn = (target - _f(angle)) * _f(0.5) - _f(20.0 * spin / FPS)
        hover = (_f(0.55) * abs(x) - y) * _f(0.5) - v_y * _f(0.5)
        main, side = hover * _f(20.0) - _f(1.0), -turn * _f(20.0)
    a_main = min(max(min(max(float(main), -1.0), 1.0) + w_main, -1.0), 1.0)
    a_side = min(max(min(max(float(side), -1.0), 1.0) + w_side, -1.0), 1.0)

    d0, d1 = u0 / SCALE, u1 / SCALE
    tip_x, tip_y = math.sin(angle), math.cos(angle)
    m_x = m_y = m_px = m_py = s_x = s_y = s_px = s_py = 0.0
    if a_main > 0.0:
        power = (a_main + 1.0) * 0.5
        along = MAIN_ENGINE_Y_LOCATION / SCALE + 2 * d0
        ox, oy = tip_x * along + -tip_y * d1, -tip_y * along - tip_x * d1
        m_x, m_y = -ox * MAIN_ENGINE_POWER * power, -oy * MAIN_ENGINE_POWER * power
        m_px, m_py = px + ox, py + oy
    if abs(a_side) > 0.5:
        power = abs(a_side)
        across = 3 * d1 + (1.0 if a_side > 0.0 else -1.0) * SIDE_ENGINE_AWAY / SCALE
        ox, oy = tip_x * d0 + -tip_y * across, -tip_y * d0 - tip_x * across
        s_x, s_y = -ox * SIDE_ENGINE_POWER * power, -oy * SIDE_ENGINE_POWER * power
        s_px = px + ox - tip_x * 17 / SCALE  # 17, not SIDE_ENGINE_HEIGHT: as in gymnasium
        s_py = py + oy + tip_y * SIDE_ENGINE_HEIGHT / SCALE
    return a_main > 0.0, m_x, m_y, m_px, m_py, abs(a_side) > 0.5, s_x, s_y, s_px, s_py


@numba.njit(cache=True)
def clearance(px: float, py: float, angle: float, ground: FloatArray) -> float:
    """Height of the hull's lowest corner over the ground below it, in metres."""
    sin, cos = math.sin(angle), math.cos(angle)
    lowest = np.inf
    for k in range(_HULL.shape[0]):
        x = px + cos * _HULL[k, 0] - sin * _HULL[k, 1]
        y = py + sin * _HULL[k, 0] + cos * _HULL[k, 1]
        i = min(max(int(x / CHUNK_WIDTH), 0), CHUNKS - 2)
        t = min(max(x / CHUNK_WIDTH - i, 0.0), 1.0)
        lowest = min(lowest, y - (ground[i] * (1.0 - t) + ground[i + 1] * t))
    return lowest


@numba.njit(cache=True)
def margin(
    px: float, py: float, vy: float, angle: float, airborne: bool, frames: int, ground: FloatArray
) -> float:
    """How far a frame is from each failure, as fractions of which the smallest counts:

    - the hull's clearance, relative to that of a lander that stands on its legs;
    - near the ground and before a leg touches it, the descent's distance from 8 m/s: what
      precedes nearly every crash is a descent that the main engine no longer stops;
    - 1 − |x|, and the share of the time that is left.
    """
    height = clearance(px, py, angle, ground)
    m = min(height / REST_CLEARANCE, 1.0 - abs(px - HALF_WIDTH) / HALF_WIDTH)
    if airborne and height < NEAR:
        m = min(m, 1.0 + vy / FASTEST)
    return min(m, 1.0 - frames / MAX_FRAMES)
