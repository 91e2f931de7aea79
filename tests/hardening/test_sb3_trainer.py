"""Stable-Baselines3 models go on learning by their own `learn`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.hardening.test_adversarial_env import Drift, drift

import apeval
from apeval.hardening.environment import adversarial_env
from apeval.hardening.trainers import Sb3Trainer


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
    code, out, err = command(
        "harden",
        "own.py",
        "--policy",
        "policy.zip",
        "--steps",
        "32",
        "--episodes",
        "200",
        "--out",
        "h",
    )
    assert code in (0, 1), err
    assert "round 1" in out
    assert (tmp_path / "h" / "policy-1.zip").exists()
    assert "training for 32 steps" in err
    code, _, err = command(
        "harden", "own.py", "--policy", "none.zip", "--steps", "32", "--out", "h2"
    )
    assert (code, "no policy file" in err) == (2, True)
