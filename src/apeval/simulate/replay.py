"""An episode's record, and the same episode again from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.problem.laws import Disturbance, Law
from apeval.problem.lineage import Lineage
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
    lineage: tuple[tuple[int, int], ...] = ()
    """(episode, from decision): whose random numbers it draws with, where it branched off others;
    empty where they are its own."""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        data = {"key": list(self.key), "id": self.id, "a_0": self.a_0, "a_E": self.a_E}
        return data if not self.lineage else {**data, "lineage": [list(p) for p in self.lineage]}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Record:
        """The inverse of `as_json`.

        Args:
            data: What `as_json` gave.

        Returns:
            The record.

        Raises:
            ApevalError: A part is missing, or of another kind than `as_json` gives.
        """
        parts: list[Any] = [data.get(name) for name in ("key", "id", "a_0", "a_E")]
        key, number, a_0, a_E = parts
        if not isinstance(key, list | tuple) or len(key) != 2 or not all(map(_is_word, key)):
            raise ApevalError("a replay record is damaged: its key is not two 32-bit numbers")
        if not _is_whole(number) or not 0 <= number < 2**53:
            raise ApevalError("a replay record is damaged: it names no episode")
        for name, value, ndim in (("a_0", a_0, 1), ("a_E", a_E, 2)):
            if not isinstance(value, list | tuple) or not _are_numbers(value, ndim):
                raise ApevalError(
                    f"a replay record is damaged: in {name} its actions are no numbers"
                )
        lineage = _lineage(data.get("lineage", ()))
        return Record((int(key[0]), int(key[1])), int(number), list(a_0), list(a_E), lineage)

    @property
    def root(self) -> int:
        """The episode whose random numbers the reset draws with."""
        return self.lineage[0][0] if self.lineage else self.id

    @property
    def drawn_with(self) -> Lineage | None:
        """The lineage; None where the episode's random numbers are its own."""
        return Lineage.of([self.lineage]) if self.lineage else None


def _lineage(data: Any) -> tuple[tuple[int, int], ...]:
    """Pairs (episode, from decision), the first from decision 0 and then later ones."""
    damaged = ApevalError("a replay record is damaged: its lineage is none")
    if not isinstance(data, list | tuple):
        raise damaged
    last = -1
    for k, pair in enumerate(data):
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(map(_is_whole, pair)):
            raise damaged
        number, since = pair
        if not 0 <= number < 2**53 or not last < since < 2**53 or (k == 0 and since != 0):
            raise damaged
        last = since
    return tuple((int(number), int(since)) for number, since in data)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_word(value: Any) -> bool:
    return _is_whole(value) and 0 <= value < 2**32


def _are_numbers(values: Any, ndim: int) -> bool:
    """Whether a list holds numbers (ndim 1) or rows of equally many (ndim 2)."""
    try:
        array = np.array(values)
    except ValueError:  # rows of different lengths
        return False
    if array.size == 0:
        return array.ndim <= ndim
    return array.ndim == ndim and array.dtype.kind in "iuf"


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
    """The record of the i-th episode of a batch.

    Args:
        episodes: A batch.
        i: Which of them.
        key: Of the run's random numbers, (2,).

    Returns:
        What `replay` needs to play it again.
    """
    rows = episodes.rows_of(i)
    return Record(
        (int(key[0]), int(key[1])),
        int(episodes.ids[i]),
        episodes.a_0[i].tolist(),
        episodes.a_E[rows].tolist(),
        episodes.pairs(i),
    )


def script(problem: Problem, it: Record) -> Script:
    """Nature that plays the recorded actions.

    Args:
        problem: The problem of the run.
        it: The record.

    Returns:
        An adversary without randomness.
    """
    return Script(
        _actions(problem.initial, it.a_0, 1, f"the start of episode {it.id}"),
        _actions(problem.nominal, it.a_E, 2, f"the decisions of episode {it.id}"),
    )


def _actions(nominal: Disturbance | None, values: Any, ndim: int, what: str) -> Array:
    """Recorded actions as the disturbance has them; refused where it cannot have drawn them."""
    discrete = nominal is not None and nominal.discrete
    try:
        given = np.asarray(values, np.float64)
        actions: Array = given.astype(np.int64) if discrete else given
    except (TypeError, ValueError, OverflowError):
        raise ApevalError(f"the record of {what} is damaged: its actions are no numbers") from None
    width = 0 if nominal is None else nominal.dim
    if given.size and (given.ndim != ndim or given.shape[-1] != width):
        raise ApevalError(f"the record of {what} is damaged: {width} components are wanted")
    outcomes = None if nominal is None else nominal.outcomes
    if discrete and not np.array_equal(actions, given):
        raise ApevalError(f"the record of {what} is damaged: its outcomes are not whole numbers")
    if discrete and outcomes and not np.all((actions >= 0) & (actions < outcomes)):
        raise ApevalError(f"the record of {what} is damaged: there are {outcomes} outcomes")
    return actions


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
    return rollout(
        problem, only(script(problem, it)), key, ids, position, decisions,
        lineage=it.drawn_with, follow=bool(it.lineage),
    )  # fmt: skip
