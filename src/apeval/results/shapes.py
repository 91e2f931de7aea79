"""What a scene is made of: shapes that stand, shapes that move, and series in time.

Plain numbers, no pictures: the animated GIF and the report's canvas draw the same scene. Colours
are roles ("agent", "adversary", …), so that whoever draws picks a palette for light, dark and
colour-blind readers. World coordinates have y upwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.problem.types import Array, BoolArray, FloatArray, IntArray

ROLES = ("agent", "adversary", "other", "ground", "road", "line", "goal", "hazard", "flame")
"""What a shape stands for."""
STATE, AGENT_ACTION, DISTURBANCE, MEASURE = "state", "agent", "disturbance", "measure"
"""Groups of series: s, a_A, a_E, and what a drawing adds (speeds, gaps)."""


@dataclass(frozen=True)
class Shape:
    """A polygon (closed) or a line (open), in metres or whatever the scene's unit is."""

    points: FloatArray
    """Corners, (m, 2); of a mover: relative to its pose, x forwards."""
    role: str
    closed: bool = True

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"points": _numbers(self.points), "role": self.role, "closed": self.closed}


@dataclass(frozen=True)
class Mover:
    """Shapes that move together as one body."""

    name: str
    """For the legend: "ego", "challenger"; empty: none."""
    shapes: tuple[Shape, ...]
    pose: FloatArray
    """x, y, heading (radians, anticlockwise) in every frame, (F, 3)."""
    visible: BoolArray | None = None
    """Whether it is shown, (F,); None: always."""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "shapes": [shape.as_json() for shape in self.shapes],
            "pose": _numbers(self.pose),
            "visible": None if self.visible is None else self.visible.tolist(),
        }


@dataclass(frozen=True)
class Series:
    """A quantity over time."""

    name: str
    unit: str
    """As in "m/s"; empty where there is none."""
    group: str
    """state, agent, disturbance or measure."""
    time: FloatArray
    """(K,), in the scene's unit of time."""
    value: FloatArray
    """(K,)."""
    held: bool = False
    """Each value holds until the next time (a decision), and the last until the end."""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**vars(self), "time": _numbers(self.time), "value": _numbers(self.value)}


@dataclass(frozen=True)
class Scene:
    """One episode. Without movers it has series only."""

    title: str
    outcome: str
    """The kind of failure, "no failure", "ended by roulette" or "unresolved"."""
    time: FloatArray
    """Of every frame, (F,), increasing."""
    time_unit: str
    """"s", or "decision" where a decision's length is not known."""
    decision: IntArray
    """The decision under way in every frame, from 1 (0: before the first), (F,)."""
    series: tuple[Series, ...]
    bounds: tuple[float, float, float, float] | None = None
    """x_min, y_min, x_max, y_max of the picture; None: nothing to see but series."""
    unit: str = "m"
    """Of lengths; empty where there is none."""
    static: tuple[Shape, ...] = ()
    movers: tuple[Mover, ...] = ()

    @property
    def drawable(self) -> bool:
        """Whether there is a picture beside the series."""
        return self.bounds is not None and bool(self.movers)

    def as_json(self) -> dict[str, Any]:
        """Plain data, with numbers rounded to what a screen can show (7 digits)."""
        return {
            "title": self.title,
            "outcome": self.outcome,
            "time": _numbers(self.time),
            "time_unit": self.time_unit,
            "decision": self.decision.tolist(),
            "series": [series.as_json() for series in self.series],
            "bounds": None if self.bounds is None else list(self.bounds),
            "unit": self.unit,
            "static": [shape.as_json() for shape in self.static],
            "movers": [mover.as_json() for mover in self.movers],
        }


def rectangle(length: float, width: float) -> FloatArray:
    """Corners around the origin, x forwards.

    Args:
        length: Along x.
        width: Along y.

    Returns:
        Shape (4, 2).
    """
    x, y = length / 2.0, width / 2.0
    return np.array([[x, y], [-x, y], [-x, -y], [x, -y]])


def held(name: str, unit: str, time: FloatArray, value: Array) -> Series:
    """A disturbance, which holds for its decision.

    Args:
        name: What it is called.
        unit: In what it is measured.
        time: When each decision begins, (k,).
        value: One per decision, (k,).

    Returns:
        A series of steps.
    """
    return Series(name, unit, DISTURBANCE, time, np.asarray(value, np.float64), held=True)


def measure(name: str, unit: str, time: FloatArray, value: Array) -> Series:
    """What a drawing adds.

    Args:
        name: What it is called.
        unit: In what it is measured.
        time: Shape (k,).
        value: Shape (k,).

    Returns:
        A series of points.
    """
    return Series(name, unit, MEASURE, time, np.asarray(value, np.float64))


def _numbers(values: Array) -> Any:
    """Nested lists with 7 significant digits; what is not finite is null."""
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    return [float(f"{v:.7g}") if np.isfinite(v) else None for v in values.tolist()]
