"""Exact failure probabilities and the zero-variance adversary of tabular problems.

Without a horizon, v* solves the Bellman equation (Eq. rare_prob_definition), a sparse linear
system; with one, v*(s, t) follows by backward recursion over the decisions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from apeval.problem.tabular_model import SAFE_END, TabularModel
from apeval.problem.truth import Truth
from apeval.problem.types import BoolArray, FloatArray


def exact_values(model: TabularModel) -> FloatArray:
    """v*: shape (S,) without a horizon, (T + 1, S) with one (row t: t decisions made)."""
    if model.horizon is None:
        return _stationary_values(model)
    S = model.shape[0]
    v = np.zeros((model.horizon + 1, S))
    v[model.horizon] = 1.0 if model.horizon_kind else 0.0
    for t in range(model.horizon - 1, -1, -1):
        v[t] = (_pair_weights(model) * _r_plus_v(model, v[t + 1])).sum(axis=(1, 2))
    return v


def exact_adversary(model: TabularModel, v: FloatArray | None = None) -> FloatArray:
    """π_E*(a_E | s, a_A) ∝ π_E,gt · (r + v*(s')), shape (S, A, E), or (T, S, A, E) with a
    horizon. Where no failure can follow, π_E* is π_E,gt."""
    v = exact_values(model) if v is None else v
    if model.horizon is None:
        return _tilt(model, v)
    return np.stack([_tilt(model, v[t + 1]) for t in range(model.horizon)])


def exact_by_kind(model: TabularModel) -> dict[str, float]:
    """v*(s0) split by the kind of failure."""
    shares = {}
    for kind, name in enumerate(model.kinds, start=1):
        fails = model.successor < SAFE_END
        only = np.where(fails & (model.successor != SAFE_END - kind), SAFE_END, model.successor)
        part = TabularModel(
            agent=model.agent,
            nominal=model.nominal,
            successor=only,
            start=model.start,
            horizon=model.horizon,
            horizon_kind=model.horizon_kind if model.horizon_kind == kind else 0,
            kinds=model.kinds,
        )
        shares[name] = start_value(part, exact_values(part))
    return shares


def start_value(model: TabularModel, v: FloatArray) -> float:
    """v*(s0)."""
    return float(v[model.start] if model.horizon is None else v[0, model.start])


def exact_truth(model: TabularModel) -> Truth:
    """v*(s0) as a `Truth`."""
    how = "sparse linear system" if model.horizon is None else "backward recursion"
    value = start_value(model, exact_values(model))
    return Truth(value, 0.0, f"exact ({how} over {model.shape[0]:,} states)")


def _pair_weights(model: TabularModel) -> FloatArray:
    weights: FloatArray = model.agent[:, :, None] * model.nominal
    return weights


def _r_plus_v(model: TabularModel, v: FloatArray) -> FloatArray:
    """r(s, s') + v(s') for every (s, a_A, a_E)."""
    inside = model.successor >= 0
    r = (model.successor < SAFE_END).astype(np.float64)
    total: FloatArray = r + np.where(inside, v[np.maximum(model.successor, 0)], 0.0)
    return total


def _tilt(model: TabularModel, v_next: FloatArray) -> FloatArray:
    weights = model.nominal * _r_plus_v(model, v_next)
    mass = weights.sum(axis=2, keepdims=True)
    tilted: FloatArray = np.where(
        mass > 0.0, weights / np.where(mass > 0.0, mass, 1.0), model.nominal
    )
    return tilted


def _stationary_values(model: TabularModel) -> FloatArray:
    from scipy.sparse import coo_array, eye_array
    from scipy.sparse.linalg import spsolve

    S, A, E = model.shape
    weights = _pair_weights(model)
    inside = model.successor >= 0
    rows = np.broadcast_to(np.arange(S)[:, None, None], (S, A, E))[inside]
    P: Any = coo_array((weights[inside], (rows, model.successor[inside])), shape=(S, S)).tocsr()
    r = (weights * (model.successor < SAFE_END)).sum(axis=(1, 2))
    # v* is the smallest solution: 0 where no end can be reached, which would be singular
    leaves = _can_end(P, (weights * (model.successor < 0)).sum(axis=(1, 2)) > 0.0)
    v: FloatArray = np.zeros(S)
    if leaves.any():
        inner = P[leaves][:, leaves]
        A = (eye_array(int(leaves.sum()), format="csc") - inner).tocsc()
        v[leaves] = np.atleast_1d(np.asarray(spsolve(A, np.asarray(r[leaves]))))
    return v


def _can_end(P: Any, ends: BoolArray) -> BoolArray:
    """States from which an end can be reached, through transitions of positive probability."""
    while True:
        grown = np.asarray(ends | (P @ ends.astype(np.float64) > 0.0))
        if np.array_equal(grown, ends):
            return grown
        ends = grown
