"""What is known of a problem, put into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from apeval.problem.problem import Problem
from apeval.problem.truth import Truth
from apeval_public.truth.stored import stored

_QUICK, _FULL = 20_000, 1_000_000


def with_stored_truth(problem: Problem) -> Problem:
    """The problem with the truth that is stored for its parameters, where one is.

    Args:
        problem: The problem, with its name and parameters.

    Returns:
        A copy with `truth` and, by Monte Carlo, `verify`; the problem itself where none is stored.
    """
    known = stored(problem.name, problem.parameters)
    return problem if known is None else with_truth(problem, known)


def with_truth(problem: Problem, known: Truth) -> Problem:
    """The problem with a truth, and a check of it by Monte Carlo.

    Args:
        problem: The problem.
        known: Its failure probability.

    Returns:
        A copy with both.
    """

    def verify(full: bool, seed: int) -> Mapping[str, Any]:
        from apeval_public.truth.monte_carlo import agreement

        return agreement(problem, known, _FULL if full else _QUICK, seed)

    return replace(problem, truth=lambda: known, verify=verify)
