"""The two cars on highway-env's own road, vehicles and crash check.

What is ours: the challenger's acceleration (the adversary), and leaving out
`get_closest_lane_index`, which costs three quarters of the time and whose result, the lane under
the car, enters neither the lane-keeping controller (it follows `target_lane_index`) nor the
crash check. `stock=True` keeps it, as the reference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from highway_env.envs.intersection_env import IntersectionEnv
from highway_env.road.road import Road, RoadNetwork
from highway_env.vehicle.controller import ControlledVehicle
from highway_env.vehicle.kinematics import Vehicle

from apeval.problem.types import Array, FloatArray
from apeval_paper.environments.intersection.columns import CRASHED, PENDING, SEPARATION, K, V, Y
from apeval_paper.environments.intersection.geometry import Geometry

EGO_LANE, CHALLENGER_LANE = ("o0", "ir0", 0), ("o2", "ir2", 0)
DESTINATION = "o1"
GREEN, YELLOW, RED = (50, 200, 0), (200, 200, 0), (255, 100, 100)


class _EnvironmentMaker(IntersectionEnv):  # type: ignore[misc]
    """`IntersectionEnv._make_road` without the environment around it."""

    def __init__(self) -> None:
        self.config = {"show_trajectories": False, "neighbour_vehicles_connected_lanes": False}
        self._np_random = np.random.default_rng(0)


def make_network() -> RoadNetwork:
    """The lanes of highway-env's intersection, fresh."""
    maker = _EnvironmentMaker()
    maker._make_road()
    return maker.road.network


@cache
def network() -> RoadNetwork:
    """The lanes of highway-env's intersection, shared: nothing changes them."""
    return make_network()


class StockEgo(ControlledVehicle):  # type: ignore[misc]
    """The agent π_A: highway-env's lane-keeping controller at constant speed."""

    @property
    def color(self) -> tuple[int, int, int]:
        """For the viewer: green, as in the paper's figure."""
        return RED if self.crashed else GREEN


class StockChallenger(Vehicle):  # type: ignore[misc]
    """The adversary's car: acc_E = a_E·x_E, straight on.

    Its steering is 0: highway-env's steering controller is unstable near standstill.
    """

    a_E: Sequence[float] = ()
    geometry: Geometry
    ego: Vehicle

    @property
    def color(self) -> tuple[int, int, int]:
        """For the viewer: yellow, as in the paper's figure."""
        return RED if self.crashed else YELLOW

    def features(self) -> list[float]:
        """x_E, each component clipped to [−1, 1]."""
        g, ego = self.geometry, self.ego
        c, s = float(np.cos(ego.heading)), float(np.sin(ego.heading))
        (cx, cy), (ex, ey) = self.position.tolist(), ego.position.tolist()
        dx, dy = cx - ex, cy - ey
        x_E = [(c * dx + s * dy) / g.feature_distance, (c * dy - s * dx) / g.feature_distance]
        if g.speed_feature:
            x_E.append((g.reference_speed - float(self.speed)) / g.feature_speed)
        return [min(max(f, -1.0), 1.0) for f in x_E]

    def act(self, action: Any = None) -> None:
        """The acceleration of one sub-step, from features of this sub-step."""
        acc = 0.0
        for a, f in zip(self.a_E, self.features(), strict=True):
            acc += a * f
        acc = min(max(acc, -self.geometry.acc_limit), self.geometry.acc_limit)
        acc = max(acc, -self.geometry.frames * float(self.speed))
        self.action = {"steering": 0.0, "acceleration": acc}


class Ego(StockEgo):
    """The agent without lane look-ups."""

    def on_state_update(self) -> None:
        """Nothing reads the lane under the car."""


class Challenger(StockChallenger):
    """The adversary's car without lane look-ups."""

    def on_state_update(self) -> None:
        """Nothing reads the lane under the car."""


def make_scene(g: Geometry, *, stock: bool = False) -> tuple[Road, StockEgo, StockChallenger]:
    """A plain road (a `RegulatedRoad` would make the ego yield) with both cars at their start.

    The ego comes first in `road.vehicles`: the crash check is not symmetric.
    """
    net = make_network() if stock else network()
    road = Road(network=net, np_random=np.random.RandomState(0))
    lane_e, lane_c = net.get_lane(EGO_LANE), net.get_lane(CHALLENGER_LANE)
    start_e, start_c = lane_e.position(g.ego_start, 0), lane_c.position(g.challenger_start, 0)
    heading_e, heading_c = lane_e.heading_at(g.ego_start), lane_c.heading_at(g.challenger_start)
    place = road if stock else None  # with no road, constructors look no lane up
    ego = (StockEgo if stock else Ego)(
        place, start_e, heading_e, g.ego_speed, target_lane_index=EGO_LANE
    )
    challenger = (StockChallenger if stock else Challenger)(
        place, start_c, heading_c, g.challenger_speed
    )
    ego.road = challenger.road = road
    ego.target_speed = g.ego_speed
    ego.lane_index = EGO_LANE
    ego.lane = lane_e
    ego.plan_route_to(DESTINATION)
    challenger.lane_index, challenger.lane = CHALLENGER_LANE, lane_c
    challenger.geometry, challenger.ego = g, ego
    challenger.a_E = (0.0,) * g.d_E
    road.vehicles = [ego, challenger]
    return road, ego, challenger


@dataclass(frozen=True)
class EgoPath:
    """What highway-env's controller does from this start, recorded once per geometry."""

    poses: FloatArray
    """x, y, cos h, sin h, v before sub-step 0, 1, …; shape (frames·decisions + 1, 5)."""
    headings: FloatArray
    targets: tuple[tuple[Any, tuple[Any, ...]], ...]
    """The lane followed and the rest of the route at each decision."""
    lane_x: float
    """The challenger's x, which steering 0 leaves unchanged."""
    start_y: float
    direction: tuple[float, float]
    """cos and sin of the challenger's heading."""


@lru_cache(maxsize=256)
def ego_path(g: Geometry) -> EgoPath:
    """Drive the ego alone over the whole horizon."""
    road, ego, challenger = make_scene(g)
    road.vehicles = [ego]
    rows, headings, targets = [], [], []
    for k in range(g.frames * g.decisions + 1):
        h = ego.heading
        rows.append([*ego.position.tolist(), float(np.cos(h)), float(np.sin(h)), float(ego.speed)])
        headings.append(float(h))
        if k % g.frames == 0:
            targets.append((ego.target_lane_index, tuple(ego.route)))
        road.act()
        road.step(g.dt)
    h = challenger.heading
    x, y = challenger.position.tolist()
    return EgoPath(
        np.array(rows),
        np.array(headings),
        tuple(targets),
        x,
        y,
        (float(np.cos(h)), float(np.sin(h))),
    )


def rectangle_gap(a: Vehicle, b: Vehicle, below: float = math.inf) -> float:
    """Signed separation of two bodies: the widest gap over the four axes of the separating-axis
    theorem, hence negative (the penetration depth) if and only if they overlap.

    `below`: answer inf without a closer look where the gap must exceed this.
    """
    (ax, ay), (bx, by) = a.position.tolist(), b.position.tolist()
    dx, dy = bx - ax, by - ay
    if dx * dx + dy * dy >= 2.0 * (below + a.diagonal / 2 + b.diagonal / 2) ** 2:
        return math.inf
    ca, sa, cb, sb = (f(v.heading) for v in (a, b) for f in (math.cos, math.sin))
    c, s = abs(ca * cb + sa * sb), abs(ca * sb - sa * cb)
    long = a.LENGTH / 2 + a.LENGTH / 2 * c + a.WIDTH / 2 * s
    wide = a.WIDTH / 2 + a.LENGTH / 2 * s + a.WIDTH / 2 * c
    gap: float = max(
        abs(dx * ca + dy * sa) - long,
        abs(dy * ca - dx * sa) - wide,
        abs(dx * cb + dy * sb) - long,
        abs(dy * cb - dx * sb) - wide,
    )
    return gap


def advance(road: Road, frames: int, smallest: float) -> tuple[int, float]:
    """Simulate one decision, ending when the first car, the ego, has crashed: sub-steps done,
    and its smallest separation from any other car so far.

    `impact` set in the last sub-step stays pending: the crash follows in the next one, or never
    if the episode ends before. The sub-step that carries an impact out also pushes the bodies
    apart; its separation says nothing and is left out.
    """
    ego, *others = road.vehicles
    for j in range(1, frames + 1):
        pushed = ego.impact is not None
        road.act()
        road.step(1 / frames)
        if not pushed:
            for other in others:
                smallest = min(smallest, rectangle_gap(ego, other, below=smallest))
        if ego.crashed:
            return j, smallest
    return frames, smallest


def reset(n: int, g: Geometry) -> FloatArray:
    """n episodes at their start."""
    path = ego_path(g)
    _, ego, challenger = make_scene(g)
    x = np.zeros((n, 6))
    x[:, Y], x[:, V] = path.start_y, g.challenger_speed
    x[:, SEPARATION] = rectangle_gap(ego, challenger)
    return x


class HighwayStep:
    """f_E on highway-env for a batch, one episode after the other, with one pair of cars that is
    put where the state says: nothing is rebuilt."""

    def __init__(self, g: Geometry) -> None:
        self.g = g
        self.road, self.ego, self.challenger = make_scene(g)

    def __call__(self, x: Array, a_E: Array) -> FloatArray:
        x = np.array(x, dtype=np.float64)
        for row, a in zip(x, a_E.tolist(), strict=True):
            self._put(row, a)
            done, row[SEPARATION] = advance(self.road, self.g.frames, row[SEPARATION])
            row[K] += done
            row[Y], row[V] = self.challenger.position[1], self.challenger.speed
            row[CRASHED] = self.ego.crashed
            row[PENDING] = self.ego.impact is not None and not self.ego.crashed
        return x

    def _put(self, row: FloatArray, a_E: list[float]) -> None:
        path, k = ego_path(self.g), int(row[K])
        ego, challenger = self.ego, self.challenger
        ego.position = path.poses[k, :2].copy()
        ego.heading, ego.speed = path.headings[k], float(path.poses[k, 4])
        ego.target_lane_index, route = path.targets[k // self.g.frames]
        ego.route = list(route)
        challenger.position = np.array([path.lane_x, row[Y]])
        challenger.speed, challenger.a_E = float(row[V]), a_E
        for v in (ego, challenger):
            v.crashed = False
            v.impact = np.zeros(2) if row[PENDING] else None
