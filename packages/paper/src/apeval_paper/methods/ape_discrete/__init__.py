"""`ape-discrete`: tabular APE on slots of s and a_E, a baseline of the paper's Section VI."""

from __future__ import annotations

from apeval.learn.method import Learner, method
from apeval.problem.problem import Problem
from apeval_paper.methods.ape_discrete.config import ApeDiscreteConfig
from apeval_paper.methods.slots.state import no_slots


def _suits(problem: Problem) -> str | None:
    if problem.initial is not None:
        return "ape-discrete does not control the initial state: use mc here"
    return no_slots("ape-discrete", problem)


@method(
    "ape-discrete",
    description="tabular APE on slots of s and a_E (the paper's baseline APE_discrete)",
    config=ApeDiscreteConfig,
    suits=_suits,
)
def start(problem: Problem, config: ApeDiscreteConfig) -> Learner:
    """One decision at a time."""
    from apeval_paper.methods.ape_discrete.learner import DiscreteLearner

    return DiscreteLearner(problem, config)
