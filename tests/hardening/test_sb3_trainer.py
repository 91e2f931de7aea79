"""Stable-Baselines3 models go on learning by their own `learn`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.hardening.test_adversarial_env import Drift, drift

import apeval
from apeval.adapt.given_policy import as_policy
from apeval.errors import ApevalError
from apeval.hardening.environment import adversarial_env
from apeval.hardening.trainers import Sb3Trainer, as_trainer, with_statistics


@pytest.fixture(scope="module")
def model() -> Any:
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    return stable_baselines3.PPO(
        "MlpPolicy", Drift(), n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu"
    )


def test_training_is_repeatable_and_leaves_the_model_alone(model: Any, tmp_path: Path) -> None:
    problem = drift()
    adversary = apeval.widened(problem, 2.0)

    def make_env(k: int) -> Any:
        return adversarial_env(problem, adversary, share=0.5, seed=100 + k)

    trainer, seen = Sb3Trainer(model), np.linspace(-2.0, 2.0, 16, dtype=np.float32)[:, None]
    before = model.predict(seen, deterministic=True)[0]
    first, second = (trainer.train(model, make_env, 64, seed=5) for _ in range(2))
    after = [it.predict(seen, deterministic=True)[0] for it in (first, second)]
    assert np.array_equal(*after)
    assert not np.array_equal(after[0], before)
    assert np.array_equal(model.predict(seen, deterministic=True)[0], before)
    trainer.save(first, tmp_path / "policy")
    assert np.array_equal(
        trainer.load(tmp_path / "policy").predict(seen, deterministic=True)[0], after[0]
    )


def test_statistics_of_observations_go_on_with_the_training(tmp_path: Path) -> None:
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    envs = VecNormalize(DummyVecEnv([Drift]))
    model = stable_baselines3.PPO(
        "MlpPolicy", envs, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu"
    ).learn(32)
    problem, before = drift(), envs.obs_rms.count
    trainer = as_trainer(model, None)

    def make_env(k: int) -> Any:
        return adversarial_env(problem, apeval.widened(problem, 2.0), seed=100 + k)

    first, second = (trainer.train(model, make_env, 64, seed=5) for _ in range(2))
    after = first.get_vec_normalize_env()
    assert envs.obs_rms.count == before  # the model that was given stays as it is
    assert after.obs_rms.count == pytest.approx(before + 65)  # each step, and the reset
    assert not after.training
    trainer.save(first, tmp_path / "policy")
    again = trainer.load(tmp_path / "policy")
    space = Drift.action_space
    seen = [np.array([x], np.float32) for x in np.linspace(-2.0, 2.0, 8)]
    policies = [as_policy(it, space, Drift.observation_space) for it in (first, second, again)]
    actions = [np.array([it.act(obs, np.zeros(0)) for obs in seen]) for it in policies]
    assert np.array_equal(actions[0], actions[1])
    assert np.array_equal(actions[0], actions[2])
    expected = first.predict(after.normalize_obs(np.stack(seen)), deterministic=True)[0]
    assert actions[0].ravel() == pytest.approx(expected.ravel(), abs=1e-6)
    with pytest.raises(ApevalError, match=r"VecNormalize\.save wrote"):
        with_statistics(first, {})


PROBLEM = """
import apeval
from tests.hardening.test_adversarial_env import drift

def problem() -> apeval.Problem:
    return drift()
"""


def test_the_command_hardens_a_zip_file(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(PROBLEM)
    model.save(tmp_path / "policy.zip")
    asked = ("harden", "own.py", "--policy", "policy.zip", "--steps", "32", "--episodes", "200")
    code, out, err = command(*asked, "--out", "h")
    assert code in (0, 1), err
    assert "round 1" in out
    assert (tmp_path / "h" / "policy-1.zip").exists()
    assert "training for 32 steps" in err
    assert command(*asked, "--out", "h")[:2] == (code, out)  # done before
    given = {"steps": 32, "episodes": 200, "return_episodes": 100}
    again = apeval.harden(apeval.make("own.py:problem"), model, tmp_path / "h", **given)
    assert again.rounds[0].estimate == apeval.load(tmp_path / "h" / "round-0").result.estimate
    page = tmp_path / "page.html"
    code, _, err = command("report", "h", "--problem", "own.py", "--out", str(page))
    assert code == 0, err
    assert "could not be replayed" not in page.read_text("utf-8")
    assert "is not the problem of" not in page.read_text("utf-8")
    for wrong, said in (("--policy", "no policy file"), ("--normalize", "VecNormalize.save")):
        asked = {"--policy": "policy.zip", wrong: "none.pkl"}
        code, _, err = command(
            "harden",
            "own.py",
            "--steps",
            "32",
            "--out",
            "h2",
            *(w for kv in asked.items() for w in kv),
        )
        assert (code, said in err) == (2, True)
