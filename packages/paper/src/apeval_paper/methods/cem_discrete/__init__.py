"""`cem-discrete`: the cross-entropy method on slots, a baseline of the paper's Section VI."""

from __future__ import annotations

from apeval.learn.method import Learner, method
from apeval.problem.problem import Problem
from apeval_paper.methods.cem_discrete.config import CemDiscreteConfig
from apeval_paper.methods.slots.state import no_slots


@method(
    "cem-discrete",
    description="the cross-entropy method on slots of s and a_E (the paper's CEM_discrete)",
    config=CemDiscreteConfig,
    suits=lambda problem: no_slots("cem-discrete", problem),
)
def start(problem: Problem, config: CemDiscreteConfig) -> Learner:
    """Episodes in lockstep batches."""
    from apeval_paper.methods.cem_discrete.learner import CrossEntropyLearner

    return CrossEntropyLearner(problem, config)
