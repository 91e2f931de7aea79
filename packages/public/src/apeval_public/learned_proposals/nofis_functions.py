"""Three functions of NOFIS, as its repository has them: its Levy function is not the usual one."""

from __future__ import annotations

import numpy as np

from apeval.problem.types import FloatArray

SCALE = 0.01
"""Of the Rosenbrock and Powell functions."""
SHIFT = 1.0
"""x is moved by this much in the Levy function."""


def rosenbrock(x: FloatArray) -> FloatArray:
    """A hundredth of the Rosenbrock function.

    Args:
        x: Shape (n, d).

    Returns:
        Shape (n,).
    """
    first, second = x[:, :-1], x[:, 1:]
    y: FloatArray = (100.0 * (first**2 - second) ** 2 + (1.0 - first) ** 2).sum(axis=1)
    return SCALE * y


def levy_terms(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What a coordinate adds to the Levy function.

    Args:
        x: Any shape.

    Returns:
        What it adds as the first coordinate, as one in between, and as the last.
    """
    w = 1.0 + (x - SHIFT - 1.0) / 4.0
    middle = (w - 1.0) ** 2 * (1.0 + 10.0 * np.sin(np.pi * w + 1.0) ** 2)
    first = np.sin(np.pi * w) ** 2 + middle
    last = (w - 1.0) ** 2 * (1.0 + np.sin(2.0 * np.pi * w))
    return first, middle, last


def levy(x: FloatArray) -> FloatArray:
    """The Levy function of x − 1.

    Args:
        x: Shape (n, d).

    Returns:
        Shape (n,).
    """
    first, middle, last = levy_terms(x)
    y: FloatArray = first[:, 0] + middle[:, 1:-1].sum(axis=1) + last[:, -1]
    return y


def powell_groups(x: FloatArray) -> FloatArray:
    """What each group of four coordinates adds to the Powell function.

    Args:
        x: Shape (n, 4·k).

    Returns:
        Shape (n, k).
    """
    a, b, c, d = (x[:, k::4] for k in range(4))
    y: FloatArray = (
        (a + 10.0 * b) ** 2 + 5.0 * (c - d) ** 2 + (b - 2.0 * c) ** 4 + 10.0 * (a - d) ** 4
    )
    return SCALE * y


def powell(x: FloatArray) -> FloatArray:
    """A hundredth of the Powell function.

    Args:
        x: Shape (n, 4·k).

    Returns:
        Shape (n,).
    """
    y: FloatArray = powell_groups(x).sum(axis=1)
    return y
