"""Observations of any form as vectors of numbers: arrays, and dicts and tuples of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.types import Array

_REMEDY = "say what a method sees of it, views={'state': lambda obs, info: vector}"


def numbers_in(obs: Any, rows: int | None = None) -> Array:
    """All numbers of an observation, one after the other; those of a dict by its sorted keys.

    Args:
        obs: A number or an array, or a dict or tuple of these.
        rows: With a number of rows, first axis first, these stay apart.

    Returns:
        A vector, or with `rows` an array (rows, d).

    Raises:
        ProblemError: A part of it is not made of numbers.

    Examples:
        >>> numbers_in({"b": np.array([[1, 2], [3, 4]]), "a": 0.5})
        array([0.5, 1. , 2. , 3. , 4. ])
    """
    return np.concatenate(_parts(obs, () if rows is None else (rows,), ""), axis=-1)


def _parts(obs: Any, rows: tuple[int, ...], name: str) -> list[Array]:
    if isinstance(obs, Mapping):
        inner = [(key, obs[key]) for key in sorted(obs, key=str)]
    elif isinstance(obs, tuple) and not rows and _plain(obs):
        inner = []
    elif isinstance(obs, tuple):
        inner = list(enumerate(obs))
    else:
        inner = []
    if inner:
        return [part for key, value in inner for part in _parts(value, rows, f"{name}[{key!r}]")]
    try:
        values = np.asarray(obs)
    except ValueError:  # lists of different lengths
        values = np.array(None)
    if values.dtype.kind not in "biuf":
        which = f"the observation's part {name}" if name else "the observation"
        raise ProblemError(f"{which} is a {type(obs).__name__}, not an array of numbers: {_REMEDY}")
    return [values.reshape(*rows, -1)]


def _plain(values: tuple[Any, ...]) -> bool:
    """Whether a tuple holds nothing but numbers: then it is a vector."""
    return all(isinstance(value, bool | int | float | np.number) for value in values)
