"""By which function a problem was built: messages name the arguments that a user knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apeval.adapt.disturbance_source import DisturbanceSource
from apeval.adapt.disturbed import EpisodePlan
from apeval.adapt.functional_env import FunctionalMaker
from apeval.adapt.vector_block import VectorPlan
from apeval.problem.argument_copies import WithOwnArguments
from apeval.problem.problem import Problem


@dataclass(frozen=True)
class Entrance:
    """How a problem was built."""

    call: str
    """The function, such as from_env."""
    fails: str
    """Its argument for the failure event."""
    example: str
    """A margin as it may be given there."""
    sources: tuple[DisturbanceSource, ...] = ()
    """The disturbances that it was given, where it takes such."""

    @property
    def margin(self) -> str:
        """How a margin is given, as code.

        >>> Entrance("from_env", "fails", "lambda obs: 2.4 - abs(obs[0])").margin
        'from_env(…, margin=lambda obs: 2.4 - abs(obs[0]))'
        """
        return f"{self.call}(…, margin={self.example})"

    @property
    def can_hold(self) -> bool:
        """Whether a disturbance comes anew at every step, and could stay for several."""
        return any(not it.at_start and it.hold == 1 for it in self.sources)


_ONE, _ROWS = "lambda obs: 2.4 - abs(obs[0])", "lambda obs: 2.4 - abs(obs[:, 0])"
_STATE = "lambda x: 2.4 - abs(x[:, 0])"
_JUDGE = "lambda obs, terminated, truncated, info: 2.4 - abs(obs[0])"


def entrance(problem: Problem) -> Entrance:
    """How a problem was built.

    Args:
        problem: Any problem.

    Returns:
        The function with the names of its arguments; `Problem` itself where it is none of apeval's.
    """
    step: Any = problem.step.call if isinstance(problem.step, WithOwnArguments) else problem.step
    step = getattr(step, "of", step)  # of a problem with monitors
    fleet = getattr(step, "__self__", None)
    plan = getattr(fleet, "plan", getattr(fleet, "make_env", None))
    if isinstance(plan, EpisodePlan):
        return Entrance("from_env", "fails", _ONE, plan.sources)
    if isinstance(plan, VectorPlan):
        functional = isinstance(plan.make.env, FunctionalMaker)
        name = "from_functions" if functional else "from_vector_env"
        return Entrance(name, "fails", _ROWS, plan.sources)
    if plan is not None:
        return Entrance("from_gymnasium", "failed", _JUDGE)
    return Entrance("Problem", "failed", _STATE)
