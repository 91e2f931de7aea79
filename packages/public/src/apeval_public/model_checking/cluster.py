"""`cluster`: quality of service of a workstation cluster (QVBS, ctmc/cluster, property qos2).

Haverkort, Hermanns and Katoen, "On the use of model checking techniques for dependability
evaluation", SRDS 2000. Two sub-clusters of n workstations, each behind a switch, joined by a
backbone. Everything fails and is repaired by one repair unit, in exponential times (hours). The
service is at its minimum where ⌊3n/4⌋ workstations are connected and work. The event is
insufficient service at the time t.

One decision of nature is the next event of the chain: how long it takes, and which it is. Both come
from standard normal numbers through their distribution functions, so that nature's law is a
Gaussian of two components.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr

from apeval.errors import ProblemError
from apeval.problem.draws import Draws
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Truth
from apeval.problem.types import Array, FloatArray
from apeval_public.model_checking.cluster_chain import (
    NONE,
    happen,
    insufficient_service,
    rates,
    shortfall,
)

CLOCK = 6
SOURCE = "https://qcomp.org/benchmarks, ctmc/cluster, property qos2"
PUBLISHED = {
    (2, 20.0): 2.201599927e-06,
    (4, 20.0): 3.32170686e-06,
    (8, 20.0): 2.210317629e-06,
    (16, 20.0): 1.991721308e-06,
    (32, 20.0): 1.993482081e-06,
    (64, 20.0): 2.019270278e-06,
    (128, 20.0): 2.082292104e-06,
}
"""What the set has for (n, t): Storm, printed with ten digits."""
_PRINTED = 1e-9
_EVENTS = 60  # more than this within t = 20 have a probability of 1e-16


@register("cluster", description="workstation cluster of QVBS, insufficient service at t=20 (2e-6)")
def cluster(n: int = 16, t: float = 20.0) -> Problem:
    """Two sub-clusters of n workstations must give their minimum service at the time t (hours)."""
    if not (1 <= n <= 10_000 and 0.0 < t <= 1e6):
        raise ProblemError(f"n must be from 1 to 10,000 and t above 0, at most 1e6; got {n}, {t}")

    def step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
        speed = rates(x, n)
        total = speed.sum(axis=1)
        clock = x[:, CLOCK] - log_ndtr(-a_E[:, 0]) / total
        at = ndtr(a_E[:, 1])[:, None] * total[:, None] >= np.cumsum(speed, axis=1)[:, :-1]
        event = np.asarray(at.sum(axis=1))
        in_time = clock < t
        new = np.where(in_time[:, None], happen(x, event), x)
        new[:, CLOCK] = np.minimum(clock, t)
        return new

    def failed(x: Array) -> Array:
        return np.asarray(shortfall(x, n) < 0.0)

    def start(draws: Draws) -> FloatArray:
        return np.tile(np.array([n, n, 1, 1, 1, NONE, 0], np.float64), (draws.n, 1))

    problem = Problem(
        nominal=Normal(0.0, 1.0, dim=2),
        reset=start,
        step=step,
        failed=failed,
        done=lambda x: x[:, CLOCK] >= t,
        margin=lambda x: shortfall(x, n) + 1.0,
        judge_at_end=True,
        horizon=max(_EVENTS, round(3 * t)),
        chunk=2048,
        name="cluster",
        description="a workstation cluster gives insufficient service at a time",
        parameters={"n": n, "t": t},
    )
    published = PUBLISHED.get((n, t))
    if published is None:
        return problem
    known = Truth(published, _PRINTED * published, "Storm, as published", {"source": SOURCE})

    def verify(full: bool, seed: int) -> Mapping[str, Any]:
        value = insufficient_service(n, t)
        return {
            "problem": "cluster",
            "stated": published,
            "method": "uniformisation over all reachable states",
            "value": value,
            "relative_difference": value / published - 1.0,
            "agrees": abs(value / published - 1.0) <= 3.0 * _PRINTED,
        }

    return replace(problem, truth=lambda: known, verify=verify)
