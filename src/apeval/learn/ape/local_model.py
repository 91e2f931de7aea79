"""How a state answers to disturbances: x' = x + φ(x) A + Σ_k z_k [1, x] B_k, in scaled states.

Learned from every decision alike, failing or not, whatever its weight: what a disturbance moves
does not depend on how rare a failure is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.problem.types import FloatArray, IntArray

WAVES = 40
"""Random features beside a quadratic form."""
_LENGTH = 0.7  # scaled states over which a function of one component changes
_SEED = 1  # the frequencies are part of the method, not of a run
_FARTHEST = 5.0  # scaled states
_ROWS = 20_000  # decisions that a model is fitted to, at the most about,
_NUMBERS = 20_000_000  # and numbers of its design, so that memory is bounded with many channels
_REMEMBERED = 200_000  # states whose answers are kept
_RIDGE = 1e-6


@cache
def frequencies(f: int) -> tuple[FloatArray, FloatArray]:
    """Of the waves over f components, (f, WAVES), and their phases."""
    rng = np.random.default_rng(_SEED)
    frequency = rng.standard_normal((f, WAVES)) / (_LENGTH * np.sqrt(f))
    return frequency, rng.uniform(0.0, 2.0 * np.pi, WAVES)


def pairs(f: int) -> tuple[IntArray, IntArray]:
    """The components of each product, the upper triangle row by row."""
    return np.triu_indices(f)


Answers = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class LocalModel:
    """x' = x + φ(x) A + Σ_k z_k [1, x] B_k, in scaled states."""

    A: FloatArray
    B: FloatArray
    """(d, 1 + f, f)."""
    _last: list[tuple[FloatArray, Answers]] = field(default_factory=list, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_last": []}  # states do not travel with a proposal

    def answers(self, x: FloatArray) -> Answers:
        """`ahead`, and the sines of its waves, (n, WAVES); remembered, because every fit asks for
        the same states. Arrays of states must not change."""
        for known, found in tuple(self._last):
            if known is x:
                return found
        ahead = self.ahead(x)
        frequency, phase = frequencies(x.shape[1])
        found = ahead, np.sin(ahead @ frequency + phase)
        self._last[:] = [(x, found)] if len(x) <= _REMEMBERED else []
        return found

    def ahead(self, x: FloatArray) -> FloatArray:
        """The next state without disturbance, (n, f)."""
        drift: FloatArray = x + _basis(x) @ self.A
        return np.clip(drift, -_FARTHEST, _FARTHEST)

    def moved(self, x: FloatArray) -> FloatArray:
        """J: what each disturbance moves, (n, d, f)."""
        found: FloatArray = np.tensordot(_with_one(x), self.B, axes=(1, 1))
        return found

    def along(self, x: FloatArray, slope: FloatArray) -> FloatArray:
        """Jᵀ slope, (n, d), without J."""
        d, width, f = self.B.shape
        through = (slope @ self.B.reshape(d * width, f).T).reshape(len(x), d, width)
        found: FloatArray = (through @ _with_one(x)[:, :, None])[:, :, 0]
        return found


def _with_one(x: FloatArray) -> FloatArray:
    return np.column_stack([np.ones(len(x)), x])


def _basis(x: FloatArray) -> FloatArray:
    """[1, x, x xᵀ, waves]."""
    i, j = pairs(x.shape[1])
    frequency, phase = frequencies(x.shape[1])
    return np.concatenate(
        [np.ones((len(x), 1)), x, x[:, i] * x[:, j], np.cos(x @ frequency + phase)], axis=1
    )


def fit_model(rows: DecisionRows) -> LocalModel | None:
    """From all decisions that another one of the same episode follows."""
    now = np.flatnonzero(rows.episode[1:] == rows.episode[:-1])
    f, d = rows.x.shape[1], rows.e.shape[1]
    width = 1 + f + f * (f + 1) // 2 + WAVES
    columns = width + d * (1 + f)
    if f == 0 or len(now) < 2 * columns:
        return None
    most = min(_ROWS, _NUMBERS // columns)
    if len(now) > most:  # at random: equal distances could always meet the same moment
        now = np.sort(np.random.default_rng(_SEED).choice(now, most, replace=False))
    if len(now) < 2 * columns:
        return None
    x, z = rows.x[now], rows.e[now]
    pushed = (z[:, :, None] * _with_one(x)[:, None, :]).reshape(len(x), -1)
    R = np.concatenate([_basis(x), pushed], axis=1)
    G = R.T @ R
    G.flat[:: len(G) + 1] += _RIDGE * len(R)
    found = np.linalg.solve(G, R.T @ (rows.x[now + 1] - x))
    return LocalModel(found[:width], found[width:].reshape(d, 1 + f, f))
