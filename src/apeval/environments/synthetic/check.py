"""Checks a closed form by simulating the problem itself under shifted Gaussians."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtri

from apeval.problem.draws import NATURE, Draws, make_key
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray

_EPISODES, _FULL, _AGREEMENT = 20_000, 400_000, 3.0
Shifts = Callable[[], FloatArray]
Weigh = Callable[[int, int], FloatArray]
"""(episodes, seed) to p/q of each failing episode, 0 for the others."""


def checked(problem: Problem, shifts: Shifts) -> Problem:
    """The problem with a verification: importance sampling from an equal mixture of N(m_j, I).

    `shifts` gives the means m_j, one trajectory (T, d_E) each: towards every failure mode.
    """
    return checked_by(problem, lambda n, seed: weights(problem, shifts(), n, seed))


def checked_by(problem: Problem, weigh: Weigh) -> Problem:
    """The problem with a verification by importance sampling of any kind."""

    def verify(full: bool, seed: int) -> Mapping[str, Any]:
        return _compare(problem, weigh, _FULL if full else _EPISODES, seed)

    return replace(problem, verify=verify)


def _compare(problem: Problem, weigh: Weigh, n: int, seed: int) -> dict[str, Any]:
    stated = problem.truth().value if problem.truth else float("nan")
    w = weigh(n, seed)
    value, error = float(w.mean()), float(w.std(ddof=1) / np.sqrt(n))
    distance = abs(value - stated) / error if error > 0.0 else float("inf")
    distance = 0.0 if value == stated else distance
    return {
        "problem": problem.name,
        "stated": stated,
        "stated_error": 0.0,
        "method": "importance sampling",
        "value": value,
        "standard_error": error,
        "episodes": n,
        "seed": seed,
        "distance_in_standard_errors": distance,
        "agrees": distance <= _AGREEMENT,
    }


def weights(problem: Problem, means: FloatArray, n: int, seed: int) -> FloatArray:
    """p/q of each failing episode, 0 for the others."""
    draws = Draws(make_key(seed), np.arange(n))
    component = np.arange(n) % len(means)
    x, log_ratio = problem.reset(draws), np.zeros((n, len(means)))
    kind, alive = np.zeros(n, np.int64), np.ones(n, bool)
    for t in range(problem.longest):
        now = draws.at(t)
        z = means[component, t] + ndtri(now.stream(NATURE, problem.nominal.dim))
        # log q_j − log p of N(m, I) is z·m − m·m/2, for the decisions of living episodes only
        gain = z @ means[:, t].T - 0.5 * (means[:, t] ** 2).sum(axis=1)
        log_ratio += np.where(alive[:, None], gain, 0.0)
        x = problem.step(x, np.zeros((n, 0)), z, now)
        judged = alive & (not problem.judge_at_end or t + 1 == problem.longest)
        kind = np.where(judged, np.asarray(problem.failed(x)), kind)
        alive &= kind == 0
    log_q = np.asarray(logsumexp(log_ratio, axis=1)) - np.log(len(means))
    w: FloatArray = np.where(kind > 0, np.exp(-log_q), 0.0)
    return w
