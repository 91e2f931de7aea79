"""`apeval truth PROBLEM --verify`: recompute a truth with fresh seeds, and compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.run.evaluate import evaluate

REPORTING = range(10_000, 2**31)
"""Seeds of results that are reported; those below are for tuning."""
_EPISODES, _FULL_EPISODES = 20_000, 400_000
_AGREEMENT = 3.0  # standard errors


def verify_truth(problem: Problem, full: bool, seed: int) -> Mapping[str, Any]:
    """The problem's own verification; where it has none, an evaluation by the default method."""
    if problem.verify is not None:
        return problem.verify(full, seed)
    if problem.truth is None:
        raise ApevalError(f"no truth is known for {problem.name or 'this problem'}")
    stated = problem.truth()
    result = evaluate(problem, episodes=_FULL_EPISODES if full else _EPISODES, seed=seed)
    error = (stated.standard_error**2 + result.standard_error**2) ** 0.5
    distance = abs(result.estimate - stated.value) / error if error > 0.0 else float("inf")
    return {
        "problem": problem.name,
        "stated": stated.value,
        "stated_error": stated.standard_error,
        "method": f"{result.method}, frozen stage",
        "value": result.estimate,
        "standard_error": result.standard_error,
        "episodes": result.episodes,
        "seed": seed,
        "distance_in_standard_errors": distance,
        "agrees": distance <= _AGREEMENT,
    }
