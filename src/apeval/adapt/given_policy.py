"""Whatever a user gives as a policy, as a `Policy`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apeval.adapt.memory_policy import MemoryPolicy, is_memory_policy
from apeval.adapt.policies import FunctionPolicy, Policy
from apeval.adapt.recurrent_policies import refuse_memory
from apeval.adapt.torch_memory import TorchMemoryPolicy, hands_on_a_state
from apeval.adapt.torch_policy import TorchPolicy, is_module
from apeval.errors import ProblemError
from apeval.problem.agent import Stochastic


def as_policy(policy: Any, space: Any, seen: Any) -> Policy:
    """What a user may give as `policy=`, for these spaces of actions and observations."""
    if isinstance(policy, str | Path) and Path(policy).suffix.lower() == ".onnx":
        from apeval.adapt.onnx_policy import load_onnx

        policy = load_onnx(policy)
    elif isinstance(policy, str | Path):
        from apeval.adapt.sb3 import load_sb3

        policy = load_sb3(policy)
    if isinstance(policy, Policy):
        if not policy.has_memory:
            for part in (policy, *vars(policy).values()):
                refuse_memory(part)
        return policy.fitted(space, seen)
    if is_memory_policy(policy):
        return MemoryPolicy(policy.act, policy.reset).fitted(space, seen)
    if isinstance(policy, Stochastic):
        raise ProblemError(
            "apeval.Stochastic is a policy over batches of states: here use "
            "apeval.DiscretePolicy(probabilities), a function of one observation"
        )
    if is_module(policy) and not _predicts(policy):
        if hands_on_a_state(policy):
            return TorchMemoryPolicy(policy, space).fitted(space, seen)
        refuse_memory(policy)
        return TorchPolicy(policy, space).fitted(space, seen)
    if _predicts(policy):
        from apeval.adapt.sb3 import predicting

        return as_policy(predicting(policy), space, seen)
    refuse_memory(policy)
    if callable(policy):
        return FunctionPolicy(policy)
    near = next((name for name in ("act", "forward", "get_action") if hasattr(policy, name)), None)
    remedy = f"policy=lambda obs: policy.{near}(obs)" if near else "policy=lambda obs: action"
    raise ProblemError(
        f"the policy is a {type(policy).__name__}, expected a function of the observation, a "
        "Stable-Baselines3 model or its zip file, a torch module, or an object with reset() and "
        f"act(obs, state): give {remedy}"
    )


def _predicts(policy: Any) -> bool:
    return callable(getattr(policy, "predict", None))
