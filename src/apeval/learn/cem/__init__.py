"""`cem`: the cross-entropy method with one density per decision, the usual baseline."""

from __future__ import annotations

from apeval.learn.cem.config import CemConfig
from apeval.learn.method import Learner, method
from apeval.problem.problem import Problem

_LONGEST = 1_000_000


def _suits(problem: Problem) -> str | None:
    if problem.longest > _LONGEST:
        return (
            f"cem keeps a density for every decision, of {_LONGEST:,} at the most, and an episode "
            f"may have {problem.longest:,}: give the problem a smaller horizon, or use mc here"
        )
    if problem.nominal.learnable:
        return None
    return f"cem cannot learn a {type(problem.nominal).__name__} disturbance: use mc here"


@method(
    "cem",
    description="cross-entropy method, an independent density per decision (the usual baseline)",
    config=CemConfig,
    suits=_suits,
)
def start(problem: Problem, config: CemConfig) -> Learner:
    """Episodes in lockstep batches."""
    from apeval.learn.cem.learner import CrossEntropy

    return CrossEntropy(problem, config)
