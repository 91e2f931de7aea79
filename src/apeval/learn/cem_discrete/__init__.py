"""`cem-discrete`: the cross-entropy method on slots, a baseline of the paper's Section VI."""

from __future__ import annotations

from apeval.learn.cem_discrete.config import CemDiscreteConfig
from apeval.learn.method import Learner, method
from apeval.learn.slots.state import no_slots
from apeval.problem.problem import Problem


@method(
    "cem-discrete",
    description="the cross-entropy method on slots of s and a_E (the paper's CEM_discrete)",
    config=CemDiscreteConfig,
    suits=lambda problem: no_slots("cem-discrete", problem),
)
def start(problem: Problem, config: CemDiscreteConfig) -> Learner:
    """Episodes in lockstep batches."""
    from apeval.learn.cem_discrete.learner import CrossEntropyLearner

    return CrossEntropyLearner(problem, config)
