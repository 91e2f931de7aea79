"""int-multi: the ego's left turn among three cars on the other three legs, on highway-env.

The paper treats further agents as part of the environment: one joint adversary action holds the
controller coefficients of all three. They go straight on, may hit each other (highway-env then
lets them brake and pushes them), and a failure is a crash of the ego.
"""

from __future__ import annotations

import datetime
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from highway_env.road.road import Road

from apeval.problem.draws import Draws
from apeval.problem.laws import TruncatedNormal
from apeval.problem.problem import Problem
from apeval.problem.truth import Truth
from apeval.problem.types import Array, BoolArray, FloatArray
from apeval_paper.environments.intersection.columns import K
from apeval_paper.environments.intersection.geometry import MULTI, MULTI_CARS, Geometry
from apeval_paper.environments.intersection.highway import (
    Challenger,
    advance,
    ego_path,
    make_scene,
    rectangle_gap,
)
from apeval_paper.environments.intersection.sampling import Sampled, nominal_actions
from apeval_paper.environments.intersection.state import time
from apeval_paper.environments.intersection.truth_files import as_truth, compared, enough, stored

COMMAND = "python -m apeval_paper.environments.intersection.ground_truth int-multi"
EPISODES = 40_000

#: Columns: sub-steps done, the ego's pending impact, crash and smallest separation; then per car
#: x, y, v, crash, pending impact and its push.
PENDING, CRASHED, SEPARATION, FIRST = 1, 2, 3, 4
X, Y, V, CAR_CRASHED, CAR_PENDING, PUSH_X, PUSH_Y = range(7)
WIDTH = 7

Starts = tuple[tuple[str, float, float], ...]


def make_cars(g: Geometry, cars: Starts) -> Road:
    """A road with the ego and one car per (leg, start, speed)."""
    road, ego, _ = make_scene(g)
    road.vehicles = [ego]
    for leg, start, speed in cars:
        lane = road.network.get_lane((f"o{leg}", f"ir{leg}", 0))
        car = Challenger(None, lane.position(start, 0), lane.heading_at(start), speed)
        car.road, car.geometry, car.ego, car.a_E = road, g, ego, (0.0,) * g.d_E
        road.vehicles.append(car)
    return road


class MultiStep:
    """f_E for a batch, one episode after the other, with one set of cars put in place."""

    def __init__(self, g: Geometry = MULTI, cars: Starts = MULTI_CARS) -> None:
        self.g = g
        self.road = make_cars(g, cars)

    def __call__(self, x: Array, a_E: Array) -> FloatArray:
        x = np.array(x, dtype=np.float64)
        for row, a in zip(x, a_E.tolist(), strict=True):
            self._put(row, a)
            done, row[SEPARATION] = advance(self.road, self.g.frames, row[SEPARATION])
            row[K] += done
            _read(self.road, row)
        return x

    def _put(self, row: FloatArray, a_E: list[float]) -> None:
        ego, *cars = self.road.vehicles
        path, k, d = ego_path(self.g), int(row[K]), self.g.d_E
        ego.position = path.poses[k, :2].copy()
        ego.heading, ego.speed = path.headings[k], float(path.poses[k, 4])
        ego.target_lane_index, route = path.targets[k // self.g.frames]
        ego.route = list(route)
        ego.crashed, ego.impact = False, np.zeros(2) if row[PENDING] else None
        for i, car in enumerate(cars):
            c = row[FIRST + i * WIDTH :][:WIDTH]
            car.position, car.speed = c[[X, Y]], float(c[V])
            car.crashed = bool(c[CAR_CRASHED])
            car.impact = c[[PUSH_X, PUSH_Y]] if c[CAR_PENDING] else None
            car.a_E = a_E[i * d : (i + 1) * d]


def _read(road: Road, row: FloatArray) -> None:
    ego, *cars = road.vehicles
    row[PENDING], row[CRASHED] = ego.impact is not None, ego.crashed
    for i, car in enumerate(cars):
        push = (0.0, 0.0) if car.impact is None else car.impact
        row[FIRST + i * WIDTH :][:WIDTH] = (
            *car.position, car.speed, car.crashed, car.impact is not None, *push,
        )  # fmt: skip


@lru_cache(maxsize=16)
def start(g: Geometry, cars: Starts) -> FloatArray:
    """The initial state, one row."""
    road = make_cars(g, cars)
    row = np.zeros(FIRST + WIDTH * len(cars))
    _read(road, row)
    row[SEPARATION] = min(rectangle_gap(road.vehicles[0], car) for car in road.vehicles[1:])
    return row


def failed(x: Array) -> BoolArray:
    """The ego has crashed."""
    crashed: BoolArray = x[:, CRASHED] > 0.5
    return crashed


def margin(x: Array) -> FloatArray:
    """The ego's smallest separation from any car so far; at most 0 after its crash."""
    m: FloatArray = np.where(failed(x), np.minimum(x[:, SEPARATION], 0.0), x[:, SEPARATION])
    return m


def observe(g: Geometry, x: Array) -> FloatArray:
    """Per car x_rel, y_rel (ego's body frame) and v, then t, in [−1, 1]."""
    path = ego_path(g)
    pose = path.poses[x[:, K].astype(np.int64)]
    columns = []
    for i in range((x.shape[1] - FIRST) // WIDTH):
        c = x[:, FIRST + i * WIDTH :]
        dx, dy = c[:, X] - pose[:, 0], c[:, Y] - pose[:, 1]
        cos, sin = pose[:, 2], pose[:, 3]
        columns += [(cos * dx + sin * dy) / g.range_x, (cos * dy - sin * dx) / g.range_x]
        columns.append(c[:, V] / g.range_v)
    s: FloatArray = np.clip(np.column_stack([*columns, time(g, x)]), -1.0, 1.0)
    return s


def problem() -> Problem:
    """The registered problem."""
    g = MULTI
    return Problem(
        nominal=TruncatedNormal(0.0, g.std, -g.box, g.box, dim=g.d_E * len(MULTI_CARS)),
        reset=_reset,
        step=_step,
        failed=failed,
        margin=margin,
        horizon=g.decisions,
        kinds=("crash",),
        views={"markov": partial(observe, g)},
        chunk=64,
        name="int-multi",
        description="left turn among three cars on the other legs, one joint adversary",
        parameters={"cars": [list(car) for car in MULTI_CARS], **g.as_dict()},
        truth=_truth,
        verify=verify,
    )


@cache
def _simulator() -> MultiStep:
    return MultiStep()


def _reset(draws: Draws) -> Array:
    return np.repeat(start(MULTI, MULTI_CARS)[None], draws.n, axis=0)


def _step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
    return _simulator()(x, a_E)


def _truth() -> Truth:
    return as_truth(stored("int-multi"))


def verify(full: bool, seed: int) -> dict[str, Any]:
    """Monte Carlo anew, to 10 % or (`full`) to the stated error, beside the stored truth."""
    stated = _truth()
    target = stated.standard_error / stated.value if full else 0.1
    s = monte_carlo(enough(stated, target), seed)
    return compared("int-multi", stated, "Monte Carlo on highway-env", s, seed)


def monte_carlo(n: int, seed: int, g: Geometry = MULTI, cars: Starts = MULTI_CARS) -> Sampled:
    """Plain Monte Carlo on highway-env."""
    rng, step = np.random.default_rng(seed), MultiStep(g, cars)
    row, failures = start(g, cars), 0
    for first in range(0, n, 100):
        size = min(100, n - first)
        a_E = np.concatenate([nominal_actions(g, size, rng) for _ in cars], axis=2)
        x = np.repeat(row[None], size, axis=0)
        for t in range(g.decisions):
            alive = ~failed(x)
            x[alive] = step(x[alive], a_E[alive, t])
        failures += int(failed(x).sum())
    p = failures / n
    return Sampled(p, (p * (1.0 - p) / n) ** 0.5, n, p)


def compute(seed: int = 10_000) -> dict[str, Any]:
    """What the data file holds."""
    s = monte_carlo(EPISODES, seed)
    return {
        "problem": "int-multi",
        "value": s.value,
        "standard_error": s.standard_error,
        "method": "Monte Carlo on highway-env",
        "episodes": s.episodes,
        "seed": seed,
        "geometry": MULTI.as_dict(),
        "cars": [list(car) for car in MULTI_CARS],
        "date": datetime.date.today().isoformat(),
        "command": COMMAND,
    }
