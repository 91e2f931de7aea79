"""The pendulum from the side."""

from __future__ import annotations

import numpy as np

from apeval.problem.problem import Problem
from apeval.results.drawing import RecordedEpisode
from apeval.results.shapes import AGENT_ACTION, Mover, Scene, Series, Shape, held, measure

_ROD = np.array([[0.0, 0.03], [0.97, 0.03], [0.97, -0.03], [0.0, -0.03]])
_CORNERS = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
_BOB = np.column_stack([1.0 + 0.09 * np.cos(_CORNERS), 0.09 * np.sin(_CORNERS)])


def draw(problem: Problem, it: RecordedEpisode) -> Scene:
    """θ is measured from upright, to the right."""
    from apeval_paper.environments.pendulum.dynamics import DT, LIMIT, OMEGA, THETA, VALUES

    e = it.episodes
    x = np.vstack([e.s, e.s_end])
    F = len(x)
    time = DT * np.arange(F, dtype=np.float64)
    at = time[:-1]
    pose = np.column_stack([np.zeros((F, 2)), np.pi / 2.0 - x[:, THETA]])
    edges = [
        Shape(np.array([[0.0, 0.0], [1.1 * side * np.sin(LIMIT), 1.1 * np.cos(LIMIT)]]),
              "hazard", closed=False)
        for side in (-1.0, 1.0)
    ]  # fmt: skip
    push = VALUES[e.a_E[:, 0]] if problem.nominal.discrete else e.a_E[:, 0]
    return Scene(
        title=it.title,
        outcome=it.outcome,
        time=time,
        time_unit="s",
        decision=np.minimum(np.arange(F) + 1, F - 1),
        series=(
            measure("angle from upright", "°", time, np.degrees(x[:, THETA])),
            measure("angular speed", "rad/s", time, x[:, OMEGA]),
            held("torque disturbance", "N·m", at, push),
            Series("controller's torque", "N·m", AGENT_ACTION, at, e.a_A[:, 0], held=True),
        ),
        bounds=(-1.3, -0.3, 1.3, 1.3),
        unit="",
        static=(*edges, Shape(np.array([[-1.2, 0.0], [1.2, 0.0]]), "line", closed=False)),
        movers=(Mover("pendulum", (Shape(_ROD, "agent"), Shape(_BOB, "agent")), pose),),
    )
