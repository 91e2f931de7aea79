"""How philosophers dine, and the exact probability of their deadlock."""

from __future__ import annotations

import numpy as np

from apeval.problem.types import Array, IntArray
from apeval_public.model_checking.uniformisation import poisson_weights

THINKS, WAITS, EATS = 0, 1, 2


def moved(x: Array, who: Array) -> Array:
    """What the philosopher whose clock rang does next. Philosopher k has fork k on the first side
    and fork k − 1 on the other.

    Args:
        x: What everybody does, shape (…, n).
        who: Whose clock rang, shape (…,).

    Returns:
        What this philosopher does now, shape (…,).
    """
    n = x.shape[1]
    rows, before, after = np.arange(len(x)), (who - 1) % n, (who + 1) % n
    now = x[rows, who]
    first_is_free = x[rows, after] != EATS
    second_is_free = x[rows, before] == THINKS
    next_ = np.where(now == THINKS, np.where(first_is_free, WAITS, THINKS), now)
    next_ = np.where((now == WAITS) & second_is_free, EATS, next_)
    return np.where(now == EATS, THINKS, next_)


def deadlock_probability(n: int, time: float) -> float:
    """The probability that n philosophers deadlock within the time.

    Args:
        n: Philosophers; 16 have 1.3 million states.
        time: The time.

    Returns:
        The probability.
    """
    x, code = np.zeros((1, n), np.int8), np.zeros(1, np.int64)
    base = 3 ** np.arange(n, dtype=np.int64)
    known, new = code, x
    while len(new):  # one ring further at a time
        found = [_code_after(new, k, base) for k in range(n)]
        fresh = np.setdiff1d(np.unique(np.concatenate(found)), known, assume_unique=True)
        known = np.union1d(known, fresh)
        new = (fresh[:, None] // base % 3).astype(np.int8)
    x = (known[:, None] // base % 3).astype(np.int8)
    target = [np.searchsorted(known, _code_after(x, k, base)).astype(np.int32) for k in range(n)]
    v = (x == WAITS).all(axis=1).astype(np.float64)
    start = int(np.searchsorted(known, 0))
    weights = poisson_weights(n * time)
    p = 0.0
    for weight in weights:  # v: the probability of a deadlock within so many rings
        p += float(weight * v[start])
        v = sum(v[at] for at in target) / n
    return p


def _code_after(x: Array, who: int, base: IntArray) -> IntArray:
    """The numbers of the states after the ring of one philosopher."""
    after = x.astype(np.int64)
    after[:, who] = moved(x, np.full(len(x), who))
    code: IntArray = after @ base
    return code
