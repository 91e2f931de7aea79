"""Transition tables of a small problem, and the problem that they define."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.types import FloatArray, IntArray

#: Codes in `TabularModel.successor` below 0: a safe end, then the failure kinds 1, 2, …
SAFE_END = -1


def failure_code(kind: int) -> int:
    """The successor code of failure kind 1, 2, …

    >>> failure_code(1)
    -2
    """
    return SAFE_END - kind


@dataclass(frozen=True)
class TabularModel:
    """f_E, π_A and π_E,gt as arrays over S interior states, A agent actions, E actions of nature.

    Raises:
        ProblemError: An array has another shape or type, probabilities do not sum to 1, or a
            successor is neither a state nor an end.
    """

    agent: FloatArray
    """π_A(a_A | s), shape (S, A)."""
    nominal: FloatArray
    """π_E,gt(a_E | s, a_A), shape (S, A, E)."""
    successor: IntArray
    """f_E(s, a_A, a_E), shape (S, A, E): a state ≥ 0, −1 for a safe end, −1 − k for a failure of
    kind k."""
    start: int
    """The initial state s0."""
    horizon: int | None = None
    """Decisions per episode at the most; None: until an end is reached."""
    horizon_kind: int = 0
    """The failure kind of reaching the horizon (0: no failure)."""
    kinds: tuple[str, ...] = ("failure",)
    """Names of the failure kinds; kind k has the successor code −1 − k."""
    cap: int = 100_000
    """With no horizon: an episode of this length counts as unresolved."""

    def __post_init__(self) -> None:
        for name, axes, kinds in (
            ("agent", 2, "iuf"),
            ("nominal", 3, "iuf"),
            ("successor", 3, "iu"),
        ):
            values: Any = getattr(self, name)
            kind = values.dtype.kind if isinstance(values, np.ndarray) else ""
            if kind not in kinds or not kind or values.ndim != axes:
                numbers = "whole numbers" if kinds == "iu" else "numbers"
                raise ProblemError(f"{name} must be a NumPy array of {numbers} with {axes} axes")
        S, A, E = self.nominal.shape
        if self.agent.shape != (S, A) or self.successor.shape != (S, A, E):
            raise ProblemError(
                f"tables disagree: agent {self.agent.shape}, nominal {self.nominal.shape}, "
                f"successor {self.successor.shape}; expected (S, A), (S, A, E), (S, A, E)"
            )
        for name, p in (("agent", self.agent), ("nominal", self.nominal)):
            if np.any(p < 0.0) or not np.allclose(p.sum(axis=-1), 1.0, atol=1e-9):
                raise ProblemError(f"{name} probabilities must be ≥ 0 and sum to 1 in every row")
        if not isinstance(self.start, int | np.integer) or not 0 <= self.start < S:
            raise ProblemError(f"start {self.start} is not one of the {S} states")
        if self.successor.max() >= S or self.successor.min() < failure_code(len(self.kinds)):
            raise ProblemError("successor holds a code that is neither a state nor an end")

    @property
    def shape(self) -> tuple[int, int, int]:
        """The sizes (S, A, E)."""
        S, A, E = self.nominal.shape
        return S, A, E
