"""A compiled twin of the two cars: the same dynamics, crash rule and state as on highway-env.

Only the ego's poses come from highway-env (recorded once per geometry, see `ego_path`); the
challenger and the crash check are a few lines, each with the same operations in the same order.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from apeval.problem.types import Array, BoolArray, FloatArray, IntArray
from apeval_paper.environments.intersection.columns import (
    CRASHED,
    PENDING,
    POSE_COS,
    POSE_SIN,
    POSE_V,
    POSE_X,
    POSE_Y,
    SEPARATION,
    TOP_SPEED,
    K,
    V,
    Y,
)
from apeval_paper.environments.intersection.geometry import Geometry
from apeval_paper.environments.intersection.highway import ego_path
from apeval_paper.environments.intersection.kernel import kernel

HALF_LENGTH, HALF_WIDTH = 2.5, 1.0
DIAGONAL = math.sqrt(5.0**2 + 2.0**2)

#: Scalars of a geometry as the kernels take them.
LANE_X, COS, SIN, FRAMES, DT, ACC, DISTANCE, SPEED, REFERENCE = range(9)


@lru_cache(maxsize=256)
def scalars(g: Geometry) -> FloatArray:
    """The geometry's numbers in the kernels' order."""
    path = ego_path(g)
    tail = (g.dt, g.acc_limit, g.feature_distance, g.feature_speed, g.reference_speed)
    return np.array([path.lane_x, *path.direction, g.frames, *tail])


@kernel
def touch(dx, dy, ce, se, cc, sc, ve, vc, dt):  # type: ignore[no-untyped-def]
    """highway-env's `_is_colliding`: (overlap now, overlap when swept over dt)."""
    if math.sqrt(dx * dx + dy * dy) > DIAGONAL + ve * dt:
        return False, False
    c, s = abs(ce * cc + se * sc), abs(ce * sc - se * cc)
    wx, wy = ve * ce * dt - vc * cc * dt, ve * se * dt - vc * sc * dt
    now = will = True
    for i in range(4):
        if i == 0:
            nx, ny, r = ce, se, HALF_LENGTH + HALF_LENGTH * c + HALF_WIDTH * s
        elif i == 1:
            nx, ny, r = -se, ce, HALF_WIDTH + HALF_LENGTH * s + HALF_WIDTH * c
        elif i == 2:
            nx, ny, r = cc, sc, HALF_LENGTH + HALF_LENGTH * c + HALF_WIDTH * s
        else:
            nx, ny, r = -sc, cc, HALF_WIDTH + HALF_LENGTH * s + HALF_WIDTH * c
        p, w = dx * nx + dy * ny, wx * nx + wy * ny
        now = now and abs(p) <= r
        if p - r > max(w, 0.0) or p + r < min(w, 0.0):
            return now, False
    return now, will


@kernel
def _gap(dx, dy, ce, se, cc, sc):  # type: ignore[no-untyped-def]
    """Signed separation, as `rectangle_gap` of the highway backend."""
    c, s = abs(ce * cc + se * sc), abs(ce * sc - se * cc)
    long = HALF_LENGTH + HALF_LENGTH * c + HALF_WIDTH * s
    wide = HALF_WIDTH + HALF_LENGTH * s + HALF_WIDTH * c
    a = max(abs(dx * ce + dy * se) - long, abs(dy * ce - dx * se) - wide)
    b = max(abs(dx * cc + dy * sc) - long, abs(dy * cc - dx * sc) - wide)
    return max(a, b)


@kernel
def advance(k, y, v, pending, smallest, a_E, poses, q, measure):  # type: ignore[no-untyped-def]
    """One decision of one episode, ending at a crash: (k, y, v, pending, crashed, smallest)."""
    lane_x, cc, sc, dt, limit = q[LANE_X], q[COS], q[SIN], q[DT], q[ACC]
    frames = int(q[FRAMES])
    for _ in range(frames):
        ce, se = poses[k, POSE_COS], poses[k, POSE_SIN]
        dx, dy = lane_x - poses[k, POSE_X], y - poses[k, POSE_Y]
        acc = a_E[0] * min(max((ce * dx + se * dy) / q[DISTANCE], -1.0), 1.0)
        acc += a_E[1] * min(max((ce * dy - se * dx) / q[DISTANCE], -1.0), 1.0)
        if a_E.shape[0] == 3:
            acc += a_E[2] * min(max((q[REFERENCE] - v) / q[SPEED], -1.0), 1.0)
        acc = max(min(max(acc, -limit), limit), -frames * v)
        if v > TOP_SPEED:
            acc = min(acc, TOP_SPEED - v)
        y += v * sc * dt
        v += acc * dt
        k += 1
        if pending:
            return k, y, v, False, True, smallest
        ce, se = poses[k, POSE_COS], poses[k, POSE_SIN]
        dx, dy = lane_x - poses[k, POSE_X], y - poses[k, POSE_Y]
        if measure:
            far = smallest + DIAGONAL
            if dx * dx + dy * dy < 2.0 * far * far:  # else the gap cannot be the smallest
                smallest = min(smallest, _gap(dx, dy, ce, se, cc, sc))
        now, pending = touch(dx, dy, ce, se, cc, sc, poses[k, POSE_V], v, dt)
        if now:
            return k, y, v, False, True, smallest
    return k, y, v, pending, False, smallest


@kernel
def _step(x, a_E, poses, q):  # type: ignore[no-untyped-def]
    out = x.copy()
    for i in range(x.shape[0]):
        k, y, v, pending, crashed, smallest = advance(
            int(x[i, K]), x[i, Y], x[i, V], x[i, PENDING] > 0.5, x[i, SEPARATION],
            a_E[i], poses, q, True,
        )  # fmt: skip
        out[i, K], out[i, Y], out[i, V] = k, y, v
        out[i, PENDING], out[i, CRASHED], out[i, SEPARATION] = pending, crashed, smallest
    return out


@kernel
def _episodes(a_E, y0, v0, poses, q):  # type: ignore[no-untyped-def]
    n, T = a_E.shape[0], a_E.shape[1]
    failed = np.zeros(n, np.bool_)
    length = np.full(n, T, np.int64)
    for i in range(n):
        k, y, v, pending = 0, y0, v0, False
        for t in range(T):
            k, y, v, pending, crashed, _ = advance(
                k, y, v, pending, 0.0, a_E[i, t], poses, q, False
            )
            if crashed:
                failed[i] = True
                length[i] = t + 1
                break
    return failed, length


class TwinStep:
    """f_E on the twin for a batch of states."""

    def __init__(self, g: Geometry) -> None:
        self.poses, self.q = ego_path(g).poses, scalars(g)

    def __call__(self, x: Array, a_E: Array) -> FloatArray:
        out: FloatArray = _step(
            np.ascontiguousarray(x), np.ascontiguousarray(a_E, np.float64), self.poses, self.q
        )
        return out


def episodes(g: Geometry, a_E: FloatArray) -> tuple[BoolArray, IntArray]:
    """Outcome and length (in decisions) of whole episodes with given a_E, shape (n, T, d_E)."""
    path = ego_path(g)
    failed, length = _episodes(
        np.ascontiguousarray(a_E), path.start_y, float(g.challenger_speed), path.poses, scalars(g)
    )
    return failed, length
