"""Hardening: rounds that are kept, and a verdict that says no more than was shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.hardening.test_adversarial_env import drift
from typer.testing import CliRunner

import apeval
from apeval.cli.main import app
from apeval.errors import ApevalError
from apeval.hardening.rounds import BETTER, NOT_SHOWN, WORSE, judged

LITTLE: dict[str, Any] = {"episodes": 1_600, "return_episodes": 100, "seed": 1}


class Gain:
    """A policy with one number, which a training may turn."""

    def __init__(self, gain: float) -> None:
        self.gain = gain

    def __call__(self, obs: Any) -> Any:
        return np.clip(-self.gain * obs, -3.0, 3.0)


def turned(by: float) -> Callable[..., Gain]:
    """A training that adds to the gain, whatever it sees."""

    def train(policy: Gain, env: Any, steps: int, seed: int) -> Gain:
        env.reset()
        for _ in range(steps):
            *_, terminated, truncated, info = env.step(np.zeros(1))
            if terminated or truncated:
                assert np.isfinite(info["log_weight"])
                env.reset()
        return Gain(policy.gain + by)

    return train


def test_a_better_policy_is_shown_to_be_better(tmp_path: Path) -> None:
    found = apeval.harden(drift(), Gain(0.1), tmp_path / "h", steps=20, train=turned(0.4), **LITTLE)
    assert (found.verdict, found.best, len(found.rounds)) == (BETTER, 1, 2)
    first, last = found.rounds
    assert last.estimate < first.estimate
    assert last.ratio_interval is not None
    assert last.ratio_interval[1] is not None
    assert last.ratio_interval[1] < 1.0
    assert last.nominal_return.mean > first.nominal_return.mean
    assert not found.repeatable
    assert "round 1" in str(found)
    kept = json.loads((tmp_path / "h" / "harden.json").read_text())
    assert kept["rounds"][1]["estimate"] == last.estimate
    assert apeval.load(tmp_path / "h" / last.folder).result.estimate == last.estimate
    use = f"use the policy {tmp_path / 'h' / 'policy-1.pkl'}"
    assert "".join(use.split()) in "".join(str(found).split())  # long paths are broken
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "h")])
    assert shown.output == f"{found}\n"
    page = tmp_path / "both.html"
    done = CliRunner().invoke(app, ["report", str(tmp_path / "h"), "--out", str(page)])
    assert done.exit_code == 0, done.output
    assert "2 runs compared" in page.read_text("utf-8")
    with pytest.raises(ApevalError, match=r"folder of a hardening.*round-0"):
        apeval.load(tmp_path / "h")


def joined(text: str) -> str:
    """Without line breaks, which may stand in a path as well."""
    return " ".join(text.split())


def test_a_worse_policy_is_said_to_be_worse_and_not_kept(tmp_path: Path) -> None:
    found = apeval.harden(
        drift(), Gain(0.5), tmp_path, steps=5, rounds=3, train=turned(-0.4), **LITTLE
    )
    assert (found.verdict, found.best, len(found.rounds)) == (WORSE, 0, 2)
    assert found.policy == ""


def test_a_policy_that_stays_as_it_is_is_not_shown_to_be_better(tmp_path: Path) -> None:
    found = apeval.harden(drift(), Gain(0.3), tmp_path, steps=5, train=turned(0.0), **LITTLE)
    assert (found.verdict, found.best) == (NOT_SHOWN, 0)
    assert "stay with the policy that was given" in joined(str(found))
    assert "policy-1.pkl" in str(found)


def test_a_training_that_raises_loses_nothing_and_the_same_call_goes_on(tmp_path: Path) -> None:
    def crashes(policy: Gain, env: Any, steps: int, seed: int) -> Gain:
        raise ValueError("out of memory")

    asked: dict[str, Any] = {"steps": 5, **LITTLE}
    with pytest.raises(ApevalError, match=r"the training raised .*out of memory"):
        apeval.harden(drift(), Gain(0.1), tmp_path, train=crashes, **asked)
    before = json.loads((tmp_path / "harden.json").read_text())["rounds"]
    assert len(before) == 1
    told: list[str] = []
    found = apeval.harden(
        drift(), Gain(0.1), tmp_path, train=turned(0.4), listener=told.append, **asked
    )
    assert told[0] == "round 0: done before"
    assert found.rounds[0].as_json() == before[0]
    assert found.verdict == BETTER
    other = {**asked, "episodes": 300}
    with pytest.raises(ApevalError, match=r"other settings .episodes."):
        apeval.harden(drift(), Gain(0.1), tmp_path, train=turned(0.4), **other)


@pytest.mark.parametrize("on", ["nominal", "widened"])
def test_controls_train_on_other_disturbances(tmp_path: Path, on: str) -> None:
    seen: list[bool] = []

    def train(policy: Gain, env: Any, steps: int, seed: int) -> Gain:
        seen.extend(env.reset()[1]["adversarial"] for _ in range(40))
        return policy

    apeval.harden(drift(), Gain(0.3), tmp_path, steps=5, train=train, train_on=on, **LITTLE)
    assert any(seen) == (on == "widened")


def test_success_is_refused_where_less_could_be_seen_than_there_was() -> None:
    found: Any = SimpleNamespace(verdict="less often", in_words=lambda: "A fails less often than B")
    old: Any = SimpleNamespace(trusted=True, estimate=1e-4)
    new: Any = SimpleNamespace(trusted=True)
    assert judged(new, old, found, 1e-5)[0] == BETTER
    verdict, why = judged(new, old, found, 1e-3)
    assert verdict == NOT_SHOWN
    assert "return_episodes=29956" in why
    said = 'few failures. Hold it against `method="mc"`'
    doubtful: Any = SimpleNamespace(trusted=False, estimate=1e-6, warnings=[said])
    assert judged(doubtful, old, found, 1e-9) == (
        NOT_SHOWN,
        "the new policy's number is not to be trusted: few failures",
    )
    said = 'no failure in 800 episodes. Try `method="mc"` with the same budget'
    final = SimpleNamespace(episodes=800)
    never: Any = SimpleNamespace(trusted=False, estimate=0.0, final=final, warnings=[said])
    why = judged(never, old, found, 1e-9)[1]
    assert "the new policy did not fail in 800 episodes" in why
    assert why.endswith("raise `episodes=`")


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ApevalError, match="train=, a function"):
        apeval.harden(drift(), Gain(0.1), tmp_path, steps=5)
    for wrong in ({"share": 1.0}, {"weights": "half"}, {"train_on": "mars"}, {"rounds": 0}):
        with pytest.raises(ApevalError, match=next(iter(wrong))):
            apeval.harden(drift(), Gain(0.1), tmp_path, steps=5, train=turned(0.0), **wrong)
    with pytest.raises(ApevalError, match="no setting 'episode'; it has"):
        apeval.harden(drift(), Gain(0.1), tmp_path, steps=5, train=turned(0.0), episode=3)
