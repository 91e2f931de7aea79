"""The street from above: the ego behind SUMO's drivers, before a red light."""

from __future__ import annotations

import numpy as np

from apeval.problem.correlated import Ar1
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray
from apeval.results.drawing import RecordedEpisode
from apeval.results.shapes import (
    Mover,
    Scene,
    Shape,
    held,
    measure,
    rectangle,
)
from apeval_public.simulators.city_traffic import DRIVERS, LENGTH, LIGHT, STEP, CityTraffic
from apeval_public.simulators.sumo_follower import CORRELATION, HOLD, cruise_control, failure

_WIDTH, _LANE, _AROUND = 1.8, 1.6, 20.0


def draw(problem: Problem, it: RecordedEpisode) -> Scene:
    """Cars as rectangles, the ego last."""
    a_E = np.asarray(it.record.a_E, np.float64).reshape(-1, len(DRIVERS))
    places, seen, actions, errors = _drive(a_E)
    time = STEP * np.arange(len(seen), dtype=np.float64)
    at = HOLD * STEP * np.arange(len(a_E), dtype=np.float64)
    body = rectangle(LENGTH, _WIDTH)
    names = ("ego", *(f"driver {k}" for k in range(len(DRIVERS), 0, -1)))
    movers = [
        Mover(
            name,
            (Shape(body, "agent" if name == "ego" else "adversary"),),
            np.column_stack([x - LENGTH / 2.0, np.zeros((len(x), 2))]),
        )
        for name, x in zip(names, places.T, strict=True)
    ]
    start, end = float(places.min()) - LENGTH, float(max(LIGHT, places.max())) + LENGTH
    kerbs = [Shape(np.array([[start, y], [end, y]]), "line", closed=False) for y in (-_LANE, _LANE)]
    red = Shape(np.array([[LIGHT, -_LANE], [LIGHT, _LANE]]), "hazard", closed=False)
    return Scene(
        title=it.title,
        outcome=it.outcome,
        time=time,
        time_unit="s",
        decision=np.clip((np.arange(len(seen)) - 1) // HOLD + 1, 1, len(a_E)),
        series=(
            measure("gap", "m", time, seen[:, 0]),
            measure("acceleration asked for", "m/s²", time[:-1], actions),
            measure("speed", "m/s", time, seen[:, 1]),
            measure("speed of the car ahead", "m/s", time, seen[:, 4]),
            *(held(f"error of driver {k}", "", at, errors[:, k - 1]) for k in (4, 3, 2, 1)),
        ),
        bounds=(start, -_AROUND, end, _AROUND),
        static=(*kerbs, red),
        movers=tuple(movers),
    )


def _drive(a_E: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The recorded episode step by step: places, observations, what the ego asks for; and the
    drivers' errors, decision by decision."""
    env, memory, error = CityTraffic(), Ar1(CORRELATION), None
    obs, _ = env.reset()
    places, seen, actions, errors = [env.places()[0]], [obs], [], []
    for e in a_E:
        error = memory.next(e, error, np.zeros(len(DRIVERS)))
        errors.append(error)
        for _ in range(HOLD):
            action = cruise_control(obs)
            env.misjudge(error)
            obs = env.step(action)[0]
            places.append(env.places()[0])
            seen.append(obs)
            actions.append(float(action[0]))
            if failure(obs, action):
                break
    return np.array(places), np.array(seen), np.array(actions), np.array(errors)
