"""What a function of a problem answered, as an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.types import Array

_PLAIN = (np.ndarray, np.generic, list, tuple, bool, int, float, complex, str)


def is_array_like(value: Any) -> bool:
    """Whether NumPy makes an array of it. It would also walk through any other object that has a
    length and entries, into the entries of its entries, perhaps without end."""
    return isinstance(value, _PLAIN) or hasattr(value, "__array__")


def as_array(part: str, value: Any) -> Array:
    """The answer of a user's function; None and objects are refused."""
    if not is_array_like(value):
        what = "None" if value is None else f"a {type(value).__name__}"
        raise ProblemError(f"`{part}` returned {what}, expected a NumPy array, a row per episode")
    return np.asarray(value)
