"""What v_ψ and π_E,θ are conditioned on: (s, a_A), scaled, with t where time is in the state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.problem.types import Array, FloatArray, IntArray

_LONGEST = 64  # decisions with a scale of their own


@dataclass(frozen=True)
class Context:
    """Maps rows of (s, a_A, t) to network inputs; fixed once built."""

    mean: FloatArray
    """(T, d_s): T decisions with a scale of their own, or one."""
    std: FloatArray
    horizon: int
    """What t is divided by; 0: t is not an input."""

    def state(self, s: Array, t: IntArray) -> FloatArray:
        """The input of v_ψ, (n, d_s [+ 1])."""
        k = np.minimum(t, len(self.mean) - 1)
        x: FloatArray = (np.asarray(s, np.float64) - self.mean[k]) / self.std[k]
        if not self.horizon:
            return x
        return np.column_stack([x, np.asarray(t, np.float64) / self.horizon])

    def __call__(self, s: Array, a_A: Array, t: IntArray) -> FloatArray:
        """C = [s, a_A], the input of π_E,θ, (n, d_C)."""
        return np.column_stack([self.state(s, t), np.asarray(a_A, np.float64)])


def plain(d_s: int, horizon: int) -> Context:
    """(s, a_A) as they are: the paper's states lie in [−1, 1]."""
    return Context(np.zeros((1, d_s)), np.ones((1, d_s)), horizon)


def fitted(s: Array, t: IntArray, horizon: int) -> Context:
    """Scaled by the states of a first batch; with a horizon, t is an input.

    Each decision has its own mean and standard deviation: states differ far more between
    decisions than within one, and what the adversary can react to is the difference within.
    """
    T, s = min(max(horizon, 1), _LONGEST), np.asarray(s, np.float64)
    mean, std = np.tile(s.mean(axis=0), (T, 1)), np.tile(s.std(axis=0), (T, 1))
    for k in range(T):
        mine = s[np.minimum(t, T - 1) == k]
        if len(mine) > 1:
            mean[k], std[k] = mine.mean(axis=0), mine.std(axis=0)
    flat = std <= 1e-9 * (1.0 + np.abs(mean))
    return Context(mean, np.where(flat, 1.0, std), horizon)
