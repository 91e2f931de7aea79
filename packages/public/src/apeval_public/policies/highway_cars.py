"""`highway-cars`: a car on highway-env's `highway-fast-v0` among eight disturbed ones.

Three lanes; the eight others follow highway-env's driver model (IDM and MOBIL), with a Gaussian
error in each one's acceleration that is drawn afresh every second. The car keeps its lane by a
fixed rule: slower where the gap ahead is below 30 m, faster where it is above 50 m. It fails where
highway-env says that it crashed. Where the cars start is the environment's own chance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from apeval.adapt.from_env import from_env
from apeval.adapt.noises import CustomNoise
from apeval.errors import ApevalError, ProblemError
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.types import Array
from apeval_public.truth.known import with_stored_truth

CARS, STD, SECONDS = 8, 2.0, 20
IDLE, FASTER, SLOWER = 1, 3, 4
NEAR, FAR, HALF_LANE = 30.0, 50.0, 2.0
_METRES_X, _METRES_Y = 200.0, 12.0  # by which highway-env divides x and y in its observation
_CRASH_GAP = 5.0  # the length of a car
CONFIG = {
    "vehicles_count": CARS,
    "duration": SECONDS,
    "other_vehicles_type": "apeval_public.policies.highway_traffic.DisturbedCar",
}
"""What differs from `highway-fast-v0`."""


def gap_ahead(obs: Array) -> float:
    """The distance to the next car in the same lane.

    Args:
        obs: highway-env's kinematic observation, own car first, shape (5, 5).

    Returns:
        Metres between the centres; infinite where none is seen.
    """
    seen, x, y = obs[1:, 0] > 0.5, obs[1:, 1] * _METRES_X, obs[1:, 2] * _METRES_Y
    ahead = x[seen & (x > 0.0) & (np.abs(y) < HALF_LANE)]
    return float(ahead.min(initial=np.inf))


def _drive(obs: Any) -> int:
    gap = gap_ahead(np.asarray(obs))
    return SLOWER if gap < NEAR else FASTER if gap > FAR else IDLE


def _disturb(env: Any, e: Array) -> None:
    for car, error in zip(env.unwrapped.road.vehicles[1:], e, strict=True):
        car.error = float(error)


def _margin(obs: Any, terminated: Any) -> float:
    """The gap ahead in tens of metres, and 0 in a crash."""
    if terminated:
        return 0.0
    return max(0.01, (min(gap_ahead(np.asarray(obs)), 2.0 * FAR) - _CRASH_GAP) / 10.0)


def _make() -> Any:
    try:
        import gymnasium
        import highway_env  # noqa: F401  the import registers its environments
    except ImportError:
        raise ApevalError(
            "highway-cars needs highway-env: pip install 'apeval-public[simulators]'"
        ) from None
    return gymnasium.make("highway-fast-v0", config=CONFIG, disable_env_checker=True)


@register("highway-cars", description="a car on highway-env among eight disturbed ones, 20 s")
def highway_cars(std: float = STD) -> Problem:
    """The car must not crash within 20 s; std is that of the error in the others' acceleration, in
    m/s²."""
    if std <= 0.0:
        raise ProblemError(f"std must be positive; got {std}")
    problem = from_env(
        _make,
        policy=_drive,
        disturb=CustomNoise(_disturb, std=std, dim=CARS),
        fails="terminated",
        margin=_margin,
        horizon=SECONDS,
        name="highway-cars",
        description="a car on a highway among eight disturbed ones",
    )
    return with_stored_truth(replace(problem, parameters={"std": std}))
