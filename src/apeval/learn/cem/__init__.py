"""`cem`: the cross-entropy method with one density per decision, the usual baseline."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.learn.method import Learner, method
from apeval.problem.problem import Problem
from apeval.problem.settings import setting


@dataclass(frozen=True)
class CemConfig:
    """The cross-entropy method on whole episodes, with no state feedback."""

    learn_share: float = setting(
        0.7, "share of the budget for learning at the most; the rest estimates", low=0.0, high=0.99
    )
    updates: int = setting(
        5, "batches that the learning budget is cut into, at the least", low=1, high=10_000
    )
    batch: int = setting(
        1_000,
        "episodes of a batch at the most: larger budgets have more batches",
        low=10,
        high=10**6,
    )
    elite: float = setting(
        0.1, "ρ: share of a batch, by margin, that the next level keeps", low=0.001, high=0.5
    )
    smoothing: float = setting(
        0.7, "α: weight of the new parameters against the old ones", low=0.01, high=1.0
    )
    smallest_std: float = setting(0.5, "floor of σ_t in whitened coordinates", low=1e-3, high=1.0)
    floor: float = setting(0.1, "share of the nominal in each discrete law", low=1e-6, high=1.0)
    nominal_share: float = setting(
        0.2, "share of the frozen stage's episodes drawn from π_E,gt", low=0.01, high=1.0
    )


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
