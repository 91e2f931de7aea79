"""One of K outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.laws.base import Disturbance, Law
from apeval.problem.laws.law_parameters import (
    Parameter,
    common_width,
    kept_parameter,
    numbers_of,
    parameter_rows,
)
from apeval.problem.types import Array, FloatArray


@dataclass(frozen=True)
class CategoricalLaw(Law):
    """K outcomes, coded 0 … K−1 in an integer column."""

    discrete = True
    probabilities: FloatArray

    def sample(self, u: FloatArray) -> Array:
        return pick(self.probabilities, u)

    def log_prob(self, a: Array) -> FloatArray:
        k = np.asarray(a).reshape(-1).astype(np.int64)
        p = np.broadcast_to(self.probabilities, (len(k), self.probabilities.shape[1]))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_p: FloatArray = np.log(p[np.arange(len(k)), k])
        return log_p

    def reaches_beyond(self, old: Law, dim: int) -> bool:
        """Whether an outcome that never came can come."""
        if not old.discrete:
            return super().reaches_beyond(old, dim)
        return bool(np.any((self.probabilities > 0.0) & (old.outcome_probabilities() <= 0.0)))


def pick(probabilities: FloatArray, u: FloatArray) -> Array:
    """The first outcome whose cumulated probability exceeds u, shape (n, 1).

    >>> pick(np.array([[0.2, 0.3, 0.5]]), np.array([[0.1], [0.2], [0.9]])).ravel().tolist()
    [0, 1, 2]
    """
    cumulated = np.cumsum(probabilities, axis=1)
    # dividing by the last entry keeps the last outcome reachable when the sum rounds below 1
    passed = u[:, :1] * cumulated[:, -1:] >= cumulated[:, :-1]
    return np.asarray(passed.sum(axis=1), np.int64)[:, None]


class Categorical(Disturbance):
    """One of K outcomes, coded 0 … K−1 in one integer column.

    Args:
        probabilities: K numbers ≥ 0 that sum to 1, or a function of (x, a_A) that returns (n, K).
        outcomes: The number of outcomes K, where `probabilities` is a function.

    Raises:
        ProblemError: The probabilities are none, or `outcomes` is missing.
    """

    dim = 1
    discrete = True
    learnable = True
    outcomes: int

    def __init__(self, probabilities: Parameter, outcomes: int | None = None):
        if callable(probabilities) and not outcomes:
            raise ProblemError("Categorical: say how many outcomes= the function gives")
        self.probabilities = kept_parameter(probabilities)
        self.outcomes = outcomes or common_width(probabilities)
        if not callable(probabilities):
            p = np.asarray(probabilities, dtype=np.float64)
            if not (np.all(p >= 0.0) and abs(float(p.sum()) - 1.0) <= 1e-9):
                raise ProblemError(
                    "Categorical: probabilities must be ≥ 0 and sum to 1; "
                    f"they sum to {float(p.sum()):.6g}. Divide them by their sum."
                )

    def given(self, x: Any, a_A: Any) -> CategoricalLaw:
        return CategoricalLaw(parameter_rows(self.probabilities, x, a_A, self.outcomes))

    def in_words(self) -> str:
        text = f"one of {self.outcomes} outcomes"
        if callable(self.probabilities):
            return text + " whose probabilities depend on the state"
        shares = ", ".join(f"{p:.3g}" for p in numbers_of(self.probabilities)[:12])
        return f"{text}, with probabilities {shares}"
