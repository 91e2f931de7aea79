"""Policies trained under VecNormalize, with their statistics; and folders of rl-zoo3."""

from __future__ import annotations

import os
import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from tests.adapt.test_batches import KEY, blocks
from tests.adapt.test_trained_policies import pendulum, small, trained

import apeval
from apeval.adapt.normalized_policy import FrameStackPolicy, NormalizedPolicy
from apeval.adapt.observation_statistics import ObservationStatistics, read_statistics
from apeval.errors import ApevalError, ProblemError
from apeval.problem.draws import Draws

sb3 = pytest.importorskip("stable_baselines3", reason="the extra train is not installed")
yaml = pytest.importorskip("yaml", reason="the extra dev is not installed")
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize  # noqa: E402

NOISE: dict[str, Any] = {
    "disturb": apeval.ParameterNoise("g", std=1e-9),
    "fails": lambda obs: False,
    "horizon": 15,
}


def own_loop(model: Any, wrap: Callable[[Any], Any], seed: int, steps: int = 15) -> Any:
    """Stable-Baselines3's own: the environment's last observation."""
    inner = DummyVecEnv([lambda: gymnasium.make("Pendulum-v1")])
    venv = wrap(inner)
    inner.seed(seed)
    obs = venv.reset()
    for _ in range(steps):
        obs = venv.step(model.predict(obs, deterministic=True)[0])[0]
    angle, speed = inner.envs[0].unwrapped.state
    return np.array([np.cos(angle), np.sin(angle), speed])


def last_observations(policy: Any) -> Any:
    return blocks(apeval.from_env("Pendulum-v1", policy=policy, **NOISE), 4, 4).s_end


def frozen(path: Path, venv: Any) -> Any:
    loaded = VecNormalize.load(str(path), venv)
    loaded.training = False
    return loaded


@pytest.mark.parametrize("algorithm", ["PPO", "SAC"])
def test_every_form_of_statistics_does_what_the_own_loop_does(
    algorithm: str, tmp_path: Path
) -> None:
    model, path = trained(algorithm, tmp_path, norm_obs=True, clip_obs=1.5)
    statistics, file = model.get_vec_normalize_env(), tmp_path / "vecnormalize.pkl"
    statistics.save(str(file))
    seeds = Draws(KEY, np.arange(4)).seeds()
    truth = np.stack([own_loop(model, lambda venv: frozen(file, venv), s) for s in seeds])
    without = np.stack([own_loop(model, lambda venv: venv, seed) for seed in seeds])
    assert not np.allclose(without, truth, atol=1e-3)
    plain, short = tmp_path / "statistics.npz", tmp_path / "short.npz"
    kept = read_statistics(file)
    assert kept is not None
    kept.save(plain)
    np.savez(short, mean=kept.mean, var=kept.variance, clip_obs=1.5)
    for normalize in (file, str(file), statistics, plain, short, kept):
        found = last_observations(apeval.load_sb3(path, normalize=normalize))
        assert np.allclose(found, truth, atol=1e-4), normalize
    assert np.allclose(last_observations(model), truth, atol=1e-4)  # those of its environment
    assert np.array_equal(kept.mean, statistics.obs_rms.mean)
    assert kept.clip == 1.5


def test_the_numbers_are_those_of_vec_normalize(tmp_path: Path) -> None:
    """Bit by bit, also for one key of a dict."""
    space = gymnasium.spaces.Dict(
        {"a": gymnasium.spaces.Box(-1, 1, (2,)), "b": gymnasium.spaces.Box(-1, 1, (3,))}
    )

    class Dicts(gymnasium.Env):  # type: ignore[type-arg]
        observation_space, action_space = space, gymnasium.spaces.Discrete(2)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return space.sample(), {}

    venv = VecNormalize(DummyVecEnv([Dicts]), norm_obs_keys=["b"])
    for _ in range(5):
        venv.reset()
    venv.save(str(tmp_path / "v.pkl"))
    statistics = read_statistics(tmp_path / "v.pkl")
    assert statistics is not None
    statistics.save(tmp_path / "v.npz")
    again = read_statistics(tmp_path / "v.npz")
    obs = space.sample()
    wanted: Any = venv.normalize_obs(obs)
    for it in (statistics, again):
        assert it is not None
        found = it.normalized(obs)
        assert found.keys() == {"a", "b"}
        assert found["b"].dtype == np.float32
        assert all(np.array_equal(found[key], wanted[key]) for key in found)
        assert it.fits(space) is None
        assert "'b' has the shape" in str(it.fits(gymnasium.spaces.Dict(b=space["a"])))


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, (self.__dict__["path"],)


def test_nothing_in_a_pickle_is_executed(tmp_path: Path) -> None:
    venv = VecNormalize(make_vec_env("Pendulum-v1"))
    venv.reset()
    evil = Evil()
    evil.__dict__["path"] = str(tmp_path / "made")
    venv.surprise = evil
    (tmp_path / "v.pkl").write_bytes(pickle.dumps(venv))
    statistics = read_statistics(tmp_path / "v.pkl")
    assert statistics is not None
    assert np.array_equal(statistics.mean, venv.obs_rms.mean)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda path: path.write_bytes(b"no pickle"), "cannot be read as statistics"),
        (lambda path: path.write_bytes(pickle.dumps({"mean": 0})), "holds no statistics"),
        (lambda path: path.unlink(missing_ok=True), "no file of statistics"),
    ],
)
def test_files_that_hold_no_statistics(write: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "v.pkl"
    write(path)
    with pytest.raises(ApevalError, match=says):
        read_statistics(path)


def test_statistics_that_cannot_be() -> None:
    with pytest.raises(ApevalError, match="same shape"):
        ObservationStatistics(np.zeros(2), np.ones(3))
    with pytest.raises(ApevalError, match="variances ≥ 0"):
        ObservationStatistics(np.zeros(2), -np.ones(2))
    with pytest.raises(ApevalError, match="never seen an observation"):
        read_statistics(VecNormalize(make_vec_env("Pendulum-v1")))
    policy = apeval.load_sb3(
        sb3.PPO("MlpPolicy", "Pendulum-v1", **small()),
        normalize=ObservationStatistics(np.zeros(2), np.ones(2)),
    )
    with pytest.raises(ProblemError, match=r"are of other observations: .*\(2,\)"):
        pendulum(policy)
    assert read_statistics(VecNormalize(make_vec_env("Pendulum-v1"), norm_obs=False)) is None


def test_something_else_than_a_model() -> None:
    with pytest.raises(ApevalError, match="load_sb3 was given a int"):
        apeval.load_sb3(5)


def test_a_density_of_normalised_observations(tmp_path: Path) -> None:
    model, _ = trained("PPO", tmp_path, norm_obs=True)
    policy: Any = apeval.sb3_stochastic(model)
    bare: Any = apeval.sb3_stochastic(model, normalize=None)
    obs = np.array([1.0, 0.0, 2.0], np.float32)
    seen = model.get_vec_normalize_env().normalize_obs(obs)
    assert policy.log_prob(obs, [0.1]) == bare.log_prob(seen, [0.1])


def test_the_command_converts(tmp_path: Path, command: Callable[..., tuple[int, str, str]]) -> None:
    model, _ = trained("PPO", tmp_path, norm_obs=True)
    model.get_vec_normalize_env().save(str(tmp_path / "v.pkl"))
    target = tmp_path / "statistics.npz"
    code, told, _ = command("convert-statistics", str(tmp_path / "v.pkl"), str(target))
    assert (code, "normalize=" in told) == (0, True)
    found = read_statistics(target)
    assert found is not None
    assert np.array_equal(found.variance, model.get_vec_normalize_env().obs_rms.var)
    assert command("convert-statistics", str(tmp_path / "v.pkl"), str(target))[0] == 2
    assert command("convert-statistics", str(tmp_path / "v.pkl"), str(target), "--force")[0] == 0
    assert "end its name in .npz" in command("convert-statistics", "v.pkl", "v.txt")[2]


def zoo_folder(home: Path, **config: Any) -> tuple[Any, Path]:
    """As rl-zoo3 writes it, with the tags that its YAML has."""
    folder = home / "ppo" / "Pendulum-v1_1"
    inner = folder / "Pendulum-v1"
    inner.mkdir(parents=True)
    venv: Any = make_vec_env("Pendulum-v1")
    if config.get("normalize"):
        venv = VecNormalize(venv)
    if config.get("frame_stack"):
        venv = VecFrameStack(venv, config["frame_stack"])
    model = sb3.PPO("MlpPolicy", venv, n_steps=8, batch_size=8, **small()).learn(16)
    model.save(folder / "Pendulum-v1.zip")
    statistics = model.get_vec_normalize_env()
    if statistics is not None:
        statistics.save(str(inner / "vecnormalize.pkl"))
    held = OrderedDict(sorted({"n_steps": 8, "policy": "MlpPolicy", **config}.items()))
    (inner / "config.yml").write_text(yaml.dump(held))
    return model, folder


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"normalize": True},
        {"normalize": "dict(norm_obs=True, norm_reward=False)"},
        {"frame_stack": 3},
        {"normalize": "{'norm_obs': True, 'norm_reward': True}", "frame_stack": 2},
    ],
    ids=str,
)
def test_a_folder_of_the_zoo_does_what_its_own_loop_does(
    config: dict[str, Any], tmp_path: Path
) -> None:
    model, folder = zoo_folder(tmp_path, **config)
    inner = folder / "Pendulum-v1" / "vecnormalize.pkl"

    def wrap(venv: Any) -> Any:
        venv = frozen(inner, venv) if "normalize" in config else venv
        return VecFrameStack(venv, config["frame_stack"]) if "frame_stack" in config else venv

    truth = [own_loop(model, wrap, seed) for seed in Draws(KEY, np.arange(4)).seeds()]
    assert np.allclose(last_observations(str(folder)), np.stack(truth), atol=1e-4)
    policy = apeval.load_sb3(folder)
    assert isinstance(policy, NormalizedPolicy) == ("normalize" in config)
    assert policy.has_memory == ("frame_stack" in config)
    (folder / "Pendulum-v1.zip").rename(folder / "best_model.zip")
    assert apeval.load_sb3(folder).has_memory == policy.has_memory


def test_only_rewards_were_normalised(tmp_path: Path) -> None:
    _, folder = zoo_folder(tmp_path, frame_stack=2)
    config = folder / "Pendulum-v1" / "config.yml"
    config.write_text("normalize: dict(norm_obs=False, norm_reward=True)\nframe_stack: 2\n")
    assert isinstance(apeval.load_sb3(folder), FrameStackPolicy)


class Scaled(gymnasium.Wrapper):  # type: ignore[type-arg]
    pass


def test_wrappers_of_the_training_must_be_there(tmp_path: Path) -> None:
    _, folder = zoo_folder(tmp_path, env_wrapper=[{"lab.wrappers.Scaled": {"by": 2}}])
    with pytest.raises(ProblemError, match=r"wrapped by lab.wrappers.Scaled .*Scaled\(gymnasium"):
        apeval.from_env("Pendulum-v1", policy=str(folder), **NOISE)
    with pytest.raises(ProblemError, match=r"wrapped by lab\.wrappers\.Scaled"):
        apeval.from_vector_env(
            "Pendulum-v1", policy=str(folder), num_envs=2, disturb=apeval.ActionNoise(std=0.1),
            fails=lambda obs: obs[:, 0] > 2, horizon=5,
        )  # fmt: skip
    apeval.from_env(lambda: Scaled(gymnasium.make("Pendulum-v1")), policy=str(folder), **NOISE)
    apeval.from_env("Pendulum-v1", policy=apeval.load_sb3(folder, normalize=None), **NOISE)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("vec_env_wrapper: lab.Vec", r"wrapped by lab.Vec .*load_sb3\('.*Pendulum-v1.zip'\)"),
        ("normalize: true", "no vecnormalize.pkl beside it"),
        ("normalize: open('x')", 'normalize is "open'),
        ("frame_stack: many", "frame_stack is 'many'"),
        ("- 1\n", "holds no hyperparameters"),
        ("a: [", "cannot be read as YAML"),
    ],
)
def test_a_folder_that_cannot_be_honoured(config: str, says: str, tmp_path: Path) -> None:
    folder = tmp_path / "Pendulum-v1_1"
    (folder / "Pendulum-v1").mkdir(parents=True)
    (folder / "Pendulum-v1.zip").touch()
    (folder / "Pendulum-v1" / "config.yml").write_text(config)
    with pytest.raises(ApevalError, match=says):
        apeval.load_sb3(folder)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ApevalError, match="is no folder of rl-zoo3"):
        apeval.load_sb3(tmp_path)
    inner = tmp_path / "ppo" / "Pendulum-v1_1" / "Pendulum-v1"
    inner.mkdir(parents=True)
    (inner / "config.yml").write_text("a: 1")
    with pytest.raises(ApevalError, match="name one of them: Pendulum-v1_1"):
        apeval.load_sb3(tmp_path / "ppo")
    with pytest.raises(ApevalError, match=r"has neither Pendulum-v1.zip nor best_model.zip"):
        apeval.load_sb3(inner.parent)
