"""The flight from the side: altitude over time, with the band that must not be left."""

from __future__ import annotations

import numpy as np

from apeval.problem.correlated import Ar1
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray
from apeval.results.drawing import RecordedEpisode
from apeval.results.shapes import AGENT_ACTION, Mover, Scene, Series, Shape, held, measure
from apeval_public.simulators.cessna import HOLD, STEP, Cessna
from apeval_public.simulators.jsbsim_altitude import (
    BAND,
    CORRELATION,
    SECONDS,
    autopilot,
    intensity,
    left_band,
)

_WIDTH = 520.0  # of the picture for 40 s, in feet of altitude
_EDGE = 45.0
_SIDE = np.array([
    [-24.0, 4.0], [-22.0, 14.0], [-17.0, 14.0], [-12.0, 5.0], [2.0, 8.0], [9.0, 5.0], [19.0, 2.0],
    [20.0, -3.0], [16.0, -5.0], [-6.0, -5.0], [-24.0, 1.0],
])  # fmt: skip
_WING = np.array([[-6.0, 10.0], [6.0, 11.0], [6.0, 9.0], [-6.0, 8.0]])


def draw(problem: Problem, it: RecordedEpisode) -> Scene:
    """The aircraft, larger than it is, on the path that it flies; time runs to the right."""
    a_E = np.asarray(it.record.a_E, np.float64).reshape(-1, 3)
    seen, actions, gusts = _fly(a_E)
    time = STEP * np.arange(len(seen), dtype=np.float64)
    x, height = _WIDTH * time / SECONDS, seen[:, 0]
    knots = HOLD * STEP * np.arange(len(a_E), dtype=np.float64)
    edges = [
        Shape(np.array([[0.0, y], [_WIDTH, y]]), role, closed=False)
        for y, role in ((-BAND, "hazard"), (0.0, "goal"), (BAND, "hazard"))
    ]
    sigma = a_E / intensity(float(problem.parameters["wind"]))
    return Scene(
        title=it.title,
        outcome=it.outcome,
        time=time,
        time_unit="s",
        decision=np.clip((np.arange(len(seen)) - 1) // HOLD + 1, 1, len(a_E)),
        series=(
            measure("altitude from 1,000 ft", "ft", time, height),
            measure("downward gust", "ft/s", time, gusts[:, 2]),
            measure("pitch", "°", time, seen[:, 2]),
            Series("elevator from trim", "", AGENT_ACTION, time[:-1], actions[:, 0]),
            held("innovation downwards", "σ", knots, sigma[:, 2]),  # a report shows the first six
            held("innovation along", "σ", knots, sigma[:, 0]),
            held("innovation across", "σ", knots, sigma[:, 1]),
        ),
        bounds=(-_EDGE, -BAND - _EDGE, _WIDTH + _EDGE, BAND + _EDGE),
        unit="",
        static=(*edges, Shape(np.column_stack([x, height]), "line", closed=False)),
        movers=(
            Mover(
                "aircraft",
                (Shape(_SIDE, "agent"), Shape(_WING, "agent")),
                np.column_stack([x, height, np.radians(seen[:, 2])]),
            ),
        ),
    )


def _fly(a_E: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Observations, the autopilot's actions and gusts of the recorded episode, step by step."""
    env, memory, gust = Cessna(), Ar1(CORRELATION), None
    obs, _ = env.reset()
    seen, actions, gusts = [obs], [], [env.gust]
    for e in a_E:
        gust = memory.next(e, gust, np.zeros(3))
        for _ in range(HOLD):
            action = autopilot(obs)
            env.blow(gust)
            obs = env.step(action)[0]
            seen.append(obs)
            actions.append(action)
            gusts.append(env.gust)
            if left_band(obs):
                break
    return np.array(seen), np.array(actions), np.array(gusts)
