"""What a judge said of one step: a kind of failure, or a distance to it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from apeval.errors import ProblemError, number_of
from apeval.problem.types import Array, FloatArray, IntArray


def as_kind(said: Any, kinds: tuple[str, ...]) -> int:
    """A judge's word as a kind of failure (0: none)."""
    if isinstance(said, bool | np.bool_):
        return int(said)
    if isinstance(said, int | np.integer) and 0 <= said <= len(kinds):
        return int(said)
    if isinstance(said, int | np.integer):
        raise ProblemError(
            f"fails returned {said}, and kinds= names {number_of(len(kinds), 'kind')} "
            f"({', '.join(kinds)}): return 0 for no failure, k for "
            "kinds[k - 1], and name every kind in kinds="
        )
    raise ProblemError(
        f"fails returned a {type(said).__name__}{_shape(said)}, expected True or False for one "
        "episode: compare numbers, e.g. bool(obs[0] > 2.4)"
    )


def as_distance(said: Any) -> float:
    """A margin's word as a number."""
    try:
        plain = isinstance(said, float | int)
        number = float(said if plain else np.reshape(np.asarray(said, np.float64), ()))
    except (TypeError, ValueError):
        raise ProblemError(
            f"margin returned a {type(said).__name__}{_shape(said)}, expected one number: the "
            "distance to failure, ≤ 0 exactly where it fails"
        ) from None
    if math.isnan(number):
        raise ProblemError("margin returned NaN: every state needs a number")
    return number


def as_kinds(said: Any, kinds: tuple[str, ...], n: int) -> IntArray:
    """A judge's word on n episodes as kinds of failure (0: none), (n,)."""
    values = np.asarray(said)
    if values.shape != (n,) or values.dtype.kind not in "biu":
        raise ProblemError(
            f"fails returned {_what(said, values)}, expected True or False for each of {n} "
            "episodes: in a vector environment it gets a row per episode, so compare columns, "
            "e.g. obs[:, 0] > 2.4"
        )
    if values.dtype.kind != "b" and np.any((values < 0) | (values > len(kinds))):
        return np.array([as_kind(int(value), kinds) for value in values])
    return values.astype(np.int64)


def as_distances(said: Any, n: int) -> FloatArray:
    """A margin's word on n episodes as numbers, (n,)."""
    values = np.asarray(said)
    if values.shape != (n,) or values.dtype.kind not in "biuf":
        raise ProblemError(
            f"margin returned {_what(said, values)}, expected one number for each of {n} episodes: "
            "in a vector environment it gets a row per episode, so use columns, e.g. "
            "2.4 - abs(obs[:, 0])"
        )
    if np.isnan(values).any():
        raise ProblemError("margin returned NaN: every state needs a number")
    return values.astype(np.float64)


def _what(said: Any, values: Array) -> str:
    if said is None:
        return "None"
    return f"{values.dtype} of shape {values.shape}"


def _shape(said: Any) -> str:
    return f" of shape {np.shape(said)}" if np.ndim(said) else ""
