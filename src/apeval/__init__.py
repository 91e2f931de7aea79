"""apeval: how often does a policy fail when failure is too rare to see?

>>> import apeval
>>> problem = apeval.make("walk", top=5)
>>> result = apeval.evaluate(problem, steps=2_000, seed=0)
>>> result.problem
'walk'
"""

from __future__ import annotations

import importlib

from apeval.version import __version__

TYPE_CHECKING = False  # as in `typing`, which takes longer to load than everything here
if TYPE_CHECKING:
    from typing import Any

    from apeval.adapt.events import BlankSensor as BlankSensor
    from apeval.adapt.events import DropAction as DropAction
    from apeval.adapt.events import Event as Event
    from apeval.adapt.from_env import from_env as from_env
    from apeval.adapt.from_functions import from_functions as from_functions
    from apeval.adapt.from_functions import from_jax as from_jax
    from apeval.adapt.memory_policy import MemoryPolicy as MemoryPolicy
    from apeval.adapt.noises import ActionNoise as ActionNoise
    from apeval.adapt.noises import CustomNoise as CustomNoise
    from apeval.adapt.noises import ObservationNoise as ObservationNoise
    from apeval.adapt.noises import ParameterNoise as ParameterNoise
    from apeval.adapt.noises import StartNoise as StartNoise
    from apeval.adapt.onnx_policy import load_onnx as load_onnx
    from apeval.adapt.policies import BatchPolicy as BatchPolicy
    from apeval.adapt.random_policies import DiscretePolicy as DiscretePolicy
    from apeval.adapt.random_policies import GaussianPolicy as GaussianPolicy
    from apeval.adapt.sb3 import load_sb3 as load_sb3
    from apeval.adapt.sb3 import sb3_stochastic as sb3_stochastic
    from apeval.adapt.vector import from_vector_env as from_vector_env
    from apeval.environments import make as make
    from apeval.errors import ApevalError as ApevalError
    from apeval.hardening.environment import adversarial_env as adversarial_env
    from apeval.hardening.loop import harden as harden
    from apeval.hardening.minimax import exact_minimax as exact_minimax
    from apeval.hardening.natures import widened as widened
    from apeval.problem.agent import Deterministic as Deterministic
    from apeval.problem.agent import Stochastic as Stochastic
    from apeval.problem.correlated import with_correlated_noise as with_correlated_noise
    from apeval.problem.gym import from_gymnasium as from_gymnasium
    from apeval.problem.laws import Categorical as Categorical
    from apeval.problem.laws import Normal as Normal
    from apeval.problem.laws import TruncatedNormal as TruncatedNormal
    from apeval.problem.laws.scipy_stats import FromScipy as FromScipy
    from apeval.problem.problem import Problem as Problem
    from apeval.problem.specification.event import spec as spec
    from apeval.problem.tabular_model import TabularModel as TabularModel
    from apeval.problem.tabular_problem import tabular_problem as tabular_problem
    from apeval.problem.truth import Truth as Truth
    from apeval.results.comparison_folder import load_comparison as load_comparison
    from apeval.results.comparison_folder import save_comparison as save_comparison
    from apeval.results.folder import Run as Run
    from apeval.results.folder import load as load
    from apeval.results.recorder import Recorder as Recorder
    from apeval.results.resume import resume as resume
    from apeval.run.bound_verdict import judge as judge
    from apeval.run.budget_plan import plan as plan
    from apeval.run.completed_run import InMemory as InMemory
    from apeval.run.evaluate import evaluate as evaluate
    from apeval.run.merge import merge as merge
    from apeval.run.paired_policies import compare_anytime as compare_anytime
    from apeval.run.paired_policies import compare_policies as compare_policies
    from apeval.run.policy_comparison import compare as compare
    from apeval.run.result import Result as Result
    from apeval.run.whatif import reweight as reweight
    from apeval.simulate.check import check_problem as check_problem
    from apeval.simulate.replay import replay as replay

# Where each public name lives; loaded on first use, so that `import apeval` stays light.
_HOME = {
    "ActionNoise": "apeval.adapt.noises",
    "ApevalError": "apeval.errors",
    "BatchPolicy": "apeval.adapt.policies",
    "BlankSensor": "apeval.adapt.events",
    "Categorical": "apeval.problem.laws",
    "CustomNoise": "apeval.adapt.noises",
    "Deterministic": "apeval.problem.agent",
    "DiscretePolicy": "apeval.adapt.random_policies",
    "DropAction": "apeval.adapt.events",
    "Event": "apeval.adapt.events",
    "FromScipy": "apeval.problem.laws.scipy_stats",
    "GaussianPolicy": "apeval.adapt.random_policies",
    "InMemory": "apeval.run.completed_run",
    "MemoryPolicy": "apeval.adapt.memory_policy",
    "Normal": "apeval.problem.laws",
    "ObservationNoise": "apeval.adapt.noises",
    "ParameterNoise": "apeval.adapt.noises",
    "Problem": "apeval.problem.problem",
    "Recorder": "apeval.results.recorder",
    "Result": "apeval.run.result",
    "Run": "apeval.results.folder",
    "StartNoise": "apeval.adapt.noises",
    "Stochastic": "apeval.problem.agent",
    "TabularModel": "apeval.problem.tabular_model",
    "TruncatedNormal": "apeval.problem.laws",
    "Truth": "apeval.problem.truth",
    "adversarial_env": "apeval.hardening.environment",
    "check_problem": "apeval.simulate.check",
    "compare": "apeval.run.policy_comparison",
    "compare_anytime": "apeval.run.paired_policies",
    "compare_policies": "apeval.run.paired_policies",
    "evaluate": "apeval.run.evaluate",
    "exact_minimax": "apeval.hardening.minimax",
    "from_env": "apeval.adapt.from_env",
    "from_functions": "apeval.adapt.from_functions",
    "from_jax": "apeval.adapt.from_functions",
    "from_vector_env": "apeval.adapt.vector",
    "from_gymnasium": "apeval.problem.gym",
    "harden": "apeval.hardening.loop",
    "judge": "apeval.run.bound_verdict",
    "load": "apeval.results.folder",
    "load_comparison": "apeval.results.comparison_folder",
    "load_onnx": "apeval.adapt.onnx_policy",
    "load_sb3": "apeval.adapt.sb3",
    "make": "apeval.environments",
    "merge": "apeval.run.merge",
    "plan": "apeval.run.budget_plan",
    "replay": "apeval.simulate.replay",
    "resume": "apeval.results.resume",
    "reweight": "apeval.run.whatif",
    "save_comparison": "apeval.results.comparison_folder",
    "sb3_stochastic": "apeval.adapt.sb3",
    "spec": "apeval.problem.specification.event",
    "tabular_problem": "apeval.problem.tabular_problem",
    "widened": "apeval.hardening.natures",
    "with_correlated_noise": "apeval.problem.correlated",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'apeval' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
