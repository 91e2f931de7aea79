"""The double well of pyTAMS: its drift and its score."""

from __future__ import annotations

import numpy as np

from apeval.problem.types import FloatArray

DT, STEPS, TARGET, SHARPNESS = 0.01, 1_000, 0.95, 8.0


def drift(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One step of Euler's scheme without noise, in V = x⁴/4 − x²/2 + y².

    Args:
        x: First coordinates.
        y: Second coordinates.

    Returns:
        Where each coordinate goes; they do not mix.
    """
    return x + DT * (x - x**3), y - DT * 2.0 * y


def score(x: FloatArray, y: FloatArray) -> FloatArray:
    """From 0 in the well at (−1, 0) to 1 in the well at (1, 0).

    Args:
        x: First coordinates.
        y: Second coordinates.

    Returns:
        ½ − ½ exp(−8 |X − A|²) + ½ exp(−8 |X − B|²).
    """
    a = np.exp(-SHARPNESS * ((x + 1.0) ** 2 + y**2))
    b = np.exp(-SHARPNESS * ((x - 1.0) ** 2 + y**2))
    return np.asarray(0.5 - 0.5 * a + 0.5 * b)
