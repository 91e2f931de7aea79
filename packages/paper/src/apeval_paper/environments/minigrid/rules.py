"""The rules of the MiniGrid problem on whole arrays, and the transition table they span.

`env.py` plays the same rules in MiniGrid itself; a test holds the two against each other.

A 7×7 grid has a wall around 5×5 cells; cell (x, y) counts from MiniGrid's upper left corner.
A state is (agent cell, agent direction, lava cell), with the agent neither on the goal nor on
the lava, and the lava not on the goal: 24 · 4 · 23 = 2,208 states. Directions are MiniGrid's:
0 right, 1 down, 2 left, 3 up.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from apeval.problem.tabular_model import SAFE_END, TabularModel, failure_code
from apeval.problem.types import Array, FloatArray, IntArray

GRID_SIZE: Final = 7
SIDE: Final = GRID_SIZE - 2  # cells between the walls, per axis
HORIZON: Final = 20  # T
OBSERVATION_SIZE: Final = 4 * SIDE + 4  # of the one-hot observation
KINDS: Final = ("lava", "stuck")
LAVA, STUCK = 1, 2  # the kinds' codes

LEFT, RIGHT, FORWARD = 0, 1, 2  # a_A, coded as in MiniGrid
AGENT_ACTIONS: Final = 3
STAY: Final = 0  # a_E: 0 stay, 1 + d one cell in direction d
NATURE_ACTIONS: Final = 5
STEPS: Final = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1))  # (dx, dy) of each a_E

AGENT_START: Final = (1, 3)
AGENT_START_DIRECTION: Final = 0
GOAL: Final = (5, 3)
#: Where the lava starts in the paper's s1, s2 and s3.
LAVA_STARTS: Final = {"s1": (4, 1), "s2": (5, 2), "s3": (4, 5)}


def cell(x: int, y: int) -> int:
    """The number of the cell (x, y), 1 ≤ x, y ≤ 5.

    >>> cell(1, 1), cell(5, 5)
    (0, 24)
    """
    return SIDE * (y - 1) + (x - 1)


def position(number: int) -> tuple[int, int]:
    """The (x, y) of a numbered cell."""
    return number % SIDE + 1, number // SIDE + 1


def _moves() -> Array:
    """The cell reached from each cell by each of `STEPS`; walls hold back."""
    x, y = np.arange(SIDE**2) % SIDE, np.arange(SIDE**2) // SIDE
    moved = [SIDE * np.clip(y + dy, 0, SIDE - 1) + np.clip(x + dx, 0, SIDE - 1) for dx, dy in STEPS]
    return np.stack(moved, axis=1)


GOAL_CELL: Final = cell(*GOAL)
MOVES: Final = _moves()


def _states() -> tuple[Array, Array]:
    agent, direction, lava = np.indices((SIDE**2, 4, SIDE**2)).reshape(3, -1)
    interior = (agent != GOAL_CELL) & (lava != GOAL_CELL) & (agent != lava)
    states = np.stack([agent, direction, lava], axis=1)[interior]
    index = np.full((SIDE**2, 4, SIDE**2), -1)
    index[tuple(states.T)] = np.arange(len(states))
    return states, index


#: (agent cell, direction, lava cell) of each state, shape (2208, 3), and the way back:
#: INDEX[agent, direction, lava] is the state's number, or −1 where it is none.
STATES, INDEX = _states()


def start_state(lava: tuple[int, int]) -> int:
    """The initial state with the lava at the given (x, y).

    >>> start_state((5, 2))
    929
    """
    return int(INDEX[cell(*AGENT_START), AGENT_START_DIRECTION, cell(*lava)])


def successors(states: Array, a_A: Array, a_E: Array) -> Array:
    """f_E on broadcastable arrays: the next state, `SAFE_END` on the goal, or the lava's code."""
    agent, direction, lava = np.moveaxis(STATES[states], -1, 0)
    turn = np.array([-1, 1, 0])[a_A]
    moved = np.where(a_A == FORWARD, MOVES[agent, 1 + direction], agent)
    turned = (direction + turn) % 4
    flowed = MOVES[lava, a_E]
    flowed = np.where(flowed == GOAL_CELL, lava, flowed)
    burnt = (moved == lava) | (moved == flowed)
    ends = np.where(moved == GOAL_CELL, SAFE_END, failure_code(LAVA))
    return np.where((moved == GOAL_CELL) | burnt, ends, INDEX[moved, turned, flowed])


def one_hot(states: Array) -> FloatArray:
    """What the network sees: x, y and direction of the agent, x and y of the lava, 24 columns."""
    agent, direction, lava = STATES[states].T
    parts = [(agent % SIDE, SIDE), (agent // SIDE, SIDE), (direction, 4)]
    parts += [(lava % SIDE, SIDE), (lava // SIDE, SIDE)]
    return np.concatenate([np.eye(k)[values] for values, k in parts], axis=1)


def nature(p_stay: float) -> FloatArray:
    """π_E,gt(a_E): the lava stays, or flows to each side with the same probability."""
    return np.array([p_stay] + 4 * [(1.0 - p_stay) / 4.0])


def model(greedy: IntArray, p_stay: float, lava: tuple[int, int]) -> TabularModel:
    """The tables under the deterministic policy a_A = greedy[s], started at the given lava."""
    S, A, E = len(STATES), AGENT_ACTIONS, NATURE_ACTIONS
    s, a_A, a_E = np.ogrid[:S, :A, :E]
    return TabularModel(
        agent=np.eye(A)[greedy],
        nominal=np.broadcast_to(nature(p_stay), (S, A, E)).copy(),
        successor=successors(s, a_A, a_E),
        start=start_state(lava),
        horizon=HORIZON,
        horizon_kind=STUCK,
        kinds=KINDS,
    )
