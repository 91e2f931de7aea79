"""`ape`, the default: an estimate with its interval from a few thousand decisions."""

from __future__ import annotations

from apeval.errors import ApevalError
from apeval.learn.ape.config import ApeConfig
from apeval.learn.method import Learner, find_method, method
from apeval.learn.whitened import can_whiten
from apeval.problem.problem import Problem


def suits(problem: Problem) -> str | None:
    """Every problem with a nominal that apeval can push."""
    if problem.nominal.discrete or can_whiten(problem.nominal):
        return None
    return (
        f"ape cannot push a {type(problem.nominal).__name__} disturbance: use Normal, "
        "TruncatedNormal, FromScipy or Categorical, or the method mc"
    )


@method(
    "ape",
    description="the default: learns where failures come from, then estimates how likely they are",
    config=ApeConfig,
    suits=suits,
)
def start(problem: Problem, config: ApeConfig) -> Learner:
    """The learner that fits the problem."""
    if config.learner == "tabular" or (config.learner == "auto" and problem.table is not None):
        tabular = find_method("ape-tabular")
        if (why_not := tabular.suits(problem)) is not None:
            raise ApevalError(f"learner={config.learner}: {why_not}; or use learner=auto")
        return tabular.start(problem, tabular.config())
    from apeval.learn.ape.learner import ApeLearner

    return ApeLearner(problem, config)
