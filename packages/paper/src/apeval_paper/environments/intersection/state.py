"""The simulator's state of both backends, one row of numbers per episode, and its views.

The ego's motion does not depend on the challenger before a crash, so the number of sub-steps
done stands for it; the challenger keeps its lane, so (y, v) stand for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from apeval.problem.types import Array, BoolArray, FloatArray
from apeval_paper.environments.intersection.columns import (
    CRASHED,
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


def failed(x: Array) -> BoolArray:
    """The failure event: highway-env's own crash flag."""
    crashed: BoolArray = x[:, CRASHED] > 0.5
    return crashed


def margin(x: Array) -> FloatArray:
    """The smallest signed separation (m) so far; at most 0 after a crash, which highway-env also
    declares for bodies that are about to overlap."""
    m: FloatArray = np.where(failed(x), np.minimum(x[:, SEPARATION], 0.0), x[:, SEPARATION])
    return m


def relative(g: Geometry, x: Array) -> tuple[FloatArray, ...]:
    """Challenger minus ego in the ego's body frame: x_rel, y_rel, ẋ_rel, ẏ_rel, and the pose rows.

    Velocities are differences of world velocities, turned into the body frame.
    """
    from apeval_paper.environments.intersection.highway import ego_path

    path = ego_path(g)
    pose = path.poses[x[:, K].astype(np.int64)]
    c, s = pose[:, POSE_COS], pose[:, POSE_SIN]
    dx, dy = path.lane_x - pose[:, POSE_X], x[:, Y] - pose[:, POSE_Y]
    vx, vy = -pose[:, POSE_V] * c, x[:, V] - pose[:, POSE_V] * s
    return c * dx + s * dy, c * dy - s * dx, c * vx + s * vy, c * vy - s * vx, pose


def time(g: Geometry, x: Array) -> FloatArray:
    """Time as a fraction of the horizon."""
    t: FloatArray = x[:, K] / (g.frames * g.decisions)
    return t


def markov(g: Geometry, x: Array) -> FloatArray:
    """(x_rel, y_rel, v_E, t): complete, as the ego is a function of time."""
    x_rel, y_rel, _, _, _ = relative(g, x)
    return _clip(x_rel / g.range_x, y_rel / g.range_y, 2.0 * x[:, V] / TOP_SPEED - 1.0, time(g, x))


def paper(g: Geometry, x: Array) -> FloatArray:
    """Int-v0: the appendix's 12 numbers. Int-v1: (x_rel, y_rel), which hides v_E."""
    x_rel, y_rel, vx_rel, vy_rel, pose = relative(g, x)
    position = x_rel / g.range_x, y_rel / g.range_y
    if not g.speed_feature:
        return _clip(*position)
    c, s, v = pose[:, POSE_COS], pose[:, POSE_SIN], pose[:, POSE_V]
    return _clip(
        pose[:, POSE_X] / g.range_x,
        pose[:, POSE_Y] / g.range_x,
        v * c / g.range_v,
        v * s / g.range_v,
        c,
        s,
        *position,
        vx_rel / g.range_v,
        vy_rel / g.range_v,
        s,  # the challenger heads along +y: cos(π/2 − h) and sin(π/2 − h)
        c,
    )


def paper_time(g: Geometry, x: Array) -> FloatArray:
    """The paper's state with t appended."""
    return np.column_stack([paper(g, x), time(g, x)])


def make_views(g: Geometry) -> Mapping[str, Callable[[Array], FloatArray]]:
    """The views of x, each in [−1, 1], the default first."""
    return {
        "markov": partial(markov, g),
        "paper": partial(paper, g),
        "paper+time": partial(paper_time, g),
    }


def _clip(*columns: FloatArray) -> FloatArray:
    s: FloatArray = np.clip(np.column_stack(columns), -1.0, 1.0)
    return s
