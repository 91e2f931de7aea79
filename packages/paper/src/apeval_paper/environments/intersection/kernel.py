"""How the twin's kernels are compiled: once, kept on disk, IEEE division without checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Any:
    """A compiled function."""
    return njit(cache=True, error_model="numpy")(function)
