"""A stretch of Int-v1's scene with an ego that accelerates, compiled."""

from __future__ import annotations

from apeval_paper.environments.intersection.columns import (
    POSE_COS,
    POSE_SIN,
    POSE_X,
    POSE_Y,
    TOP_SPEED,
)
from apeval_paper.environments.intersection.kernel import kernel
from apeval_paper.environments.intersection.twin import (
    ACC,
    COS,
    DIAGONAL,
    DISTANCE,
    DT,
    FRAMES,
    LANE_X,
    SIN,
    _gap,
    touch,
)


@kernel
def pose(poses, place):  # type: ignore[no-untyped-def]
    """x, y, cos and sin of the heading where the ego is, between two recorded poses."""
    last = poses.shape[0] - 2
    k = min(int(place), last)
    f = min(place - k, 1.0)
    if f == 0.0:
        return poses[k, POSE_X], poses[k, POSE_Y], poses[k, POSE_COS], poses[k, POSE_SIN]
    x = (1.0 - f) * poses[k, POSE_X] + f * poses[k + 1, POSE_X]
    y = (1.0 - f) * poses[k, POSE_Y] + f * poses[k + 1, POSE_Y]
    c = (1.0 - f) * poses[k, POSE_COS] + f * poses[k + 1, POSE_COS]
    s = (1.0 - f) * poses[k, POSE_SIN] + f * poses[k + 1, POSE_SIN]
    size = (c * c + s * s) ** 0.5
    return x, y, c / size, s / size


@kernel
def advance(  # type: ignore[no-untyped-def]
    place, speed, y, v, pending, smallest, a_E, a_A, frames, poses, q, usual
):
    """Some sub-steps, ending at a crash: (place, speed, y, v, pending, crashed, smallest)."""
    lane_x, cc, sc, dt, limit = q[LANE_X], q[COS], q[SIN], q[DT], q[ACC]
    for _ in range(frames):
        ex, ey, ce, se = pose(poses, place)
        dx, dy = lane_x - ex, y - ey
        acc = a_E[0] * min(max((ce * dx + se * dy) / q[DISTANCE], -1.0), 1.0)
        acc += a_E[1] * min(max((ce * dy - se * dx) / q[DISTANCE], -1.0), 1.0)
        acc = max(min(max(acc, -limit), limit), -q[FRAMES] * v)
        if v > TOP_SPEED:
            acc = min(acc, TOP_SPEED - v)
        y += v * sc * dt
        v += acc * dt
        place += speed / usual
        speed = min(max(speed + a_A * dt, 0.0), TOP_SPEED)
        if pending:
            return place, speed, y, v, False, True, smallest
        ex, ey, ce, se = pose(poses, place)
        dx, dy = lane_x - ex, y - ey
        far = smallest + DIAGONAL
        if dx * dx + dy * dy < 2.0 * far * far:  # else the gap cannot be the smallest
            smallest = min(smallest, _gap(dx, dy, ce, se, cc, sc))
        now, pending = touch(dx, dy, ce, se, cc, sc, speed, v, dt)
        if now:
            return place, speed, y, v, False, True, smallest
    return place, speed, y, v, pending, False, smallest
