"""`ape-tabular`: the paper's Section IV."""

from __future__ import annotations

from apeval.learn.ape_tabular.config import ApeTabularConfig
from apeval.learn.method import Learner, method
from apeval.problem.problem import Problem


def _suits(problem: Problem) -> str | None:
    if not problem.nominal.discrete:
        return "ape-tabular needs a discrete disturbance (Categorical): use mc here"
    if problem.initial is not None:
        return "ape-tabular does not control the initial state: use mc here"
    return None


@method(
    "ape-tabular",
    description="accelerated policy evaluation in tables (the paper's Section IV)",
    config=ApeTabularConfig,
    suits=_suits,
)
def start(problem: Problem, config: ApeTabularConfig) -> Learner:
    """Compiled where the problem has transition tables, else the plain loop."""
    if problem.table is not None:
        from apeval.learn.ape_tabular.compiled import CompiledLearner

        return CompiledLearner(problem, config)
    from apeval.learn.ape_tabular.plain import PlainLearner

    return PlainLearner(problem, config)
