"""The grid with the agent and the flowing lava, move by move."""

from __future__ import annotations

import numpy as np

from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray
from apeval.results.drawing import RecordedEpisode
from apeval.results.shapes import Mover, Scene, Shape, held, rectangle

_ARROW = np.array([[0.35, 0.0], [-0.3, 0.3], [-0.15, 0.0], [-0.3, -0.3]])


def draw(problem: Problem, it: RecordedEpisode) -> Scene:
    """Cells have side 1; the last move is played once more, because an end has no cells."""
    from apeval_paper.environments.minigrid.rules import FORWARD, GOAL, GRID_SIZE, MOVES, STATES

    e = it.episodes
    cells = STATES[e.s[:, 0]]
    a_A, a_E = e.a_A[-1, 0], e.a_E[-1, 0]
    agent, direction, lava = (int(v) for v in cells[-1])
    after = int(MOVES[agent, 1 + direction]) if a_A == FORWARD else agent
    turned = (direction + (-1, 1, 0)[a_A]) % 4
    cells = np.vstack([cells, [after, turned, int(MOVES[lava, a_E])]])
    agent_pose = _pose(cells[:, 0], -0.5 * np.pi * cells[:, 1])
    lava_pose = _pose(cells[:, 2], np.zeros(len(cells)))
    size, F = GRID_SIZE, len(cells)
    wall = np.array([[0.0, 0.0], [size, 0.0], [size, -size], [0.0, -size]])
    floor = np.array([[1, -1], [size - 1, -1], [size - 1, 1 - size], [1, 1 - size]], np.float64)
    goal = rectangle(1.0, 1.0) + np.array([GOAL[0] + 0.5, -GOAL[1] - 0.5])
    return Scene(
        title=it.title,
        outcome=it.outcome,
        time=np.arange(F, dtype=np.float64),
        time_unit="decision",
        decision=np.minimum(np.arange(F) + 1, F - 1),
        series=(held("lava (0 stays, 1–4 flows)", "", np.arange(F - 1.0), e.a_E[:, 0]),),
        bounds=(0.0, -float(size), float(size), 0.0),
        unit="",
        static=(Shape(wall, "ground"), Shape(floor, "road"), Shape(goal, "goal")),
        movers=(
            Mover("lava", (Shape(rectangle(0.9, 0.9), "hazard"),), lava_pose),
            Mover("agent", (Shape(_ARROW, "agent"),), agent_pose),
        ),
    )


def _pose(cell: Array, heading: FloatArray) -> FloatArray:
    from apeval_paper.environments.minigrid.rules import SIDE

    x, y = cell % SIDE + 1.5, -(cell // SIDE) - 1.5
    return np.column_stack([x, y, heading]).astype(np.float64)
