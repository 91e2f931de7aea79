"""Policies of Stable-Baselines3, from a model, its zip file or a folder of rl-zoo3. It is imported
only when used."""

from __future__ import annotations

import copy
import importlib
import json
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from apeval.adapt.batches import mixed, stacked
from apeval.adapt.normalized_policy import FrameStackPolicy, NormalizedPolicy
from apeval.adapt.observation_statistics import ObservationStatistics, read_statistics
from apeval.adapt.policies import Answer, InBatches, Policy
from apeval.adapt.random_policies import DiscretePolicy, GaussianPolicy
from apeval.adapt.recurrent_policies import refuse_memory, with_memory
from apeval.adapt.rl_zoo import ZooRun, zoo_run
from apeval.adapt.sb3_recurrent import SB3RecurrentPolicy, is_recurrent
from apeval.adapt.torch_policy import quietly
from apeval.adapt.training import Training, refuse_statistics
from apeval.errors import ApevalError, ProblemError, unknown
from apeval.problem.types import Array, FloatArray

_BY_POLICY = {"dqn": "DQN", "sac": "SAC", "td3": "TD3"}
_ALGORITHMS = ("PPO", "A2C", "DQN", "SAC", "TD3", "DDPG")
_RECURRENT = "RecurrentPPO"  # of sb3-contrib


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


def predicting(model: Any) -> Policy:
    """The policy of a model in memory: its most likely action, with the statistics of its own
    environment where it has them."""
    return _of_model(model, "check", deterministic=True)


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
    path: Any,
    algorithm: str | None = None,
    *,
    deterministic: bool = True,
    normalize: Any = "check",
) -> Policy:
    """The policy in a model's zip file; the algorithm is read from it where it can be.

    Loading such a file executes code that it holds: load only files that you trust. With
    `deterministic=False` actions are drawn from the policy's distribution (PPO, A2C, SAC and
    RecurrentPPO).

    A folder that rl-zoo3 wrote (``logs/ppo/CartPole-v1_1``) is read with its `config.yml`: the last
    model (or the best one, where that is all there is), statistics and stacked frames as in
    training. An environment that lacks a wrapper of the training's is refused. A zip file is taken
    by itself, also one in such a folder.

    A policy that was trained on observations normalised by `VecNormalize` is refused where the
    statistics are not given, as the zip file does not hold them. So is one that does far worse in
    `from_env`'s environment than it did in training.

    Args:
        path: The zip file that ``model.save`` wrote, a folder of rl-zoo3, or a model in memory.
        algorithm: PPO, A2C, DQN, SAC, TD3, DDPG or RecurrentPPO; by default what the file says.
        deterministic: Whether the most likely action is taken.
        normalize: The statistics of the observations: the file that ``VecNormalize.save`` wrote,
            of which only numbers are read; a ``.npz`` with `mean` and `variance` (and perhaps
            `epsilon` and `clip`); or a `VecNormalize` object, as it is now. None says that the
            policy takes the environment's observations as they are; then neither statistics nor
            training are looked at.

    Returns:
        A policy for ``from_env(policy=…)``.

    Raises:
        ApevalError: There is no such file, it is no model, or Stable-Baselines3 is missing.
        ProblemError: The policy's statistics are missing, or memory that it does not hand on; or,
            with `deterministic=False`, its randomness is not known.
    """
    if not isinstance(path, str | Path):
        if not callable(getattr(path, "predict", None)):
            raise ApevalError(
                f"load_sb3 was given a {type(path).__name__}: give a zip file, a folder of "
                "rl-zoo3, or a model of Stable-Baselines3"
            )
        return _of_model(path, normalize, deterministic)
    path = Path(path)
    zoo = zoo_run(path) if path.is_dir() else None
    file = path if zoo is None else zoo.model
    model = load_model(file, algorithm)
    return _of_model(model, normalize, deterministic, file, zoo)


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
    name = algorithm or _algorithm(path, about)
    if name not in (*_ALGORITHMS, _RECURRENT):
        raise unknown("algorithm", name, (*_ALGORITHMS, _RECURRENT))
    home: Any = stable_baselines3
    if name == _RECURRENT:
        try:
            home = importlib.import_module("sb3_contrib")
        except ImportError:
            raise ApevalError(
                f"'{path}' holds a RecurrentPPO, which needs sb3-contrib: pip install "
                "'apeval[train,zoo]'"
            ) from None
    try:
        return getattr(home, name).load(path, device="cpu")
    except Exception as error:
        raise ApevalError(
            f"Stable-Baselines3 cannot load '{path}' as {name} ({type(error).__name__}: {error}): "
            "was it saved by this algorithm (apeval.load_sb3(path, 'PPO')) and a similar version?"
        ) from error


def _of_model(
    model: Any,
    normalize: Any,
    deterministic: bool,
    path: Path | None = None,
    zoo: ZooRun | None = None,
) -> Policy:
    """A model's policy, with its statistics and stacked frames."""
    recurrent = is_recurrent(model)
    if not recurrent:
        refuse_memory(model)
    if isinstance(normalize, str) and normalize == "check":
        known = None if zoo is None else zoo.statistics
        statistics = _attached(model) if known is None else read_statistics(known)
        if statistics is None:
            refuse_statistics(model, None if zoo is not None else path)
    else:
        statistics = None if normalize is None else read_statistics(normalize)
    training = Training.of(model, compare=normalize is not None)
    if zoo is not None and normalize is not None:
        training = replace(training, wrappers=zoo.wrappers)
    policy: Policy
    if recurrent:
        policy = SB3RecurrentPolicy(model, training, deterministic)
    elif not deterministic:
        policy = _random_policy(model)
        policy.training = training
    else:
        policy = SB3Policy(model, training) if _is_sb3(model) else PredictPolicy(model, training)
    if zoo is not None and zoo.frames > 1 and normalize is not None:
        policy = FrameStackPolicy(policy, zoo.frames)
    return policy if statistics is None else NormalizedPolicy(policy, statistics)


def _attached(model: Any) -> ObservationStatistics | None:
    """The statistics of a model's own environment, as they are now."""
    ask = getattr(model, "get_vec_normalize_env", None)
    wrapper = ask() if callable(ask) else None
    return None if wrapper is None else read_statistics(wrapper)


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


def _algorithm(path: Path, about: dict[str, Any]) -> str:
    """Which algorithm wrote the file."""
    module = _module(about)
    if module is None:
        raise ApevalError(
            f"'{path}' does not say which algorithm saved it: use "
            "policy=apeval.load_sb3(path, 'PPO')"
        )
    if "recurrent" in module:
        return _RECURRENT
    if module.startswith("sb3_contrib"):
        raise ApevalError(
            f"'{path}' is a file of sb3-contrib ({module}): load it in your own code and give the "
            "model, policy=model"
        )
    for part, name in _BY_POLICY.items():
        if f".{part}." in module:
            return name
    return "PPO" if "clip_range" in about else "A2C"


def sb3_stochastic(model: Any, *, normalize: Any = "check") -> Policy:
    """A model's policy with its randomness, drawn from the episode's own stream: PPO and A2C over
    discrete or continuous actions, SAC, and RecurrentPPO.

    It is ``load_sb3(model, deterministic=False)``: statistics are taken and refused alike.

    Args:
        model: A Stable-Baselines3 model.
        normalize: The statistics of its observations, as for `load_sb3`; by default those of the
            model's own environment. None says that it takes observations as they are.

    Returns:
        A `DiscretePolicy` or a `GaussianPolicy`, where it has neither memory nor statistics.

    Raises:
        ProblemError: The randomness of this model's policy is not known, or it has memory or
            statistics.
    """
    return _of_model(model, normalize, deterministic=False)


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
