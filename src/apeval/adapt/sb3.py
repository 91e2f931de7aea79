"""Policies of Stable-Baselines3, from a model or its zip file. It is imported only when used."""

from __future__ import annotations

import copy
import json
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from apeval.adapt.batches import mixed, stacked
from apeval.adapt.policies import Answer, InBatches, Policy
from apeval.adapt.random_policies import DiscretePolicy, GaussianPolicy
from apeval.adapt.recurrent_policies import refuse_memory, with_memory
from apeval.adapt.torch_policy import quietly
from apeval.adapt.training import Training, refuse_statistics
from apeval.errors import ApevalError, ProblemError, unknown
from apeval.problem.types import Array, FloatArray

_BY_POLICY = {"dqn": "DQN", "sac": "SAC", "td3": "TD3"}
_ALGORITHMS = ("PPO", "A2C", "DQN", "SAC", "TD3", "DDPG")


class SB3Policy(InBatches):
    """A model's most likely action, ``predict(obs, deterministic=True)``."""

    def __init__(self, model: Any, training: Training) -> None:
        self.model, self.training = model, training
        self.usual = _predicts_as_usual(model)

    def fitted(self, space: Any, seen: Any) -> Policy:
        """Asks for one observation at a time where the rows of a batch are not independent."""
        super().fitted(space, seen)
        self.together = mixed(self._predicted, seen) is None
        return self

    def rows(self, observations: Any, u: FloatArray, memories: Sequence[Any]) -> Answer:
        return self._predicted(observations), memories

    def _predicted(self, observations: Any) -> Array:
        with quietly():
            if not self.usual:
                return np.asarray(_action(self.model.predict(observations, deterministic=True)))
            # what `predict` does, but for walking through all layers each time to set their mode
            network = getattr(self.model, "policy", self.model)
            if network.training:
                network.set_training_mode(False)
            tensor, _ = network.obs_to_tensor(observations)
            actions: Array = network._predict(tensor, deterministic=True).cpu().numpy()
        space = network.action_space
        actions = actions.reshape(len(actions), *space.shape)
        if not hasattr(space, "low"):
            return actions
        if network.squash_output:
            return np.asarray(network.unscale_action(actions))
        return np.clip(actions, space.low, space.high)


class PredictPolicy(Policy):
    """Any other object with ``predict(obs, deterministic=True)``, one observation at a time."""

    def __init__(self, model: Any, training: Training) -> None:
        self.model, self.training = model, training

    def act(self, obs: Any, u: FloatArray) -> Any:
        return _action(self.model.predict(obs, deterministic=True))


def predicting(model: Any, normalize: str | None = "check", path: Path | None = None) -> Policy:
    """The policy of a model that has neither memory nor statistics of its own."""
    training = _examined(model, normalize, path)
    return SB3Policy(model, training) if _is_sb3(model) else PredictPolicy(model, training)


def _is_sb3(model: Any) -> bool:
    if "stable_baselines3" not in sys.modules:
        return False
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy

    return isinstance(model, BaseAlgorithm | BasePolicy)


def _predicts_as_usual(model: Any) -> bool:
    """Whether a model's `predict` is Stable-Baselines3's own."""
    from stable_baselines3 import DQN
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy

    usual = (BaseAlgorithm.predict, BasePolicy.predict, DQN.predict)  # DQN's differs at random
    network = getattr(model, "policy", model)
    return type(model).predict in usual and type(network).predict is BasePolicy.predict


def _action(answer: Any) -> Any:
    """The action in what `predict` returned."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise ProblemError(
            f"the model's predict returned a {type(answer).__name__}, expected a pair (action, "
            "state): give policy=lambda obs: … and pick the action out of what it returns"
        )
    action, state = answer
    if state is not None:
        raise with_memory("its predict returns a state")
    return action


def load_sb3(
    path: str | Path,
    algorithm: str | None = None,
    *,
    deterministic: bool = True,
    normalize: str | None = "check",
) -> Policy:
    """The policy in a model's zip file; the algorithm is read from it where it can be.

    Loading such a file executes code that it holds: load only files that you trust. With
    `deterministic=False` actions are drawn from the policy's distribution (PPO, A2C, SAC).

    A policy with memory is refused. So is one that was trained on observations normalised by
    `VecNormalize`, or that does far worse in `from_env`'s environment than it did in training:
    the file does not hold the statistics.

    Args:
        path: The zip file that ``model.save`` wrote.
        algorithm: PPO, A2C, DQN, SAC, TD3 or DDPG; by default what the file says.
        deterministic: Whether the most likely action is taken.
        normalize: None says that the policy takes the environment's observations as they are;
            then neither its statistics nor its training are looked at.

    Returns:
        A policy for ``from_env(policy=…)``.

    Raises:
        ApevalError: There is no such file, it is no model, or Stable-Baselines3 is missing.
        ProblemError: The policy has memory or statistics; or, with `deterministic=False`, its
            randomness is not known.
    """
    path = Path(path)
    model = load_model(path, algorithm)
    if deterministic:
        return predicting(model, normalize, path)
    return _stochastic(model, _examined(model, normalize, path))


def load_model(path: Path, algorithm: str | None = None) -> Any:
    """The model in a zip file, to predict or to go on learning.

    Raises:
        ApevalError: The file is missing, no such file, or of an algorithm that is not known.
    """
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
    about = _about(path)
    _refuse_contrib(path, about)
    name = algorithm or _algorithm(path, about)
    if name not in _ALGORITHMS:
        raise unknown("algorithm", name, _ALGORITHMS)
    try:
        model = getattr(stable_baselines3, name).load(path, device="cpu")
    except Exception as error:
        raise ApevalError(
            f"Stable-Baselines3 cannot load '{path}' as {name} ({type(error).__name__}: {error}): "
            "was it saved by this algorithm (apeval.load_sb3(path, 'PPO')) and a similar version?"
        ) from error
    return model


def _about(path: Path) -> dict[str, Any]:
    """The parts of a zip file that are plain text; empty where there are none."""
    try:
        with zipfile.ZipFile(path) as archive:
            data = json.loads(archive.read("data"))
    except (KeyError, ValueError, OSError, RecursionError, zipfile.BadZipFile):
        return {}
    return data if isinstance(data, dict) else {}


def _module(about: dict[str, Any]) -> str | None:
    """Where the policy's class comes from."""
    kind = about.get("policy_class")
    module = kind.get("__module__") if isinstance(kind, dict) else None
    return module if isinstance(module, str) else None


def _refuse_contrib(path: Path, about: dict[str, Any]) -> None:
    """Files of sb3-contrib, one of whose algorithms has memory."""
    module = _module(about) or ""
    if "recurrent" in module:
        raise with_memory(f"{path} holds a policy of {module}")
    if module.startswith("sb3_contrib"):
        raise ApevalError(
            f"'{path}' is a file of sb3-contrib ({module}): load it in your own code and give the "
            "model, policy=model"
        )


def _algorithm(path: Path, about: dict[str, Any]) -> str:
    """Which algorithm wrote the file."""
    module = _module(about)
    if module is None:
        raise ApevalError(
            f"'{path}' does not say which algorithm saved it: use "
            "policy=apeval.load_sb3(path, 'PPO')"
        )
    for part, name in _BY_POLICY.items():
        if f".{part}." in module:
            return name
    return "PPO" if "clip_range" in about else "A2C"


def _examined(model: Any, normalize: str | None, path: Path | None = None) -> Training:
    """What the model tells of its training, if it may be evaluated at all."""
    if normalize not in ("check", None):
        raise ApevalError(
            f"normalize is {normalize!r}: leave it out, or give None for a policy that takes the "
            "environment's observations as they are"
        )
    refuse_memory(model)
    if normalize is not None:
        refuse_statistics(model, path)
    return Training.of(model, compare=normalize is not None)


def sb3_stochastic(model: Any, *, normalize: str | None = "check") -> Policy:
    """A model's policy with its randomness, drawn from the episode's own stream: PPO and A2C over
    discrete or continuous actions, and SAC.

    Memory and normalised observations are refused as by `load_sb3`.

    Args:
        model: A Stable-Baselines3 model.
        normalize: None says that the policy takes the environment's observations as they are.

    Returns:
        A `DiscretePolicy` or a `GaussianPolicy`.

    Raises:
        ProblemError: The randomness of this model's policy is not known, or it has memory or
            statistics.
    """
    return _stochastic(model, _examined(model, normalize))


def _stochastic(model: Any, training: Training) -> Policy:
    policy = _random_policy(model)
    policy.training = training
    return policy


def _random_policy(model: Any) -> Policy:
    policy = model.policy
    if hasattr(policy, "get_distribution"):
        inner = _distribution(model, _some_observation(model.observation_space))
        if hasattr(inner, "probs"):
            return DiscretePolicy(lambda obs: _numbers(_distribution(model, obs).probs), batch=True)
        if hasattr(inner, "stddev") and not getattr(policy, "squash_output", False):
            space = model.action_space
            return GaussianPolicy(
                lambda obs: _numbers(_distribution(model, obs).mean),
                lambda obs: _numbers(_distribution(model, obs).stddev),
                dim=int(np.prod(space.shape)),
                squash=lambda a: np.clip(a, space.low.ravel(), space.high.ravel()),
                batch=True,
            )
    if hasattr(getattr(policy, "actor", None), "get_action_dist_params"):
        return GaussianPolicy(
            lambda obs: _sac(model, obs)[0],
            lambda obs: _sac(model, obs)[1],
            dim=int(np.prod(model.action_space.shape)),
            squash=lambda a: policy.unscale_action(np.tanh(a)),
            batch=True,
        )
    raise ProblemError(
        f"the randomness of {type(model).__name__}'s policy is not known to apeval: use the model "
        "itself (its most likely action), or DiscretePolicy or GaussianPolicy"
    )


def _some_observation(space: Any) -> Any:
    """Any observation, as a batch of one."""
    drawn = copy.deepcopy(space)  # the user's own generator is left alone
    drawn.seed(0)
    return stacked([drawn.sample()], np.zeros(1, np.int64), 1)


def _distribution(model: Any, observations: Any) -> Any:
    with quietly():
        tensor, _ = model.policy.obs_to_tensor(observations)
        return model.policy.get_distribution(tensor).distribution


def _sac(model: Any, observations: Any) -> tuple[Array, Array]:
    with quietly():
        tensor, _ = model.policy.obs_to_tensor(observations)
        mean, log_std, _ = model.policy.actor.get_action_dist_params(tensor)
        return _numbers(mean), _numbers(log_std.exp())


def _numbers(tensor: Any) -> FloatArray:
    rows: FloatArray = tensor.cpu().numpy().astype(np.float64)
    return rows
