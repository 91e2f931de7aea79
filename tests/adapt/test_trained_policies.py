"""Policies whose memory or statistics are not at hand are refused, not evaluated without them."""

from __future__ import annotations

import json
import zipfile
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import apeval
from apeval.errors import ProblemError
from apeval.problem.problem import Problem

torch = pytest.importorskip("torch", reason="the extra train is not installed")
sb3 = pytest.importorskip("stable_baselines3", reason="the extra train is not installed")
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize  # noqa: E402


def small() -> dict[str, Any]:
    """Options of a quick model; Stable-Baselines3 writes into them."""
    return {"policy_kwargs": {"net_arch": [8]}, "seed": 0, "device": "cpu"}


def cartpole(policy: Any, **changes: Any) -> Problem:
    noise = apeval.ParameterNoise("force_mag", std=0.5)
    return apeval.from_env("CartPole-v1", policy=policy, disturb=noise, horizon=20, **changes)


def pendulum(policy: Any) -> Problem:
    noise = apeval.ParameterNoise("g", std=0.5)
    return apeval.from_env(
        "Pendulum-v1", policy=policy, disturb=noise, fails=lambda obs: False, horizon=20
    )


class Recurrent(BaseFeaturesExtractor):  # type: ignore[misc]
    """Features by a recurrent layer."""

    def __init__(self, space: Any) -> None:
        super().__init__(space, 4)
        self.cell = torch.nn.GRUCell(int(np.prod(space.shape)), 4)

    def forward(self, obs: Any) -> Any:
        return self.cell(obs)


class Remembers:
    """As sb3-contrib's recurrent models answer: with the state for the next call."""

    def predict(self, obs: Any, state: Any = None, deterministic: bool = False) -> Any:
        return int(obs[2] > 0.0), np.zeros(3)


class Controller:
    """A controller with an integral."""

    def reset(self) -> None:
        self.total = 0.0

    def __call__(self, obs: Any) -> int:
        return int(obs[2] > 0.0)

    act = __call__


def recurrent_ppo() -> Any:
    kwargs = {"net_arch": [8], "features_extractor_class": Recurrent}
    return sb3.PPO("MlpPolicy", "CartPole-v1", policy_kwargs=kwargs, device="cpu")


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.GRU(2, 2)), "recurrent layer, GRU"),
        (torch.nn.LSTM(4, 2), "recurrent layer, LSTM"),
        (torch.nn.RNNCell(4, 2), "recurrent layer, RNNCell"),
        (apeval.DiscretePolicy(torch.nn.LSTM(4, 2)), "recurrent layer, LSTM"),
        (recurrent_ppo(), "recurrent layer, GRUCell"),
        (recurrent_ppo().policy, "recurrent layer, GRUCell"),
        (Controller(), r"Controller with reset\(\)"),
        (Controller().act, r"Controller with reset\(\)"),
        (partial(Controller()), r"Controller with reset\(\)"),
        (type("Old", (), {"initial_state": (0.0,), "predict": Remembers.predict})(), "initial_st"),
    ],
)
def test_a_policy_with_memory_is_refused(policy: Any, says: str) -> None:
    with pytest.raises(ProblemError, match=f"(?s)has memory .*{says}.*policy=lambda obs"):
        cartpole(policy)


@pytest.mark.filterwarnings("ignore")  # tracing warns of its own age
def test_a_traced_module_with_memory_is_refused() -> None:
    with pytest.raises(ProblemError, match="recurrent layer, LSTM"):
        cartpole(torch.jit.trace(torch.nn.LSTM(4, 2), torch.zeros(1, 4)))


def test_a_predict_that_returns_a_state_is_refused() -> None:
    for options in ({}, {"disturb": apeval.StartNoise("state[0]", std=0.01)}):
        given = {"disturb": apeval.ParameterNoise("force_mag", std=0.5), **options}
        problem = apeval.from_env("CartPole-v1", policy=Remembers(), horizon=20, **given)
        with pytest.raises(ProblemError, match="predict returns a state"):
            apeval.evaluate(problem, method="mc", episodes=2)


def test_a_predict_that_returns_no_pair_is_refused() -> None:
    class Bare:
        def predict(self, obs: Any, deterministic: bool) -> Any:
            return np.array([1, 0])

    with pytest.raises(ProblemError, match="expected a pair"):
        apeval.evaluate(cartpole(Bare()), method="mc", episodes=2)


def test_recurrent_layers_in_a_zip_file(tmp_path: Path) -> None:
    recurrent_ppo().save(tmp_path / "model.zip")
    for options in ({}, {"deterministic": False}, {"normalize": None}):
        with pytest.raises(ProblemError, match="recurrent layer"):
            apeval.load_sb3(tmp_path / "model.zip", **options)
    with pytest.raises(ProblemError, match="recurrent layer"):
        apeval.sb3_stochastic(recurrent_ppo(), normalize=None)


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("sb3_contrib.common.recurrent.policies", "as RecurrentPPO"),
        ("sb3_contrib.tqc.policies", "policy=model"),
    ],
)
def test_files_of_sb3_contrib(module: str, says: str, tmp_path: Path) -> None:
    data = {"policy_class": {":type:": "<class>", "__module__": module}, "clip_range": 0.2}
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("data", json.dumps(data))
    with pytest.raises(apeval.ApevalError, match=says):
        apeval.load_sb3(tmp_path / "model.zip")


def trained(algorithm: str, folder: Path, **normal: Any) -> tuple[Any, Path]:
    """A model after a few steps, under VecNormalize where `normal` says how."""
    env = DummyVecEnv([lambda: gymnasium.make("Pendulum-v1")])
    options = {"A2C": {}, "PPO": {"n_steps": 8, "batch_size": 8}}.get(
        algorithm, {"learning_starts": 8, "batch_size": 4}
    )
    wrapped = VecNormalize(env, **normal) if normal else env
    model = getattr(sb3, algorithm)("MlpPolicy", wrapped, **options, **small())
    model.learn(16)
    model.save(folder / "model.zip")
    return model, folder / "model.zip"


@pytest.mark.parametrize("algorithm", ["PPO", "A2C", "SAC"])
def test_a_zip_file_without_its_statistics_is_refused(algorithm: str, tmp_path: Path) -> None:
    model, path = trained(algorithm, tmp_path, norm_obs=True)
    statistics = model.get_vec_normalize_env()
    file = tmp_path / "vec_normalize.pkl"
    statistics.save(str(file))
    says = r"(?s)VecNormalize.*normalize='.*vec_normalize.pkl'.*load_sb3\(path, normalize=None\)"
    for deterministic in (True, False):
        with pytest.raises(ProblemError, match=says):
            apeval.load_sb3(path, deterministic=deterministic)
        pendulum(apeval.load_sb3(path, deterministic=deterministic, normalize=None))
        pendulum(apeval.load_sb3(path, deterministic=deterministic, normalize=file))
    with pytest.raises(ProblemError, match=says):
        pendulum(str(path))


@pytest.mark.parametrize("algorithm", ["PPO", "A2C"])
def test_an_on_policy_file_tells_of_normalised_observations(algorithm: str, tmp_path: Path) -> None:
    _, path = trained(algorithm, tmp_path, norm_obs=True)
    with pytest.raises(ProblemError, match="VecNormalize"):
        apeval.load_sb3(path)
    with pytest.raises(ProblemError, match="VecNormalize"):  # loaded by the user's own code
        pendulum(getattr(sb3, algorithm).load(path, env=gymnasium.make("Pendulum-v1")))


def test_an_off_policy_file_whose_last_observation_was_normalised(tmp_path: Path) -> None:
    model, path = trained("SAC", tmp_path, norm_obs=True)
    model._last_obs = np.array([[2.5, 0.0, 0.0]], np.float32)  # a cosine
    model.save(path)
    with pytest.raises(ProblemError, match="outside of the observation space"):
        apeval.load_sb3(path)


@pytest.mark.parametrize(
    "place",
    [
        "vecnormalize.pkl",
        "vec_normalize.pkl",
        "VecNormalize_final.pkl",
        "model_vecnormalize_16_steps.pkl",
        "model/vecnormalize.pkl",
        "Pendulum-v1/vecnormalize.pkl",
    ],
)
def test_statistics_beside_a_file_that_does_not_rule_them_out(place: str, tmp_path: Path) -> None:
    folder = tmp_path / "Pendulum-v1_3"
    folder.mkdir()
    model, path = trained("SAC", folder, norm_obs=True)
    (folder / place).parent.mkdir(exist_ok=True)
    model.get_vec_normalize_env().save(str(folder / place))
    model._last_obs = model._last_original_obs * 0.5  # inside the space, by chance
    model.save(path)
    with pytest.raises(ProblemError, match="lies beside it"):
        apeval.load_sb3(path)


@pytest.mark.parametrize("algorithm", ["PPO", "SAC"])
def test_models_without_normalised_observations_are_taken(algorithm: str, tmp_path: Path) -> None:
    model, path = trained(algorithm, tmp_path)
    pendulum(model)
    pendulum(str(path))
    if algorithm == "PPO":  # it rules statistics out: these are another model's
        (tmp_path / "vec_normalize.pkl").touch()
        pendulum(str(path))
    model, path = trained(algorithm, tmp_path, norm_obs=False)
    pendulum(model)  # rewards only


def test_spaces_are_those_of_the_training() -> None:
    scaled = gymnasium.wrappers.RescaleObservation(
        gymnasium.make("Pendulum-v1"), np.float32(-1.0), np.float32(1.0)
    )
    model = sb3.PPO("MlpPolicy", scaled, **small())
    for policy in (model, apeval.sb3_stochastic(model)):
        with pytest.raises(ProblemError, match="trained with the observation space"):
            pendulum(policy)


def test_a_policy_far_worse_than_in_training_is_refused(tmp_path: Path) -> None:
    model = sb3.PPO("MlpPolicy", "CartPole-v1", **small())
    with torch.no_grad():
        model.policy.action_net.bias[:] = torch.tensor([9.0, -9.0])  # always to the left
    model.ep_info_buffer = deque([{"r": 500.0 - k, "l": 500 - k, "t": 1.0} for k in range(20)])
    model.save(tmp_path / "model.zip")
    says = r"(?s)far worse here than in training.*481 to 500.*VecNormalize.*normalize=None"
    for policy in (model, str(tmp_path / "model.zip"), apeval.sb3_stochastic(model)):
        with pytest.raises(ProblemError, match=says):
            cartpole(policy)
    cartpole(apeval.load_sb3(tmp_path / "model.zip", normalize=None))
    cartpole(lambda obs: model.predict(obs, deterministic=True)[0])
    model.ep_info_buffer.append({"r": 8.0, "l": 8, "t": 1.0})  # once in training it went as badly
    cartpole(model)


def test_the_comparison_needs_no_reward() -> None:
    """An environment that breaks is the run's to report."""

    class Silent(gymnasium.Wrapper):  # type: ignore[type-arg]
        def step(self, action: Any) -> Any:
            obs, _, terminated, truncated, info = super().step(action)
            return obs, None, terminated, truncated, info

    model = sb3.PPO("MlpPolicy", "CartPole-v1", **small())
    model.ep_info_buffer = deque([{"r": 500.0, "l": 500, "t": 1.0}] * 20)
    noise = apeval.ParameterNoise("force_mag", std=0.5)
    apeval.from_env(
        lambda: Silent(gymnasium.make("CartPole-v1")), policy=model, disturb=noise, horizon=20
    )


def test_normalize_is_checked() -> None:
    model = sb3.PPO("MlpPolicy", "CartPole-v1", **small())
    with pytest.raises(apeval.ApevalError, match="no file of statistics 'other'"):
        apeval.sb3_stochastic(model, normalize="other")
