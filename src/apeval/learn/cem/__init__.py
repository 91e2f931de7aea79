"""`cem`: the cross-entropy method with one density per decision, the usual baseline."""

from __future__ import annotations

from apeval.learn.cem.config import CemConfig
from apeval.learn.method import Learner, method
from apeval.problem.laws import Categorical
from apeval.problem.problem import Problem

_LONGEST = 1_000_000


def _suits(problem: Problem) -> str | None:
    from apeval.learn.whitened import can_whiten

    if problem.longest > _LONGEST:
        return (
            f"cem keeps a density for every decision, of {_LONGEST:,} at the most, and an episode "
            f"may have {problem.longest:,}: give the problem a smaller horizon, or use mc here"
        )
    if isinstance(problem.nominal, Categorical) or can_whiten(problem.nominal):
        return None
    return "cem needs a Normal, TruncatedNormal or Categorical disturbance: use mc here"


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
