"""`ape-tabular`: the paper's Section IV."""

from __future__ import annotations

from importlib.util import find_spec

from apeval.errors import ApevalError
from apeval.learn.ape_tabular.config import ApeTabularConfig
from apeval.learn.method import Learner, method
from apeval.problem.agent import Absent, Deterministic, Stochastic
from apeval.problem.problem import Problem


def _suits(problem: Problem) -> str | None:
    if not problem.nominal.discrete:
        return "ape-tabular needs a discrete disturbance (Categorical): use mc here"
    if problem.initial is not None:
        return "ape-tabular does not control the initial state: use mc here"
    return None


def _require_sense(problem: Problem, config: ApeTabularConfig) -> None:
    """Refuse settings that contradict the problem or each other."""
    if config.time_in_state and problem.horizon is None:
        raise ApevalError("time_in_state needs a problem with a horizon: this one has none")
    outcomes = problem.nominal.outcomes or 1
    if config.true_floor and outcomes * config.delta >= 1.0:
        raise ApevalError(
            f"true_floor with delta={config.delta} leaves nothing to learn for {outcomes} "
            f"outcomes: set delta below {1.0 / outcomes:.3g}"
        )
    if config.nominal_share + config.wary_share > 1.0:
        raise ApevalError("nominal_share and wary_share must not exceed 1 together")
    known_agent = isinstance(problem.agent, Stochastic | Deterministic | Absent)
    if config.value_update == "exact" and not known_agent:
        raise ApevalError(
            "value_update=exact sums over agent actions, and this agent's probabilities are not "
            "known: give it as apeval.Stochastic(probabilities), or use value_update=online"
        )


@method(
    "ape-tabular",
    description="accelerated policy evaluation in tables (the paper's Section IV)",
    config=ApeTabularConfig,
    suits=_suits,
)
def start(problem: Problem, config: ApeTabularConfig) -> Learner:
    """Compiled where the problem has transition tables and Numba is there (the extra `compiled`),
    else the plain loop, which gives the same numbers."""
    _require_sense(problem, config)
    if problem.table is not None and find_spec("numba") is not None:
        from apeval.learn.ape_tabular.compiled import CompiledLearner

        return CompiledLearner(problem, config)
    from apeval.learn.ape_tabular.plain import PlainLearner

    return PlainLearner(problem, config)
