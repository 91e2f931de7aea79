"""`cem-discrete`: the cross-entropy method on slots, a baseline of the paper's Section VI."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.learn.method import Learner, method
from apeval.learn.slots.config import SlotConfig
from apeval.learn.slots.state import no_slots
from apeval.problem.problem import Problem
from apeval.problem.settings import setting


@dataclass(frozen=True)
class CemDiscreteConfig(SlotConfig):
    """The cross-entropy method on slots."""

    episodes_per_update: int = setting(50, "k: episodes before each update", low=1, high=10**6)
    delta: float = setting(
        0.1,
        "δ_CEM times the number of joint slots, applied before normalisation",
        low=1e-12,
        high=1.0,
    )
    time_in_state: bool = setting(False, "learn π_E(· | s, t) instead of π_E(· | s)")


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
