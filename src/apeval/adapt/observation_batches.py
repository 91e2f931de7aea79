"""Batches of observations: arrays with a row per episode, or dicts and tuples of these."""

from __future__ import annotations

from typing import Any

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.observation_numbers import numbers_in
from apeval.problem.types import Array, IntArray


def take(batch: Any, rows: Any) -> Any:
    """The chosen rows, a copy.

    >>> take({"x": np.array([1, 2, 3])}, np.array([2, 0]))
    {'x': array([3, 1])}
    """
    if isinstance(batch, dict):
        return {key: take(value, rows) for key, value in batch.items()}
    if isinstance(batch, tuple):
        return tuple(take(value, rows) for value in batch)
    return np.asarray(batch)[rows]


def put(batch: Any, row: int, value: Any) -> None:
    """Overwrite one row with one episode's observation."""
    if isinstance(batch, dict):
        for key in batch:
            put(batch[key], row, value[key])
    elif isinstance(batch, tuple):
        for part, inner in zip(batch, value, strict=True):
            put(part, row, inner)
    else:
        batch[row] = value


def as_batch(values: Any, n: int, what: str, dtype: Any = None) -> Any:
    """An environment's answer as a batch of n rows that nobody else writes to.

    Raises:
        ProblemError: It is no array of numbers, or has another number of rows.
    """
    if isinstance(values, dict):
        return {key: as_batch(value, n, what) for key, value in values.items()}
    if isinstance(values, tuple):
        return tuple(as_batch(value, n, what) for value in values)
    array = np.array(values)
    if array.dtype.kind not in "biuf" or array.shape[:1] != (n,) or (dtype and array.ndim != 1):
        kind = f"{array.dtype} of shape {array.shape}"
        raise ProblemError(
            f"the vector environment's {what} is {kind}, expected numbers with one row for each of "
            f"its {n} sub-environments; other observations are taken one by one: apeval.from_env"
        )
    return array if dtype is None or array.dtype == dtype else array.astype(dtype)


def precision(seen: Any) -> Any:
    """Floating types of an observation, of one episode or of a batch; None where there are none.

    >>> precision(np.zeros(2)), precision(np.zeros(2, int))
    (dtype('float64'), None)
    """
    if isinstance(seen, np.ndarray):
        return seen.dtype if seen.dtype.kind == "f" else None
    if isinstance(seen, dict):
        return tuple(precision(value) for value in seen.values())
    if isinstance(seen, tuple):
        return tuple(precision(value) for value in seen)
    return None


class Precision:
    """That of an environment's observations after a step, which must stay what it was first."""

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first: Any = None

    def require(self, seen: Any) -> None:
        """A `ProblemError` where it is another one: episodes would be rounded otherwise."""
        now = precision(seen)
        if self._first is None or now is None:
            self._first = self._first if now is None else now
        elif now != self._first:
            raise ProblemError(
                f"the environment's observation is {now} after this step, {self._first} after "
                "earlier ones: the precision must not change, return one type"
            )


def flat(batch: Any, n: int) -> Array:
    """All numbers of a batch's rows as vectors, (n, d)."""
    return batch.reshape(n, -1) if isinstance(batch, np.ndarray) else numbers_in(batch, n)


def spread(slots: IntArray, n: int) -> IntArray | None:
    """For each of n places the row that stands there: its own where it is one of `slots`, else
    that of the first. None where every place has its own.

    >>> spread(np.array([1, 3]), 4)
    array([1, 1, 1, 3])
    """
    if len(slots) == n:
        return None
    source = np.full(n, slots[0])
    source[slots] = slots
    return source
