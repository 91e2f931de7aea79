"""A street of SUMO's with a red light, as a Gymnasium-like environment on libsumo.

libsumo has one simulation per process. An environment that finds another's there starts its own
anew and drives its episode again up to where it was, to the bit: several at once are right, and
slow, while one at a time (`chunk=1`) costs nothing. Workers have processes of their own.
"""

from __future__ import annotations

import contextlib
import io
from importlib.resources import files
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.problem.types import FloatArray

DRIVERS = tuple(f"car{k}" for k in range(4))
"""SUMO's own, the first one first."""
EGO = "ego"
STEP = 0.1
LIGHT, LENGTH = 396.0, 5.0
"""Where the stop line is, and a car's length, in m."""
LAG = 0.5
"""Of brake and engine: the time constant of the acceleration, in s."""
HARDEST, FASTEST = -3.5, 2.0
"""What an adaptive cruise control may use by ISO 15622:2010, in m/s²."""
_ERROR = "device.driverstate.errorState"
_DIGITS = 17  # all of a float's
_owner: list[CityTraffic] = []


def _libsumo() -> Any:
    said = io.StringIO()  # libsumo warns of any pyarrow but the one it was built with
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            import libsumo
    except ImportError:
        raise ApevalError("sumo-follower needs libsumo: pip install 'apeval[sumo]'") from None
    return libsumo


def _options() -> list[str]:
    folder = files(__package__).joinpath("street")
    return [
        "--net-file", str(folder.joinpath("street.net.xml")),
        "--route-files", str(folder.joinpath("street.rou.xml")),
        "--step-length", str(STEP), "--seed", "1", "--collision.action", "none",
        "--no-step-log", "--no-warnings", "--xml-validation", "never",
    ]  # fmt: skip


class CityTraffic:
    """Four cars and the ego, which is the last of them, on their way to a red light.

    An action is the acceleration that the ego asks for. An observation has the ego's gap, speed
    and acceleration, then gap and speed of each car ahead, the next one first; the gap of the
    first car is that to the stop line. In m, m/s and m/s².
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        from gymnasium.spaces import Box

        self.action_space = Box(-np.inf, np.inf, (1,), np.float64)
        self.observation_space = Box(-np.inf, np.inf, (3 + 2 * len(DRIVERS),), np.float64)
        self.sumo = _libsumo()
        self.errors = [0.0] * len(DRIVERS)
        self.past: list[tuple[list[float], float]] = []
        self.acceleration = 0.0

    @property
    def unwrapped(self) -> CityTraffic:
        """Itself: nothing is wrapped."""
        return self

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Begin an episode; there is no chance in it but the drivers' errors."""
        self.errors, self.past, self.acceleration = [0.0] * len(DRIVERS), [], 0.0
        self._take()
        return self._seen(), {}

    def misjudge(self, errors: FloatArray) -> None:
        """What the drivers misjudge until further notice.

        Args:
            errors: Of SUMO's driver state, a driver each, shape (4,).
        """
        self.errors = np.asarray(errors, np.float64).tolist()

    def step(self, action: FloatArray) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """A tenth of a second; the ego is told which acceleration to have."""
        if not (_owner and _owner[0] is self):
            self._take()
        asked = min(max(float(np.ravel(action)[0]), HARDEST), FASTEST)
        self.acceleration += (asked - self.acceleration) * STEP / LAG
        speed = max(0.0, self.sumo.vehicle.getSpeed(EGO) + STEP * self.acceleration)
        self._advance(self.errors, speed)
        self.past.append((self.errors, speed))
        return self._seen(), 0.0, False, False, {}

    def _take(self) -> None:
        """Make the simulation of this process this episode's, up to where it is."""
        if self.sumo.simulation.isLoaded():
            self.sumo.load(_options())
        else:
            self.sumo.start(["sumo", *_options()])
        _owner[:] = [self]
        self.sumo.simulationStep()
        self.sumo.vehicle.setSpeedMode(EGO, 0)  # nothing but what it is told
        for errors, speed in self.past:
            self._advance(errors, speed)

    def _advance(self, errors: list[float], speed: float) -> None:
        vehicle = self.sumo.vehicle
        for car, error in zip(DRIVERS, errors, strict=True):
            vehicle.setParameter(car, _ERROR, f"{error:.{_DIGITS}g}")
        vehicle.setSpeed(EGO, speed)
        self.sumo.simulationStep()

    def places(self) -> tuple[list[float], list[float]]:
        """Where the cars' fronts are along the street, and their speeds.

        Returns:
            Metres and metres a second, the ego first and then the cars ahead, the next one first.
        """
        vehicle, cars = self.sumo.vehicle, (EGO, *reversed(DRIVERS))
        at = [vehicle.getPosition(car)[0] for car in cars]
        return at, [vehicle.getSpeed(car) for car in cars]

    def _seen(self) -> FloatArray:
        at, speed = self.places()
        rear = [*(x - LENGTH for x in at[1:]), LIGHT]
        gaps = [ahead - x for ahead, x in zip(rear, at, strict=True)]
        others = [value for pair in zip(gaps[1:], speed[1:], strict=True) for value in pair]
        return np.array([gaps[0], speed[0], self.acceleration, *others])

    def close(self) -> None:
        """Leave the simulation to others."""
        if _owner and _owner[0] is self:
            _owner.clear()
