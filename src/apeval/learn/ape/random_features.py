"""Random waves over the state: features in which any smooth function is nearly linear.

Rahimi and Recht (2007), "Random features for large-scale kernel machines": with Gaussian
frequencies, ridge regression on them is a Gaussian process with a squared-exponential kernel.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from apeval.problem.types import FloatArray

WAVES = 30
_LENGTH = 1.06  # scaled states over which a function of one component changes
_SEED = 0  # the frequencies are part of the method, not of a run


def random_features(x: FloatArray) -> FloatArray:
    """(n, f) to (n, WAVES); none where there is no state."""
    n, f = x.shape
    if f == 0:
        return np.zeros((n, 0))
    frequency, phase = _frequencies(f)
    found: FloatArray = np.sqrt(2.0 / WAVES) * np.cos(x @ frequency + phase)
    return found


@cache
def _frequencies(f: int) -> tuple[FloatArray, FloatArray]:
    """As many components share the distance between two states, the length grows with √f."""
    rng = np.random.default_rng(_SEED)
    frequency = rng.standard_normal((f, WAVES)) / (_LENGTH * np.sqrt(f))
    return frequency, rng.uniform(0.0, 2.0 * np.pi, WAVES)
