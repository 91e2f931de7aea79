"""Which slot of the dictionaries a state, or an agent action, belongs to."""

from __future__ import annotations

import numpy as np

from apeval.problem.problem import Problem
from apeval.problem.types import Array, IntArray

State = tuple[int, ...]
Action = tuple[int, ...]


def state_keys(s: Array, t: IntArray | None, slots: int) -> list[State]:
    """The slot of each of n states, with t appended where it is given.

    >>> state_keys(np.array([[-1.0, 0.99], [0.1, 1.0]]), None, slots=4)
    [(0, 3), (2, 3)]
    """
    cells = np.asarray(s)
    if cells.dtype.kind == "f":
        low = np.floor((cells + 1.0) * (0.5 * slots))
        cells = np.where(cells == 1.0, slots - 1, low)  # the range's last slot includes its end
    cells = cells.astype(np.int64)
    if t is not None:
        cells = np.column_stack([cells, t])
    return list(map(tuple, cells.tolist()))


def agent_keys(a_A: Array) -> list[Action]:
    """Discrete agent actions as they are. Continuous ones are left out: their policy is a
    function of the state."""
    if a_A.dtype.kind == "f":
        return [()] * len(a_A)
    return list(map(tuple, a_A.astype(np.int64).tolist()))


def no_slots(method: str, problem: Problem) -> str | None:
    """Why a problem's disturbance cannot be cut, or None where it can."""
    if problem.nominal.learnable:
        return None
    return f"{method} cannot cut a {type(problem.nominal).__name__} disturbance: use mc here"
