"""An episode's record, and the same episode again from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.problem.laws import Law
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray
from apeval.simulate.adversary import Adversary, Situation, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.rollout import rollout


@dataclass(frozen=True)
class Record:
    """All that an episode needs to happen again: its streams' address and nature's actions."""

    key: tuple[int, int]
    id: int
    a_0: list[float]
    a_E: list[list[float]]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"key": list(self.key), "id": self.id, "a_0": self.a_0, "a_E": self.a_E}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Record:
        """The inverse of `as_json`."""
        k0, k1 = data["key"]
        return Record((int(k0), int(k1)), int(data["id"]), list(data["a_0"]), list(data["a_E"]))


class Script(Adversary):
    """Nature that plays recorded actions."""

    def __init__(self, a_0: Array, a_E: Array) -> None:
        self.a_0, self.a_E = a_0, a_E

    def sample(self, now: Situation, u: FloatArray) -> Array:
        return self.a_E[now.t]

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        return np.zeros(len(a_E))

    def sample_initial(self, law: Law, u: FloatArray) -> Array:
        return self.a_0[None, :]


def record(episodes: Episodes, i: int, key: Array) -> Record:
    """The record of the i-th episode of a batch."""
    rows = episodes.rows_of(i)
    return Record(
        (int(key[0]), int(key[1])),
        int(episodes.ids[i]),
        episodes.a_0[i].tolist(),
        episodes.a_E[rows].tolist(),
    )


def script(problem: Problem, it: Record) -> Script:
    """Nature that plays the recorded actions."""
    dtype = np.int64 if problem.nominal.discrete else np.float64
    initial = np.int64 if problem.initial is not None and problem.initial.discrete else np.float64
    try:
        return Script(np.asarray(it.a_0, initial), np.asarray(it.a_E, dtype))
    except (TypeError, ValueError, OverflowError):
        raise ApevalError(
            f"the record of episode {it.id} is damaged: its actions are no numbers"
        ) from None


def replay(problem: Problem, it: Record | Mapping[str, Any]) -> Episodes:
    """A recorded episode again, alone.

    Args:
        problem: The problem that it was recorded in.
        it: The record: one of a result's `records`, which may be plain data.

    Returns:
        The one episode, with every decision.

    Raises:
        ApevalError: The record is damaged.
    """
    it = it if isinstance(it, Record) else Record.from_json(it)
    ids, key = np.array([it.id]), np.array(it.key, np.uint64)
    decisions = len(it.a_E) + (0 if problem.initial is None else 1)
    position = np.zeros(1, np.int64)
    return rollout(problem, only(script(problem, it)), key, ids, position, decisions)
