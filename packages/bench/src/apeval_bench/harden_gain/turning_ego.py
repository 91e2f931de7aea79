"""Int-v1's scene with an agent that chooses the ego's acceleration.

The ego drives the path that highway-env's controller drives at constant speed, at a speed of the
agent's choosing. The other car and the crash rule are those of the compiled twin: an agent that
never accelerates meets Int-v1 itself, to the last bit.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from apeval.adapt.from_env import from_env
from apeval.adapt.noises import CustomNoise
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray
from apeval_paper.environments.intersection.columns import POSE_COS, POSE_SIN, POSE_X, POSE_Y
from apeval_paper.environments.intersection.geometry import V1

STEPS = 3
"""Of the agent, in each decision of nature."""
MOST = 4.0
"""The largest acceleration, m/s²."""
_PATH = V1.changed(decisions=6)  # driven further, for an ego that is faster
_FRAMES = V1.frames // STEPS


class TurningEgo(gymnasium.Env[Any, Any]):
    """An action is an acceleration in [−1, 1] times `MOST`, held for a third of a second. A step
    earns 1 − (v/v_0 − 1)² − a²/10 with the action a: the ego is to keep its speed, without haste.
    What is seen: the other car's place in the ego's frame, its speed, the ego's speed and the time.
    """

    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (5,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self) -> None:
        # highway-env and numba take seconds to load
        from apeval_bench.harden_gain.turning_kernel import advance
        from apeval_paper.environments.intersection.highway import (
            ego_path,
            make_scene,
            rectangle_gap,
        )
        from apeval_paper.environments.intersection.twin import scalars

        path, self.advance = ego_path(_PATH), advance
        self.poses, self.numbers = path.poses, scalars(V1)
        self.start_y, self.lane_x = path.start_y, path.lane_x
        _, ego, challenger = make_scene(V1)
        self.start_gap = rectangle_gap(ego, challenger)
        self.a_E: FloatArray = np.zeros(2)
        self._begin()

    def _begin(self) -> None:
        self.place, self.speed, self.t = 0.0, V1.ego_speed, 0
        self.y, self.v = self.start_y, V1.challenger_speed
        self.pending, self.crashed, self.smallest = False, False, self.start_gap

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Both cars at their start."""
        super().reset(seed=seed)
        self._begin()
        return self._seen(), {"gap": self.smallest}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """A third of a second."""
        a = float(np.asarray(action).ravel()[0])
        (self.place, self.speed, self.y, self.v, self.pending, self.crashed, self.smallest) = (
            self.advance(
                self.place, self.speed, self.y, self.v, self.pending, self.smallest, self.a_E,
                MOST * a, _FRAMES, self.poses, self.numbers, V1.ego_speed,
            )
        )  # fmt: skip
        self.t += 1
        reward = 1.0 - (self.speed / V1.ego_speed - 1.0) ** 2 - 0.1 * a * a
        gap = min(self.smallest, 0.0) if self.crashed else self.smallest  # as Int-v1's margin
        return self._seen(), reward, bool(self.crashed), False, {"gap": gap}

    def _seen(self) -> Array:
        k = min(int(self.place), len(self.poses) - 1)
        c, s = self.poses[k, POSE_COS], self.poses[k, POSE_SIN]
        dx, dy = self.lane_x - self.poses[k, POSE_X], self.y - self.poses[k, POSE_Y]
        return np.array(
            [
                (c * dx + s * dy) / V1.feature_distance,
                (c * dy - s * dx) / V1.feature_distance,
                self.v / V1.ego_speed,
                self.speed / V1.ego_speed,
                self.t / (STEPS * V1.decisions),
            ],
            np.float32,
        ).clip(-10.0, 10.0)


def _held(env: Any, e: Any) -> None:
    env.unwrapped.a_E = np.array(e, np.float64)


def _margin(info: Any) -> float:
    return float(info["gap"])


def turning(policy: Any, std: float = V1.std) -> Problem:
    """The problem, with a policy for the ego.

    Args:
        policy: Whatever `from_env` takes.
        std: Of each component of a_E before it is truncated; Int-v1 has 0.5.
    """
    return from_env(
        TurningEgo,
        policy=policy,
        disturb=CustomNoise(_held, std=std, dim=2, bound=V1.box, hold=STEPS),
        fails="terminated",
        margin=_margin,
        horizon=STEPS * V1.decisions,
        name="turning-ego",
        description="an agent chooses the ego's acceleration in Int-v1's left turn",
    )
