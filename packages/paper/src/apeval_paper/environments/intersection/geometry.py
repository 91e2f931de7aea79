"""Where the two cars start, how they drive, and what nature may do: every number of Int-v0/v1.

From the paper: the left turn with one oncoming car, the agent that follows its lane at constant
speed, acc_E = a_E·x_E, the states, the box [−2, 2]³ of Int-v0, d_E = 2 in Int-v1, and the two
probabilities 6.34e-2 and 1.70e-6. Everything else is unstated there and calibrated here.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from apeval.errors import ProblemError
from apeval.problem.laws import TruncatedNormal

ROUTE_END = 210.0
"""How far (m) the ego may drive, counted from the start of its road: its route is 220.4 m long."""

#: Allowed values: any geometry inside works in highway-env and in the twin.
RANGES: dict[str, tuple[float, float]] = {
    "decisions": (1, 15),
    "frames": (5, 60),
    "ego_start": (0.0, 97.0),
    "ego_speed": (2.0, 20.0),
    "challenger_start": (0.0, 120.0),
    "challenger_speed": (0.0, 30.0),
    "std": (0.01, 10.0),
    "box": (0.05, 50.0),
    "acc_limit": (0.1, 20.0),
    "feature_distance": (1.0, 200.0),
    "feature_speed": (0.5, 50.0),
    "reference_speed": (0.0, 40.0),
    "range_x": (20.0, 500.0),
    "range_y": (10.0, 500.0),
    "range_v": (10.0, 100.0),
}


@dataclass(frozen=True)
class Geometry:
    """One intersection scenario. Metres, seconds; positions count from the start of the road."""

    decisions: int
    """Decisions of one second per episode (T)."""
    ego_start: float
    """Where the ego starts on the southern road o0–ir0 (100 m long)."""
    challenger_start: float
    """Where the challenger starts on the northern road o2–ir2: the free parameter that sets v*."""
    box: float
    """Every component of a_E lies in [−box, box] (the paper's for Int-v0)."""
    speed_feature: bool
    """Whether x_E has a third component, (reference_speed − v_E) / feature_speed."""
    std: float = 0.5
    """Standard deviation of each component of a_E before truncation to the box."""
    ego_speed: float = 10.0
    """The ego's constant speed."""
    challenger_speed: float = 8.0
    """The challenger's initial speed."""
    acc_limit: float = 6.0
    """acc_E is clipped to ± this; the challenger never reverses."""
    feature_distance: float = 20.0
    """x_rel and y_rel are divided by this and clipped to [−1, 1] in x_E."""
    feature_speed: float = 5.0
    reference_speed: float = 10.0
    frames: int = 15
    """Simulation sub-steps per decision (highway-env's 15 Hz)."""
    range_x: float = 120.0
    """Views divide x_rel and world positions by this …"""
    range_y: float = 60.0
    """… y_rel by this …"""
    range_v: float = 50.0
    """… and velocities by this, then clip to [−1, 1]."""

    def __post_init__(self) -> None:
        for key, (low, high) in RANGES.items():
            if not low <= getattr(self, key) <= high:
                raise ProblemError(
                    f"intersection: {key} must lie in [{low:g}, {high:g}]; got {getattr(self, key)}"
                )
        way = self.ego_start + self.ego_speed * self.decisions
        if way > ROUTE_END:
            raise ProblemError(
                f"intersection: the ego would drive to {way:g} m, beyond its route's "
                f"{ROUTE_END:g} m. Lower decisions, ego_speed or ego_start."
            )

    @property
    def d_E(self) -> int:
        """Components of a_E, as many as features in x_E."""
        return 3 if self.speed_feature else 2

    @property
    def dt(self) -> float:
        """Length of a sub-step in seconds."""
        return 1 / self.frames

    def nominal(self) -> TruncatedNormal:
        """π_E,gt: independent N(0, std²), truncated to the box."""
        return TruncatedNormal(0.0, self.std, -self.box, self.box, dim=self.d_E)

    def changed(self, **changes: Any) -> Geometry:
        """A copy with every field that is not None replaced."""
        return replace(self, **{k: v for k, v in changes.items() if v is not None})

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for `Problem.parameters` and for truth files."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


V0 = Geometry(decisions=6, ego_start=55.0, challenger_start=54.686, box=2.0, speed_feature=True)
V1 = Geometry(decisions=3, ego_start=85.0, challenger_start=78.72, box=5.0, speed_feature=False)
PRESETS = {"int-v0": V0, "int-v1": V1}

MULTI = Geometry(decisions=4, ego_start=75.0, challenger_start=70.5, box=2.0, speed_feature=False)
"""int-multi: the ego's part and the controllers' (its challenger is the first car below)."""
MULTI_CARS = (("2", 70.5, 8.0), ("3", 72.5, 8.0), ("1", 62.5, 8.0))
"""int-multi: leg (2 north, 3 east, 1 west), start on it and speed of each surrounding car."""
