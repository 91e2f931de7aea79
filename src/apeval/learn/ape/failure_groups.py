"""Which failures belong together, whatever their weights.

The weights of few failures say little. A mode that was met twice, with weights that happen to be
small, is left out of a fit that follows them, never met again, and lost without a trace. So
failures are put into groups first, and weights count within a group only.
"""

from __future__ import annotations

import numpy as np

from apeval.problem.types import IntArray

_FEWEST = 2  # failures of a group


def by_kind(kind: IntArray) -> IntArray:
    """Every kind of failure is a group of that name; those with too few failures join the largest.

    >>> by_kind(np.array([1, 3, 3, 1, 2, 3]))
    array([1, 3, 3, 1, 3, 3])
    """
    names, at, number = np.unique(kind, return_inverse=True, return_counts=True)
    return np.where(number[at] < _FEWEST, names[number.argmax()], kind)
