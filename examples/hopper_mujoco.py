"""A MuJoCo walker that falls: Hopper-v5 stands on its foot while its motors are noisy.

    apeval run examples/hopper_mujoco.py --episodes 1500

Needs the extra `mujoco`: pip install 'apeval[mujoco]'
"""

from __future__ import annotations

from typing import Any

import numpy as np

import apeval

#: Gains found by a random search: hip and knee, ankle, trunk.
JOINT, JOINT_RATE, ANKLE, ANKLE_RATE = 0.893, 0.3, 2.649, 0.047
KNEE_ANGLE, PITCH_HIP, PITCH_ANKLE, PITCH_RATE, SPEED = -0.243, -2.645, -1.54, -0.186, -0.021


def stand(obs: Any) -> Any:
    """A posture controller: torques of hip, knee and ankle. obs[0] is the height."""
    _, pitch, hip, knee, ankle, v, _, d_pitch, d_hip, d_knee, d_ankle = obs
    return np.array([
        -JOINT * hip - JOINT_RATE * d_hip + PITCH_HIP * pitch,
        JOINT * (KNEE_ANGLE - knee) - JOINT_RATE * d_knee,
        -ANKLE * ankle - ANKLE_RATE * d_ankle + PITCH_ANKLE * pitch + PITCH_RATE * d_pitch
        + SPEED * v,
    ])  # fmt: skip


def margin(obs: Any, terminated: bool, truncated: bool, info: dict[str, Any]) -> float:
    """It has fallen below a height of 0.7, or beyond a pitch of 0.2."""
    room = min(float(obs[0]) - 0.7, 0.2 - abs(float(obs[1])))
    return min(room, 0.0) if terminated else max(room, 1e-9)  # other limits end it too


def problem(std: float = 0.04, hold: int = 10, horizon: int = 100) -> apeval.Problem:
    return apeval.from_env(
        "Hopper-v5",
        policy=stand,
        disturb=apeval.ActionNoise(std=std, hold=hold),  # a new torque error every 10 steps
        fails="terminated",
        margin=margin,
        horizon=horizon,
        description="a hopper stands with noisy motors",
    )


if __name__ == "__main__":
    print(apeval.evaluate(problem(), episodes=1_500, seed=10_000))
