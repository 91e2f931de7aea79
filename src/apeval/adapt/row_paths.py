"""Numbers in a state that is a tree of arrays with a row per episode, by path: ``state.x``.

Functions of state in and state out may not be surprised by a state that changes under their hands,
so a write gives a new tree.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np

from apeval.adapt.paths import Key, Path, path_text, take_step
from apeval.errors import ProblemError
from apeval.problem.types import Array


def read_rows(env: Any, path: Path, n: int) -> Array:
    """The numbers at the path in each of n episodes, (n, …), a copy."""
    there = env
    for at, step in enumerate(path):
        if _has_rows(there):
            return np.array(np.asarray(there)[_index(path[at:], path)], np.float64)
        there = take_step(there, step, path)
    if not _has_rows(there) or len(there) != n:
        raise ProblemError(
            f"{path_text(path)} is a {type(there).__name__} without a row per episode: name an "
            "array in the state, such as state[1], state.speed or state['speed']"
        )
    return np.array(there, np.float64)


def write_rows(env: Any, path: Path, values: Array) -> None:
    """Put the numbers of all episodes at the path, in a new tree."""
    (_, name), rest = path[0], path[1:]
    setattr(env, str(name), _replaced(getattr(env, str(name)), rest, values, path))


def first_row(tree: Any) -> Any:
    """The state of the first episode, with the same names."""
    if _has_rows(tree):
        return np.asarray(tree)[0]
    if isinstance(tree, dict):
        return {key: first_row(value) for key, value in tree.items()}
    if hasattr(tree, "_fields"):
        return type(tree)(*[first_row(value) for value in tree])
    if isinstance(tree, tuple | list):
        return type(tree)(first_row(value) for value in tree)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        named = {f.name: first_row(getattr(tree, f.name)) for f in dataclasses.fields(tree)}
        return dataclasses.replace(tree, **named)
    return tree


def _replaced(there: Any, steps: Path, values: Array, whole: Path) -> Any:
    if _has_rows(there):
        return _with_rows(there, steps, values, whole)
    if not steps:
        raise ProblemError(f"{path_text(whole)} is no array with a row per episode: name one in it")
    (_, key), rest = steps[0], steps[1:]
    new = _replaced(take_step(there, steps[0], whole), rest, values, whole)
    return _with_part(there, key, new)


def _with_rows(there: Any, steps: Path, values: Array, whole: Path) -> Array:
    changed = np.array(there)
    if changed.dtype.kind != "f" and np.any(values != np.round(values)):
        raise ProblemError(
            f"{path_text(whole)} holds whole numbers ({changed.dtype}), which would round the "
            "noise away: make it an array of floats in the simulator"
        )
    index = _index(steps, whole)
    changed[index] = np.reshape(values, changed[index].shape)
    return changed


def _with_part(there: Any, key: Key, new: Any) -> Any:
    """A copy of a container with one part exchanged."""
    if isinstance(there, dict):
        return {**there, key: new}
    if hasattr(there, "_replace"):
        return there._replace(**{str(key): new})
    if isinstance(there, tuple | list):
        return type(there)(new if k == key else old for k, old in enumerate(there))
    if dataclasses.is_dataclass(there) and not isinstance(there, type):
        return dataclasses.replace(there, **{str(key): new})
    changed = copy.copy(there)
    setattr(changed, str(key), new)
    return changed


def _has_rows(value: Any) -> bool:
    return hasattr(value, "dtype") and np.ndim(value) > 0


def _index(steps: Path, whole: Path) -> tuple[Any, ...]:
    """Where in an array the rest of a path points, in all of its rows."""
    if any(kind != "[" or not isinstance(key, int) for kind, key in steps):
        raise ProblemError(f"{path_text(whole)} looks for a name inside an array: use [0], [1], …")
    return (slice(None), *(key for _, key in steps))
