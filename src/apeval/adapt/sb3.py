"""Policies of Stable-Baselines3, from a model or its zip file. It is imported only when used."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from apeval.adapt.policies import DiscretePolicy, GaussianPolicy, Policy
from apeval.errors import ApevalError, ProblemError, unknown
from apeval.problem.types import Array, FloatArray

_BY_POLICY = {"dqn": "DQN", "sac": "SAC", "td3": "TD3"}
_ALGORITHMS = ("PPO", "A2C", "DQN", "SAC", "TD3", "DDPG")


class SB3Policy(Policy):
    """A model's most likely action, ``predict(obs, deterministic=True)``."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def act(self, obs: Any, u: FloatArray) -> Any:
        return self.model.predict(obs, deterministic=True)[0]

    def fit(self, space: Any, seen: Any) -> None:
        for what, theirs in (("action", space), ("observation", seen)):
            mine = getattr(self.model, f"{what}_space", theirs)
            sizes = [(getattr(s, "shape", None), getattr(s, "n", None)) for s in (mine, theirs)]
            if sizes[0] != sizes[1]:
                raise ProblemError(
                    f"the model was trained with the {what} space {mine}, the environment has "
                    f"{theirs}: give the model that was trained for this environment, or a "
                    "function that fits the two (policy=lambda obs: …)"
                )


def load_sb3(
    path: str | Path, algorithm: str | None = None, *, deterministic: bool = True
) -> Policy:
    """The policy in a model's zip file; the algorithm is read from it where it can be.

    Loading such a file executes code that it holds: load only files that you trust. With
    `deterministic=False` actions are drawn from the policy's distribution (PPO, A2C, SAC).

    Args:
        path: The zip file that ``model.save`` wrote.
        algorithm: PPO, A2C, DQN, SAC, TD3 or DDPG; by default what the file says.
        deterministic: Whether the most likely action is taken.

    Returns:
        A policy for ``from_env(policy=…)``.

    Raises:
        ApevalError: There is no such file, it is no model, or Stable-Baselines3 is missing.
        ProblemError: With `deterministic=False`, the policy's randomness is not known.
    """
    path = Path(path)
    if not path.exists():
        raise ApevalError(f"no policy file '{path}': give the zip file that model.save wrote")
    if not zipfile.is_zipfile(path):
        raise ApevalError(
            f"'{path}' is no Stable-Baselines3 zip file: build the policy in your own code and "
            "give policy=lambda obs: action, or the torch module itself"
        )
    try:
        import stable_baselines3
    except ImportError:
        raise ApevalError(
            "reading a Stable-Baselines3 policy needs the extra: pip install 'apeval[train]'"
        ) from None
    name = algorithm or _algorithm(path)
    if name not in _ALGORITHMS:
        raise unknown("algorithm", name, _ALGORITHMS)
    try:
        model = getattr(stable_baselines3, name).load(path, device="cpu")
    except Exception as error:
        raise ApevalError(
            f"Stable-Baselines3 cannot load '{path}' as {name} ({type(error).__name__}: {error}): "
            "was it saved by this algorithm (apeval.load_sb3(path, 'PPO')) and a similar version?"
        ) from error
    return SB3Policy(model) if deterministic else sb3_stochastic(model)


def _algorithm(path: Path) -> str:
    """Which algorithm wrote the file, from the parts of it that are plain text."""
    try:
        with zipfile.ZipFile(path) as archive:
            data = json.loads(archive.read("data"))
        module = str(data["policy_class"].get("__module__", ""))
    except (KeyError, ValueError, AttributeError) as error:
        raise ApevalError(
            f"'{path}' does not say which algorithm saved it ({type(error).__name__}: {error}): "
            "use policy=apeval.load_sb3(path, 'PPO')"
        ) from None
    for part, name in _BY_POLICY.items():
        if f".{part}." in module:
            return name
    return "PPO" if "clip_range" in data else "A2C"


def sb3_stochastic(model: Any) -> Policy:
    """A model's policy with its randomness, drawn from the episode's own stream: PPO and A2C over
    discrete or continuous actions, and SAC.

    Args:
        model: A Stable-Baselines3 model.

    Returns:
        A `DiscretePolicy` or a `GaussianPolicy`.

    Raises:
        ProblemError: The randomness of this model's policy is not known.
    """
    policy = model.policy
    if hasattr(policy, "get_distribution"):
        inner = _distribution(model, np.zeros(model.observation_space.shape, np.float32))
        if hasattr(inner, "probs"):
            return DiscretePolicy(lambda obs: _numbers(_distribution(model, obs).probs))
        if hasattr(inner, "stddev") and not getattr(policy, "squash_output", False):
            space = model.action_space
            return GaussianPolicy(
                lambda obs: _numbers(_distribution(model, obs).mean),
                lambda obs: _numbers(_distribution(model, obs).stddev),
                dim=int(np.prod(space.shape)),
                squash=lambda a: np.clip(a, space.low.ravel(), space.high.ravel()),
            )
    if hasattr(getattr(policy, "actor", None), "get_action_dist_params"):
        return GaussianPolicy(
            lambda obs: _sac(model, obs)[0],
            lambda obs: _sac(model, obs)[1],
            dim=int(np.prod(model.action_space.shape)),
            squash=lambda a: policy.unscale_action(np.tanh(a)),
        )
    raise ProblemError(
        f"the randomness of {type(model).__name__}'s policy is not known to apeval: use the model "
        "itself (its most likely action), or DiscretePolicy or GaussianPolicy"
    )


def _distribution(model: Any, obs: Any) -> Any:
    import torch

    with torch.no_grad():
        tensor, _ = model.policy.obs_to_tensor(np.asarray(obs))
        return model.policy.get_distribution(tensor).distribution


def _sac(model: Any, obs: Any) -> tuple[Array, Array]:
    import torch

    with torch.no_grad():
        tensor, _ = model.policy.obs_to_tensor(np.asarray(obs))
        mean, log_std, _ = model.policy.actor.get_action_dist_params(tensor)
        return _numbers(mean), _numbers(log_std.exp())


def _numbers(tensor: Any) -> FloatArray:
    row: FloatArray = tensor[0].cpu().numpy().astype(np.float64)
    return row
