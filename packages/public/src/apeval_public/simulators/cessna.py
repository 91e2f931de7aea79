"""JSBSim's Cessna 172 in gusts, as a Gymnasium-like environment.

Every episode has a flight model of its own, made and trimmed anew (8 ms), so that nothing of the
last episode is left: engine, integrators and controls begin alike to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.problem.types import FloatArray

AIRCRAFT = "c172p"
ALTITUDE, SPEED = 1000.0, 100.0
"""Feet above the ground, and calibrated knots."""
RATE, SUBSTEPS = 60, 6
"""Steps of the flight model a second, and those for which the controls stay."""
STEP = SUBSTEPS / RATE
HOLD = 20
"""Steps in which a gust becomes the next: 2 s."""
GUSTS = tuple(f"atmosphere/gust-{way}-fps" for way in ("north", "east", "down"))
SEEN = (
    "position/h-sl-ft",
    "velocities/h-dot-fps",
    "attitude/theta-deg",
    "velocities/q-rad_sec",
    "attitude/phi-deg",
    "velocities/p-rad_sec",
    "attitude/psi-deg",
    "velocities/r-rad_sec",
    "velocities/vc-kts",
    "aero/alpha-deg",
)
"""Altitude and climb, pitch and its rate, bank and its rate, heading and its rate, speed, angle of
attack."""
CONTROLS = (
    "fcs/elevator-cmd-norm",
    "fcs/aileron-cmd-norm",
    "fcs/rudder-cmd-norm",
    "fcs/throttle-cmd-norm",
)


def flight_model() -> Any:
    """JSBSim with the aircraft trimmed for level flight to the north.

    Returns:
        A `jsbsim.FGFDMExec`.

    Raises:
        ApevalError: jsbsim is not installed.
    """
    try:
        import jsbsim
    except ImportError:
        raise ApevalError("jsbsim-altitude needs JSBSim: pip install 'apeval[jsbsim]'") from None
    jsbsim.set_logger(jsbsim.DefaultLogger(jsbsim.LogLevel.FATAL))  # it greets whoever makes one
    model = jsbsim.FGFDMExec(None)
    model.set_debug_level(0)
    model.load_model(AIRCRAFT)
    model.set_dt(1.0 / RATE)
    model["ic/h-sl-ft"], model["ic/vc-kts"], model["ic/psi-true-deg"] = ALTITUDE, SPEED, 0.0
    model.run_ic()
    model["propulsion/set-running"] = -1  # all engines
    model.do_trim(1)
    return model


class Cessna:
    """The aircraft under way: actions are changes of the trimmed controls.

    An observation has the deviations from level flight at 1,000 ft and 100 kt to the north, in the
    order and the units of `SEEN`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        from gymnasium.spaces import Box

        self.action_space = Box(-1.0, 1.0, (len(CONTROLS),), np.float64)
        self.observation_space = Box(-np.inf, np.inf, (len(SEEN),), np.float64)
        self.gust, self.next_gust = np.zeros(3), np.zeros(3)
        self.steps = 0
        flight_model()  # says now what is missing

    @property
    def unwrapped(self) -> Cessna:
        """Itself: nothing is wrapped."""
        return self

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Begin a flight; there is no chance in it but the gusts."""
        self.model = flight_model()
        self.gust, self.next_gust, self.steps = np.zeros(3), np.zeros(3), 0
        self.trimmed = np.array([self.model[name] for name in CONTROLS])
        return self._seen(), {}

    def blow(self, gust: FloatArray) -> None:
        """What the gust is to be at the end of the two seconds under way.

        Args:
            gust: Northwards, eastwards and downwards, in ft/s, shape (3,).
        """
        self.next_gust = np.asarray(gust, np.float64)

    def step(self, action: FloatArray) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """A tenth of a second with these controls."""
        left = HOLD - self.steps % HOLD
        self.gust = self.gust + (self.next_gust - self.gust) / left
        model = self.model
        for name, speed in zip(GUSTS, self.gust.tolist(), strict=True):
            model[name] = speed
        for name, setting in zip(CONTROLS, (self.trimmed + action).tolist(), strict=True):
            model[name] = setting
        for _ in range(SUBSTEPS):
            model.run()
        self.steps += 1
        return self._seen(), 0.0, False, False, {}

    def _seen(self) -> FloatArray:
        s = np.array([self.model[name] for name in SEEN])
        s[0] -= ALTITUDE
        s[6] = (s[6] + 180.0) % 360.0 - 180.0
        s[8] -= SPEED
        return s
