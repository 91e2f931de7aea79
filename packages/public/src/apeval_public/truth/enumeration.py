"""The exact failure probability of a small discrete problem, from its own `step`.

All states that can be reached are found by trying every outcome in every state, and the linear
equations of their failure probabilities are solved. So a closed form is checked against the
simulator itself, not against another formula.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import spsolve

from apeval.problem.draws import Draws, make_key
from apeval.problem.problem import Problem
from apeval.problem.truth import Truth
from apeval.problem.types import Array, FloatArray, IntArray

_AGREEMENT = 1e-9
_MOST = 2_000_000
_FAILED, _SAFE = -1, -2


def failure_probability(problem: Problem) -> float:
    """Solve for the failure probability.

    Args:
        problem: A problem with outcomes instead of a density, an array as its state, a fixed
            start, no agent, no randomness of its own, and no horizon that an episode can reach.

    Returns:
        v*(s0), exact to rounding.
    """
    start = np.asarray(problem.reset(_draws(1)))
    index = {start[0].tobytes(): 0}
    waiting, rows, columns, chances = [start], [], [], []
    fails = np.zeros(1)
    while waiting:
        x = waiting.pop()
        p, target, new = _successors(problem, x, index)
        here = np.repeat([index[row.tobytes()] for row in x], p.shape[1])
        fails = np.concatenate([fails, np.zeros(len(index) - len(fails))])
        np.add.at(fails, here, np.where(target == _FAILED, p.ravel(), 0.0))
        stays = target >= 0
        rows.append(here[stays])
        columns.append(target[stays])
        chances.append(p.ravel()[stays])
        if len(new):
            waiting.append(new)
        if len(index) > _MOST:
            raise ValueError(f"more than {_MOST:,} states")
    n = len(index)
    fails = np.concatenate([fails, np.zeros(n - len(fails))])
    places = (np.concatenate(rows), np.concatenate(columns))
    P = csr_array((np.concatenate(chances), places), shape=(n, n))
    return float(spsolve((eye_array(n) - P).tocsc(), fails)[0])


def _successors(
    problem: Problem, x: Array, index: dict[bytes, int]
) -> tuple[FloatArray, IntArray, Array]:
    """Every outcome's probability, (n, K), what it leads to, (n·K,), and states met first."""
    a_A = np.zeros((len(x), 0))
    p = np.asarray(problem.law(x, a_A).outcome_probabilities())
    p = np.broadcast_to(p, (len(x), p.shape[1]))
    K = p.shape[1]
    x_rep = np.repeat(x, K, axis=0)
    a_E = np.tile(np.arange(K), len(x))[:, None]
    after = np.asarray(problem.step(x_rep, np.zeros((len(x_rep), 0)), a_E, _draws(len(x_rep))))
    failed = np.asarray(problem.failed(after)) > 0
    done = np.zeros(len(after), bool)
    if problem.done is not None:
        done = np.asarray(problem.done(after)).astype(bool)
    target = np.where(failed, _FAILED, _SAFE)
    new = []
    for k in np.flatnonzero(~failed & ~done & (p.ravel() > 0.0)):
        key = after[k].tobytes()
        if key not in index:
            index[key] = len(index)
            new.append(after[k])
        target[k] = index[key]
    return p, target, np.array(new, x.dtype).reshape(-1, x.shape[1])


def _draws(n: int) -> Draws:
    return Draws(make_key(0), np.arange(n), 0)


def agreement(problem: Problem, stated: Truth) -> Mapping[str, Any]:
    """A problem's `verify`: the stated truth against the one of its own states.

    Args:
        problem: The problem.
        stated: Its truth.

    Returns:
        ``agrees`` where both are the same to a part in a thousand million, or to three of the
        stated standard errors where that is more.
    """
    value = failure_probability(problem)
    allowed = max(_AGREEMENT * stated.value, 3.0 * stated.standard_error)
    return {
        "problem": problem.name,
        "stated": stated.value,
        "method": "linear equations over all reachable states",
        "value": value,
        "relative_difference": value / stated.value - 1.0,
        "agrees": bool(abs(value - stated.value) <= allowed),
    }
