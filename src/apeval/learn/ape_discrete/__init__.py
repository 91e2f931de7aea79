"""`ape-discrete`: tabular APE on slots of s and a_E, a baseline of the paper's Section VI."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.learn.ape_tabular.config import TdConfig
from apeval.learn.method import Learner, method
from apeval.learn.slots.config import SlotConfig
from apeval.learn.slots.state import no_slots
from apeval.problem.problem import Problem
from apeval.problem.settings import setting


@dataclass(frozen=True)
class ApeDiscreteConfig(SlotConfig, TdConfig):
    """Tabular APE on slots."""

    delta: float = setting(
        0.1,
        "δ of Eq. MDP_p_update times the number of joint slots, applied before normalisation",
        low=1e-12,
        high=1.0,
    )
    policy_update: str = setting(
        "visited",
        "Eq. MDP_p_update for the visited slot alone ('visited', as printed) or for all tried "
        "slots of the visited state with their last successors ('row')",
        choices=("visited", "row"),
    )


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
    from apeval.learn.ape_discrete.learner import DiscreteLearner

    return DiscreteLearner(problem, config)
