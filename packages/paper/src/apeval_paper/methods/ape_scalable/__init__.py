"""`ape-scalable`: the paper's Section V."""

from __future__ import annotations

from importlib.util import find_spec

from apeval.errors import ApevalError
from apeval.learn.method import Learner, method
from apeval.learn.whitened import can_whiten
from apeval.problem.problem import Problem
from apeval_paper.methods.ape_scalable.config import ApeScalableConfig


def _suits(problem: Problem) -> str | None:
    if not can_whiten(problem.nominal):
        return (
            f"ape-scalable cannot learn a {type(problem.nominal).__name__} disturbance, it needs a "
            "continuous one such as Normal: use ape-tabular or mc"
        )
    return _missing()


def _missing() -> str | None:
    missing = [name for name in ("torch", "zuko") if find_spec(name) is None]
    if missing:
        return f"ape-scalable needs {' and '.join(missing)}: pip install 'apeval[scalable]'"
    return None


@method(
    "ape-scalable",
    description="accelerated policy evaluation with a GP and a flow (the paper's Section V)",
    config=ApeScalableConfig,
    suits=_suits,
)
def start(problem: Problem, config: ApeScalableConfig) -> Learner:
    """Imported here: torch takes seconds to load."""
    if missing := _missing():
        raise ApevalError(missing)
    from apeval_paper.methods.ape_scalable.learner import ScalableLearner

    return ScalableLearner(problem, config)
