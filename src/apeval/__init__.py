"""apeval: how often does a policy fail when failure is too rare to see?

>>> import apeval
>>> problem = apeval.make("walk", top=5)
>>> result = apeval.evaluate(problem, steps=2_000, seed=0)
>>> result.problem
'walk'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from apeval.version import __version__

if TYPE_CHECKING:
    from apeval.environments import make as make
    from apeval.errors import ApevalError as ApevalError
    from apeval.problem.agent import Deterministic as Deterministic
    from apeval.problem.agent import Stochastic as Stochastic
    from apeval.problem.gym import from_gymnasium as from_gymnasium
    from apeval.problem.laws import Categorical as Categorical
    from apeval.problem.laws import Normal as Normal
    from apeval.problem.laws import TruncatedNormal as TruncatedNormal
    from apeval.problem.problem import Problem as Problem
    from apeval.problem.table import TabularModel as TabularModel
    from apeval.problem.tabular import tabular_problem as tabular_problem
    from apeval.problem.truth import Truth as Truth
    from apeval.run.evaluate import evaluate as evaluate
    from apeval.run.result import Result as Result
    from apeval.simulate.check import check_problem as check_problem
    from apeval.simulate.replay import replay as replay

# Where each public name lives; loaded on first use, so that `import apeval` stays light.
_HOME = {
    "ApevalError": "apeval.errors",
    "Categorical": "apeval.problem.laws",
    "Deterministic": "apeval.problem.agent",
    "Normal": "apeval.problem.laws",
    "Problem": "apeval.problem.problem",
    "Result": "apeval.run.result",
    "Stochastic": "apeval.problem.agent",
    "TabularModel": "apeval.problem.table",
    "TruncatedNormal": "apeval.problem.laws",
    "Truth": "apeval.problem.truth",
    "check_problem": "apeval.simulate.check",
    "evaluate": "apeval.run.evaluate",
    "from_gymnasium": "apeval.problem.gym",
    "make": "apeval.environments",
    "replay": "apeval.simulate.replay",
    "tabular_problem": "apeval.problem.tabular",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'apeval' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
