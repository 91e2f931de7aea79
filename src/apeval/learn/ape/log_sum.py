"""log Σ exp over columns: SciPy's `logsumexp`, to the bit, without what makes that slow for the
small arrays of a fit (a fifth of the learner's time)."""

from __future__ import annotations

import numpy as np

from apeval.problem.types import FloatArray


def log_sum(a: FloatArray) -> FloatArray:
    """Of each row of (n, M).

    >>> log_sum(np.log([[1.0, 3.0], [2.0, 0.5]])).round(4).tolist()
    [1.3863, 0.9163]
    """
    if a.shape[1] == 1:
        return a[:, 0]
    top = a.max(axis=1, keepdims=True)
    largest = a == top
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = np.exp(a - top)
        rest[largest] = 0.0  # added exactly, by its number
        number = largest.sum(axis=1, dtype=np.float64)
        total: FloatArray = np.log1p(rest.sum(axis=1) / number) + np.log(number) + top[:, 0]
    finite = np.isfinite(total)
    return total if finite.all() else np.where(finite, total, top[:, 0])
