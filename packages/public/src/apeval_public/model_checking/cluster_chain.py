"""The workstation cluster: its events, and the exact probability of insufficient service."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from apeval.problem.types import Array, FloatArray, IntArray
from apeval_public.model_checking.uniformisation import transient

LEFT, RIGHT, TO_LEFT, TO_RIGHT, LINE, REPAIRED = 0, 1, 2, 3, 4, 5
"""How many work in each part; and which part is under repair, NONE for none."""
NONE = 5
STATION_FAILS, SWITCH_FAILS, LINE_FAILS = 1 / 500, 1 / 4000, 1 / 5000
INSPECTION = 10.0
REPAIR = np.array([2.0, 2.0, 0.25, 0.25, 0.125])


def rates(x: Array, n: int) -> FloatArray:
    """The rate of every event: failures of the five parts, then the start of an inspection and the
    end of the repair of each.

    Args:
        x: States, shape (m, 6 or more).
        n: Workstations of a sub-cluster.

    Returns:
        Shape (m, 15).
    """
    works, repaired = x[:, :NONE], x[:, REPAIRED][:, None]
    fails = works * np.array([STATION_FAILS, STATION_FAILS, SWITCH_FAILS, SWITCH_FAILS, LINE_FAILS])
    broken = works < np.array([n, n, 1, 1, 1])
    inspected = np.where(broken & (repaired == NONE), INSPECTION, 0.0)
    mended = np.where(repaired == np.arange(NONE), REPAIR, 0.0)
    return np.concatenate([fails, inspected, mended], axis=1)


def happen(x: Array, event: Array) -> Array:
    """The states after an event each.

    Args:
        x: States, shape (m, 6 or more).
        event: Which of the 15, shape (m,).

    Returns:
        New states of the same shape.
    """
    x, rows, part, what = x.copy(), np.arange(len(x)), event % NONE, event // NONE
    x[rows, part] += np.where(what == 0, -1, np.where(what == 2, 1, 0)).astype(x.dtype)
    x[:, REPAIRED] = np.where(what == 1, part, np.where(what == 2, NONE, x[:, REPAIRED]))
    return x


def shortfall(x: Array, n: int) -> FloatArray:
    """How many workstations the service has above what it needs; negative: insufficient.

    Args:
        x: States, shape (m, 6 or more).
        n: Workstations of a sub-cluster.

    Returns:
        Shape (m,).
    """
    left, right = x[:, LEFT] * x[:, TO_LEFT], x[:, RIGHT] * x[:, TO_RIGHT]
    joined = (left + right) * x[:, LINE] * x[:, TO_LEFT] * x[:, TO_RIGHT]
    best: FloatArray = np.maximum(np.maximum(left, right), joined) - np.floor(0.75 * n)
    return best


def insufficient_service(n: int, t: float) -> float:
    """The probability of insufficient service at a time.

    Args:
        n: Workstations of a sub-cluster.
        t: The time, in hours.

    Returns:
        The probability.
    """
    x, p = distribution(n, t)
    return float(p[shortfall(x, n) < 0.0].sum())


def distribution(n: int, t: float) -> tuple[IntArray, FloatArray]:
    """Where the chain is at a time.

    Args:
        n: Workstations of a sub-cluster.
        t: The time, in hours.

    Returns:
        All states, shape (m, 6), and their probabilities, shape (m,).
    """
    start = np.array([[n, n, 1, 1, 1, NONE]])
    index, states, new = {start[0].tobytes(): 0}, [start], start
    rows, columns, speeds = [], [], []
    while len(new):
        speed, fresh = rates(new, n), []
        here = [index[row.tobytes()] for row in new]
        for k, event in zip(*np.nonzero(speed), strict=True):
            after = happen(new[k : k + 1], np.array([event]))
            key = after[0].tobytes()
            if key not in index:
                index[key] = len(index)
                fresh.append(after)
            rows.append(here[k])
            columns.append(index[key])
            speeds.append(float(speed[k, event]))
        new = np.concatenate(fresh) if fresh else new[:0]
        states.append(new)
    x = np.concatenate(states)
    chain = csr_array((speeds, (rows, columns)), shape=(len(x), len(x)))
    return x, transient(chain, 0, t)
