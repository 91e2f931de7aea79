"""The intersection from above, sub-step by sub-step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray
from apeval.results.drawing import RecordedEpisode
from apeval.results.shapes import Mover, Scene, Series, Shape, held, measure, rectangle
from apeval_paper.environments.intersection.geometry import MULTI_CARS, Geometry

_AROUND = 12.0  # metres of road around the cars
_LEGS = {"1": "from the west", "2": "from the north", "3": "from the east"}


def draw(problem: Problem, it: RecordedEpisode) -> Scene:
    """Cars on highway-env's road: the twin's states are the same to the last bit."""
    names = {f.name for f in fields(Geometry)}
    g = Geometry(**{k: v for k, v in problem.parameters.items() if k in names})
    several = problem.name.startswith("int-multi")
    a_E = np.asarray(it.record.a_E, np.float64).reshape(len(it.record.a_E), -1)
    road = _road(g, several)
    frames = np.array(list(_drive(road, g, a_E)))  # (F, cars, 5)
    F = len(frames)
    time = g.dt * np.arange(F, dtype=np.float64)
    length, width = road.vehicles[0].LENGTH, road.vehicles[0].WIDTH
    body = rectangle(length, width)
    others = [f"car {_LEGS[leg]}" for leg, _, _ in MULTI_CARS] if several else ["challenger"]
    movers = []
    for i, name in enumerate(["ego", *others]):
        shape = Shape(body, "agent" if i == 0 else "adversary")
        movers.append(Mover(name, (shape,), frames[:, i, :3]))
    return Scene(
        title=it.title,
        outcome=it.outcome,
        time=time,
        time_unit="s",
        decision=np.minimum(np.arange(F) // g.frames + 1, len(a_E)),
        series=tuple(_series(g, time, frames, a_E, others)),
        bounds=_bounds(frames[:, :, :2].reshape(-1, 2)),
        static=tuple(_lanes()),
        movers=tuple(movers),
    )


def _bounds(xy: FloatArray) -> tuple[float, float, float, float]:
    """Around the cars, and no narrower than three fifths of the other side."""
    low, high = xy.min(axis=0) - _AROUND, xy.max(axis=0) + _AROUND
    middle, half = (low + high) / 2.0, (high - low) / 2.0
    half = np.maximum(half, 0.6 * half.max())
    (x0, y0), (x1, y1) = (middle - half).tolist(), (middle + half).tolist()
    return x0, y0, x1, y1


def _road(g: Geometry, several: bool) -> Any:
    if several:
        from apeval_paper.environments.intersection.multi import make_cars

        return make_cars(g, MULTI_CARS)
    from apeval_paper.environments.intersection.highway import make_scene

    return make_scene(g)[0]


def _drive(road: Any, g: Geometry, a_E: FloatArray) -> Iterator[list[list[float]]]:
    """Per frame and car: x, y, heading, speed, separation from the ego. highway-env's y points
    downwards."""
    from apeval_paper.environments.intersection.highway import rectangle_gap

    ego, *others = road.vehicles

    def state() -> list[list[float]]:
        return [
            [
                float(v.position[0]), -float(v.position[1]), -float(v.heading), float(v.speed),
                0.0 if v is ego else rectangle_gap(ego, v),
            ]
            for v in road.vehicles
        ]  # fmt: skip

    yield state()
    for a in a_E.tolist():
        for i, car in enumerate(others):
            car.a_E = a[i * g.d_E : (i + 1) * g.d_E]
        for _ in range(g.frames):
            road.act()
            road.step(g.dt)
            yield state()
            if ego.crashed:
                return


def _series(
    g: Geometry, time: FloatArray, frames: FloatArray, a_E: FloatArray, others: list[str]
) -> Iterator[Series]:
    for i, name in enumerate(others, start=1):
        yield measure(f"distance to the {name}", "m", time, frames[:, i, 4])
        yield measure(f"speed of the {name}", "m/s", time, frames[:, i, 3])
    at = g.frames * g.dt * np.arange(len(a_E), dtype=np.float64)
    meaning = ("push by distance ahead", "push by distance aside", "push by speed")
    for j, column in enumerate((a_E / g.std).T):
        whose = "" if len(others) == 1 else f", {others[j // g.d_E]}"
        yield held(f"{meaning[j % g.d_E]}{whose}", "σ", at, column)


def _lanes() -> Iterator[Shape]:
    """The surfaces of all lanes, and the line between the directions."""
    from apeval_paper.environments.intersection.highway import network

    graph = network().graph
    for start in graph:
        for end in graph[start]:
            for lane in graph[start][end]:
                n = 2 if type(lane).__name__ == "StraightLane" else 13
                along, side = np.linspace(0.0, lane.length, n), lane.width / 2.0
                left = [lane.position(s, -side) for s in along]
                right = [lane.position(s, side) for s in along[::-1]]
                yield Shape(np.array([*left, *right]) * (1.0, -1.0), "road")
    for x, y in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
        yield Shape(np.array([[11.0 * x, 11.0 * y], [111.0 * x, 111.0 * y]]), "line", closed=False)
