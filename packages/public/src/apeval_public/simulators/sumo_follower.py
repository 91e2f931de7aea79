"""`sumo-follower`: a cruise control follows SUMO's drivers, who misjudge gaps, to a red light.

Four of SUMO's drivers (Krauss, default parameters) and behind them a car with an adaptive cruise
control, for 16 s at 50 km/h. Nature decides what the drivers misjudge: the error of SUMO's driver
state, an Ornstein-Uhlenbeck process with the standard deviation and the time scale that SUMO gives
its least attentive driver, one value of each a second. It fails where the cruise control would
have to brake with the 3.5 m/s² of ISO 15622 or more, or touches the car ahead.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from apeval.adapt.from_env import from_env
from apeval.adapt.noises import CustomNoise
from apeval.errors import ProblemError
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.types import FloatArray
from apeval_public.simulators.city_traffic import DRIVERS, HARDEST, STEP, CityTraffic
from apeval_public.truth.known import with_stored_truth

SECONDS, HOLD = 16, 10
AWARENESS = 0.1
"""SUMO's minAwareness."""
MOST_STD = 1.0  # a gap is then misjudged by three quarters of itself
STD = 0.2 * (1.0 - AWARENESS)
"""SUMO's errorNoiseIntensityCoefficient, for this awareness."""
TIME_SCALE = 100.0 * AWARENESS
"""SUMO's errorTimeScaleCoefficient, for this awareness, in s."""
CORRELATION = math.exp(-HOLD * STEP / TIME_SCALE)
"""Of an error with that of the second before."""
HEADWAY, STANDSTILL, LIMIT = 1.0, 2.5, 13.89  # s, m, m/s
GAIN_GAP, GAIN_SPEED, GAIN_LIMIT = 0.23, 0.7, 1.0  # 1/s², 1/s, 1/s
HARD_BRAKE, COLLISION = 1, 2


def cruise_control(obs: Any) -> FloatArray:
    """Keep a gap of one second, and the speed limit.

    Args:
        obs: What `CityTraffic` shows.

    Returns:
        The acceleration that is asked for, in m/s², shape (1,).
    """
    gap, speed, _, _, speed_ahead = np.asarray(obs)[:5].tolist()
    follow = GAIN_GAP * (gap - STANDSTILL - HEADWAY * speed) + GAIN_SPEED * (speed_ahead - speed)
    return np.array([min(follow, GAIN_LIMIT * (LIMIT - speed))])


def _disturb(env: Any, errors: FloatArray) -> None:
    env.unwrapped.misjudge(errors)


def failure(obs: Any, action: Any) -> int:
    """What has gone wrong.

    Args:
        obs: What `CityTraffic` shows.
        action: The acceleration that was asked for.

    Returns:
        `HARD_BRAKE`, `COLLISION`, or 0.
    """
    return COLLISION if obs[0] <= 0.0 else HARD_BRAKE if action[0] <= HARDEST else 0


def _margin(obs: Any, action: Any) -> float:
    return min(1.0 - float(action[0]) / HARDEST, float(obs[0]) / STANDSTILL)


@register(
    "sumo-follower",
    description="a cruise control follows SUMO's inattentive drivers to a red light, 16 s",
    drawing="apeval_public.simulators.street_drawing:draw",
)
def sumo_follower(std: float = STD) -> Problem:
    """The car must not brake harder than 3.5 m/s² nor touch the one ahead; std is that of the
    error with which SUMO's drivers judge gaps and speeds."""
    if not 0.0 < std <= MOST_STD:
        raise ProblemError(f"std must be positive and at most {MOST_STD:g}; got {std}")
    errors = CustomNoise(
        _disturb,
        std=std,
        dim=len(DRIVERS),
        hold=HOLD,
        correlation=CORRELATION,
    )
    problem = from_env(
        CityTraffic,
        policy=cruise_control,
        disturb=errors,
        fails=failure,
        margin=_margin,
        kinds=("hard brake", "collision"),
        horizon=round(SECONDS / STEP),
        name="sumo-follower",
        description="a cruise control follows SUMO's drivers to a red light",
        chunk=1,
    )
    return with_stored_truth(replace(problem, parameters={"std": std}))
