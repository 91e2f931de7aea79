"""The columns of the state and of the ego's pose table, by name."""

from __future__ import annotations

K, Y, V, PENDING, CRASHED, SEPARATION = range(6)
"""Columns: sub-steps done, the challenger's y and speed, a pending impact, a crash, and the
smallest separation of the two bodies so far."""

POSE_X, POSE_Y, POSE_COS, POSE_SIN, POSE_V = range(5)
"""Columns of the ego's pose table, one row per sub-step."""

TOP_SPEED = 40.0
"""Vehicle.MAX_SPEED of highway-env."""
