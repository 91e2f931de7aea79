"""Uniformisation of continuous-time Markov chains."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import poisson

from apeval.problem.types import FloatArray

_TAIL = -75.0  # log of the Poisson tail that is left out


def poisson_weights(mean: float) -> FloatArray:
    """The Poisson law, as far as it matters.

    Args:
        mean: Its mean.

    Returns:
        P(K = k) for k = 0, 1, …
    """
    k = np.arange(int(mean + 20.0 * np.sqrt(mean) + 100.0))
    kept: FloatArray = poisson.pmf(k, mean)[poisson.logsf(k - 1, mean) > _TAIL]
    return kept


def transient(rates: csr_array, start: int, time: float) -> FloatArray:
    """The distribution over the states of a chain at a time.

    Args:
        rates: Rates from row to column, without a diagonal.
        start: The first state.
        time: The time.

    Returns:
        Probabilities, one for each state.
    """
    out = np.asarray(rates.sum(axis=1)).ravel()
    speed = float(out.max())
    now = np.zeros(rates.shape[0])
    now[start] = 1.0
    total = np.zeros_like(now)
    back = rates.T.tocsr()
    for weight in poisson_weights(speed * time):
        total += weight * now
        now = now * (1.0 - out / speed) + (back @ now) / speed
    return total
