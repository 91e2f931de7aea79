"""Monte Carlo under the nominal law, with nothing recorded: for truths, and to check them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import binom

from apeval.problem.draws import NATURE, Draws, Tape, make_key
from apeval.problem.problem import Problem
from apeval.problem.truth import Truth
from apeval.problem.types import IntArray
from apeval.simulate.rollout import EpisodeOutcomes, judge

_TAIL = 0.00135  # of three standard deviations, on each side


def failures(problem: Problem, seed: int, first: int, episodes: int) -> IntArray:
    """Simulate episodes under the nominal law.

    Args:
        problem: The problem.
        seed: Of the episodes' random numbers.
        first: The first episode's number.
        episodes: How many.

    Returns:
        The kind of failure of each episode, 0 for none, shape (episodes,).
    """
    key, ids = make_key(seed), np.arange(first, first + episodes)
    draws = Draws(key, ids)
    if problem.initial is None:
        x = problem.reset(draws)
    else:
        law = problem.initial.given(None, None)
        x = problem.reset(draws, law.sample(draws.stream(NATURE, problem.initial.dim)))
    outcomes = EpisodeOutcomes.none(episodes, 0)
    tape, alive = Tape(key, ids, problem.longest), np.arange(episodes)
    for t in range(problem.longest):
        now = tape.at(t, alive)
        a_A = problem.act(x, now)
        a_E = problem.law(x, a_A).sample(now.stream(NATURE, problem.nominal.dim))
        x = problem.step(x, a_A, a_E, now)
        ended = judge(problem, x, alive, t, outcomes)
        if ended.any():
            x, alive = x[~ended], alive[~ended]
        if not len(alive):
            break
    return outcomes.kind


def count(problem: Problem, seed: int, first: int, episodes: int) -> IntArray:
    """Failures of each kind among episodes under the nominal law, in blocks of the problem's
    size.

    Args:
        problem: The problem.
        seed: Of the episodes' random numbers.
        first: The first episode's number.
        episodes: How many.

    Returns:
        The number of failures of each of the problem's kinds.
    """
    found = np.zeros(len(problem.kinds), np.int64)
    for start in range(first, first + episodes, problem.chunk):
        n = min(problem.chunk, first + episodes - start)
        kind = failures(problem, seed, start, n)
        found += np.bincount(kind, minlength=len(problem.kinds) + 1)[1:]
    return found


def agreement(problem: Problem, stated: Truth, episodes: int, seed: int) -> Mapping[str, Any]:
    """A problem's `verify`: count failures anew, and compare with the stated truth.

    Args:
        problem: The problem.
        stated: Its truth.
        episodes: How many are simulated.
        seed: A fresh one.

    Returns:
        ``agrees`` says whether the count lies within the three-sigma limits of a binomial law,
        the stated value being off by three of its own standard errors at the most.
    """
    n = episodes
    k = int(count(problem, seed, 0, n).sum())
    slack = 3.0 * stated.standard_error
    low = binom.ppf(_TAIL, n, max(0.0, stated.value - slack))
    high = binom.ppf(1.0 - _TAIL, n, min(1.0, stated.value + slack))
    return {
        "problem": problem.name,
        "stated": stated.value,
        "stated_error": stated.standard_error,
        "method": "Monte Carlo, fresh seed",
        "value": k / n,
        "standard_error": (k / n * (1.0 - k / n) / n) ** 0.5,
        "failures": k,
        "expected": n * stated.value,
        "episodes": n,
        "seed": seed,
        "agrees": bool(low <= k <= high),
    }
