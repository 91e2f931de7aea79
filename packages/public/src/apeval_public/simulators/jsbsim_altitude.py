"""`jsbsim-altitude`: an autopilot holds the altitude of JSBSim's Cessna 172 in turbulence.

Level flight at 1,000 ft and 100 kt for 40 s. Nature decides the gusts, along, across and
vertical: first-order Gauss-Markov processes with the intensity and the length scale that
MIL-F-8785C gives its Dryden model at 1,000 ft, one knot of each every two seconds and straight
lines between them. It fails where the aircraft leaves ±100 ft, the band that the FAA's Airman
Certification Standards ask of a private pilot in the traffic pattern.
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
from apeval_public.simulators.cessna import ALTITUDE, HOLD, SPEED, STEP, Cessna
from apeval_public.truth.known import with_stored_truth

BAND, SECONDS, WIND = 100.0, 40, 45.0
MOST_WIND = 200.0  # in kt: no hurricane has had more
KNOT = 1.68781
"""In ft/s."""
LENGTH = ALTITUDE
"""The length scale of all three gusts at 1,000 ft, in ft."""
CORRELATION = math.exp(-HOLD * STEP * SPEED * KNOT / LENGTH)
"""Of a gust with that two seconds before."""
ABOVE, BELOW = 1, 2
TRIM_PITCH = 0.38
CLIMB_OF_ALTITUDE, MOST_CLIMB = 0.2, 8.0  # 1/s, ft/s
PITCH_OF_CLIMB, MOST_PITCH = 0.5, 6.0  # ° s/ft, °
ELEVATOR_OF_PITCH, ELEVATOR_OF_RATE, MOST_ELEVATOR = 0.04, 0.3, 0.4
BANK_OF_HEADING, MOST_BANK = 1.5, 20.0  # 1, °
AILERON_OF_BANK, AILERON_OF_RATE, MOST_AILERON = 0.02, 0.1, 0.5
THROTTLE_OF_SPEED, MOST_THROTTLE = 0.03, 0.3


def intensity(wind: float) -> float:
    """The standard deviation of the gusts at 1,000 ft.

    Args:
        wind: At 20 ft above the ground, in knots.

    Returns:
        The same for all three components, in ft/s.
    """
    return 0.1 * wind * KNOT


def _limited(value: float, most: float) -> float:
    return min(max(value, -most), most)


def autopilot(obs: Any) -> FloatArray:
    """Altitude, heading and speed hold: altitude by climb, climb by pitch, pitch by elevator.

    Args:
        obs: What `Cessna` shows.

    Returns:
        Changes of elevator, aileron, rudder and throttle from their trimmed settings, shape (4,).
    """
    height, climb, pitch, q, bank, p, heading, _, speed, _ = np.asarray(obs).tolist()
    wanted_climb = _limited(-CLIMB_OF_ALTITUDE * height, MOST_CLIMB)
    wanted_pitch = TRIM_PITCH + _limited(PITCH_OF_CLIMB * (wanted_climb - climb), MOST_PITCH)
    elevator = ELEVATOR_OF_RATE * q - ELEVATOR_OF_PITCH * (wanted_pitch - pitch)  # up is negative
    wanted_bank = _limited(-BANK_OF_HEADING * heading, MOST_BANK)
    aileron = AILERON_OF_BANK * (wanted_bank - bank) - AILERON_OF_RATE * p
    throttle = -THROTTLE_OF_SPEED * speed
    return np.array([
        _limited(elevator, MOST_ELEVATOR),
        _limited(aileron, MOST_AILERON),
        0.0,
        _limited(throttle, MOST_THROTTLE),
    ])  # fmt: skip


def _disturb(env: Any, gust: FloatArray) -> None:
    env.unwrapped.blow(gust)


def left_band(obs: Any) -> int:
    """How the aircraft has left its band.

    Args:
        obs: What `Cessna` shows.

    Returns:
        `ABOVE`, `BELOW`, or 0 where it has not.
    """
    height = float(obs[0])
    return ABOVE if height >= BAND else BELOW if height <= -BAND else 0


def _margin(obs: Any) -> float:
    return 1.0 - abs(float(obs[0])) / BAND


@register(
    "jsbsim-altitude",
    description="an autopilot holds a Cessna 172 of JSBSim within 100 ft in turbulence, 40 s",
    drawing="apeval_public.simulators.cessna_drawing:draw",
)
def jsbsim_altitude(wind: float = WIND) -> Problem:
    """The aircraft must stay within 100 ft of its altitude; wind is that at 20 ft above the ground
    in knots, by which MIL-F-8785C grades turbulence: 15 light, 30 moderate, 45 severe."""
    if not 0.0 < wind <= MOST_WIND:
        raise ProblemError(f"wind must be positive and at most {MOST_WIND:g} kt; got {wind}")
    gusts = CustomNoise(
        _disturb,
        std=intensity(wind),
        dim=3,
        hold=HOLD,
        correlation=CORRELATION,
    )
    problem = from_env(
        Cessna,
        policy=autopilot,
        disturb=gusts,
        fails=left_band,
        margin=_margin,
        kinds=("above", "below"),
        horizon=round(SECONDS / STEP),
        name="jsbsim-altitude",
        description="an autopilot holds the altitude of a Cessna 172 in turbulence",
    )
    return with_stored_truth(replace(problem, parameters={"wind": wind}))
