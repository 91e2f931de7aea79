"""`philosophers`: dining philosophers that deadlock within a time (QVBS, ctmc/philosophers).

Dijkstra's problem as a stochastic Petri net of GreatSPN. A philosopher takes the fork on one side,
then that on the other, eats, and puts both down; each of the three takes an exponential time of
mean 1 once it is possible. All take the same side first, so that there is a deadlock: everybody
waits for the second fork. The event is a deadlock within time 1 (`MaxPrReachDeadlockTB`).

The continuous-time chain is uniformised, exactly: the clocks of n philosophers ring at the rate n,
each ring is somebody's (who moves if possible), and the number of rings within the time is
Poisson. One decision of nature is the next ring: whose it is, or that the time is over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import poisson

from apeval.errors import ProblemError
from apeval.problem.draws import Draws
from apeval.problem.laws import Categorical
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Truth
from apeval.problem.types import Array, FloatArray
from apeval_public.model_checking.philosophers_chain import WAITS, deadlock_probability, moved

OVER = 1
SOURCE = "https://qcomp.org/benchmarks, ctmc/philosophers, property MaxPrReachDeadlockTB"
PUBLISHED = {(12, 1.0): 0.000759393967, (16, 1.0): 6.928238934e-05, (20, 1.0): 6.320894925e-06}
"""What the set has for (n, time): Storm with precision 1e-10, printed with ten digits."""
_PRINTED = 1e-9
_BEYOND = -70.0  # log of the probability of rings that are never waited for


def rings(n: int, time: float) -> FloatArray:
    """The probability that another ring follows the k-th within the time, k = 0, 1, …

    Args:
        n: Philosophers.
        time: The time.

    Returns:
        P(K > k | K ≥ k) of K ~ Poisson(n · time), as far as it matters.
    """
    last = 100 + 5 * math.ceil(n * time)
    more = poisson.logsf(np.arange(-1, last), n * time)  # log P(K ≥ k), k = 0 … last
    chance: FloatArray = np.exp(np.diff(more[more > _BEYOND]))
    return chance


@register("philosophers", description="dining philosophers of QVBS that deadlock in time (6.9e-5)")
def philosophers(n: int = 16, time: float = 1.0) -> Problem:
    """n philosophers, all right-handed, must not deadlock within the time."""
    if not (2 <= n <= 1_000 and 0.0 < time <= 1_000.0):
        raise ProblemError(
            f"n must be from 2 to 1,000 and time above 0, at most 1,000; got {n}, {time}"
        )
    more = rings(n, time)

    def probabilities(x: Array, a_A: Array) -> FloatArray:
        goes_on = more[np.minimum(x[:, n], len(more) - 1)]
        each = np.repeat((goes_on / n)[:, None], n, axis=1)
        return np.concatenate([each, (1.0 - goes_on)[:, None]], axis=1)

    def step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
        who, over = a_E[:, 0], a_E[:, 0] == n
        rows = np.flatnonzero(~over)
        mine = who[rows]
        x[rows, mine] = moved(x[rows, :n], mine)
        x[:, n] += 1
        x[:, n + 1] = over | (x[:, n] >= len(more))
        return x

    problem = Problem(
        nominal=Categorical(probabilities, outcomes=n + 1),
        reset=lambda draws: np.zeros((draws.n, n + 2), np.int64),
        step=step,
        failed=lambda x: (x[:, :n] == WAITS).all(axis=1),
        done=lambda x: x[:, n + 1] == OVER,
        margin=lambda x: n - (x[:, :n] == WAITS).sum(axis=1).astype(np.float64),
        horizon=len(more),
        chunk=2048,
        name="philosophers",
        description="dining philosophers deadlock within a time",
        parameters={"n": n, "time": time},
    )
    return _with_truth(problem, n, time)


def _with_truth(problem: Problem, n: int, time: float) -> Problem:
    published = PUBLISHED.get((n, time))
    if published is None:
        return problem
    known = Truth(published, _PRINTED * published, "Storm, as published", {"source": SOURCE})

    def verify(full: bool, seed: int) -> Mapping[str, Any]:
        value = deadlock_probability(n, time)
        return {
            "problem": "philosophers",
            "stated": published,
            "method": "uniformisation over all reachable states",
            "value": value,
            "relative_difference": value / published - 1.0,
            "agrees": abs(value / published - 1.0) <= 1e-6,
        }

    return replace(problem, truth=lambda: known, verify=verify)
