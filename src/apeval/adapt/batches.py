"""Rows of many episodes in one call, such that no row's answer depends on the others.

A matrix product rounds by the number of its rows. For some types and sizes it also rounds by a
row's place among them, and by where in memory they begin; what stands in the other rows never
matters. So a batch always has `SIZE` rows, the row of an episode stands at the episode's number
modulo `SIZE`, and memory begins at a multiple of 64 bytes. An episode's actions are then the same
bits alone and in any company. `tests/test_batches.py` measures all of this.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from apeval.errors import blame
from apeval.problem.types import Array, IntArray

SIZE = 16
"""Rows of a batch: as many as the environments that `from_env` runs side by side."""
_ALIGNMENT = 64  # bytes, a line of the processor's cache
_TRIES = 4  # observations by which `mixed` looks at a function
LARGEST_ROUNDING = 1e-3
"""Relative: where a batch's places differ by more, it is not by rounding, which gives 1e-7 in
single precision and grows in a few steps and by cancellation."""


def calls(ids: IntArray, kinds: Sequence[Any] | None = None) -> list[IntArray]:
    """Which rows are asked for in each call: no two at the same place, all of one kind.

    Args:
        ids: The episodes' numbers, (n,).
        kinds: What must be the same within a call, for each row; None: nothing.

    Examples:
        >>> [rows.tolist() for rows in calls(np.array([3, 19, 4]))]
        [[0, 2], [1]]
    """
    places = (ids % SIZE).tolist()
    alike = kinds is None or all(kind == kinds[0] for kind in kinds)
    if alike and len(set(places)) == len(places):  # as nearly always
        return [np.arange(len(places))]
    met: dict[Any, int] = {}
    groups: dict[Any, list[int]] = {}
    for row, place in enumerate(places):
        kind = None if kinds is None else kinds[row]
        turn = met.get((place, kind), 0)
        met[(place, kind)] = turn + 1
        groups.setdefault((turn, kind), []).append(row)
    return [np.array(rows) for rows in groups.values()]


def kind_of(value: Any) -> Any:
    """Structure, types and shapes: what two observations must share to stand in one batch."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape
    if isinstance(value, Mapping):
        return tuple((key, kind_of(item)) for key, item in value.items())
    if isinstance(value, tuple | list):
        return type(value), tuple(kind_of(item) for item in value)
    array = np.asarray(value)
    return array.dtype, array.shape


def stacked(rows: Sequence[Any] | Array, places: IntArray, size: int = SIZE) -> Any:
    """Observations as one batch, each at its place; the empty places hold the first of them.

    Args:
        rows: Arrays, numbers, or mappings and tuples of these, all of one kind.
        places: Where each of them stands, (n,).
        size: Rows of the batch.

    Returns:
        An array with `size` rows, or a mapping or a tuple of such arrays.
    """
    first = rows[0]
    if isinstance(first, Mapping):
        return {key: stacked([row[key] for row in rows], places, size) for key in first}
    if isinstance(first, tuple | list):
        columns = zip(*rows, strict=True)
        return tuple(stacked(list(column), places, size) for column in columns)
    value = np.asarray(first)
    batch = _aligned((size, *value.shape), value.dtype)
    if len(rows) < size:
        batch[...] = value
    batch[places] = rows
    return batch


def _aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array whose memory begins at a multiple of 64 bytes."""
    if dtype.hasobject:
        return np.empty(shape, dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.empty(size + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape)


def mixed(answer: Callable[[Any], Any], space: Any) -> str | None:
    """Why a function of a batch cannot be asked for many rows at once.

    Args:
        answer: From `SIZE` observations to an array of as many rows.
        space: The observation space, which observations are drawn from.

    Returns:
        None where a few random observations get the same answer, bit by bit, in company of others
        and of themselves, and but for rounding at every place.
    """
    drawn = copy.deepcopy(space)  # the user's own generator is left alone
    drawn.seed(0)
    for place in np.linspace(0, SIZE - 1, _TRIES).astype(int):
        rows = [drawn.sample() for _ in range(SIZE)]
        try:
            among = np.array(answer(stacked(rows, np.arange(SIZE))))
            alone = np.array(answer(stacked([rows[place]], np.array([place]))))
        except Exception as error:
            return f"on a batch it raised {blame(error)}"
        if among.shape[:1] != (SIZE,) or alone.shape != among.shape:
            return f"{SIZE} observations got an answer of shape {among.shape}"
        if not np.array_equal(among[place], alone[place], equal_nan=among.dtype.kind == "f"):
            return "the answer to an observation depends on the others in its batch"
        if _by_place(alone, among):
            return "the answer to an observation depends on its place in the batch"
    return None


def _by_place(alike: Array, among: Array) -> bool:
    """Whether answers to one observation differ, by more than a place in a batch may round."""
    if alike.dtype.kind != "f":
        return bool((alike != alike[:1]).any())
    size = np.abs(among[np.isfinite(among)]).max(initial=1e-12)
    near = np.allclose(alike, alike[:1], rtol=0.0, atol=LARGEST_ROUNDING * size, equal_nan=True)
    return not near
