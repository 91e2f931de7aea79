"""Which data stand for all: greedy choice by predictive variance, and who stands for whom."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpstrf

from apeval.problem.types import FloatArray, IntArray


def choose(K: FloatArray, n: int) -> IntArray:
    """n rows of a kernel matrix, each the one of largest predictive variance given those before.

    That is the pivot order of the pivoted Cholesky factorisation.

    >>> choose(np.array([[1.0, 0.99, 0.0], [0.99, 1.0, 0.0], [0.0, 0.0, 0.9]]), 2).tolist()
    [0, 2]
    """
    _, pivots, rank, _ = dpstrf(np.asfortranarray(K), lower=1)
    order: IntArray = pivots[: min(n, max(1, int(rank)))] - 1
    return np.sort(order)


def nearest(K: FloatArray) -> IntArray:
    """For every row of k(data, representatives) the representative it belongs to."""
    return np.asarray(K.argmax(axis=1))


def average(owner: IntArray, values: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Mean of the values and their number for each of n owners; every owner has at least one."""
    count = np.bincount(owner, minlength=n).astype(np.float64)
    return np.bincount(owner, values, n) / count, count
