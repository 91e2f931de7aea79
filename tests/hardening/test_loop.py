"""Hardening: rounds that are kept, and a verdict that says no more than was shown."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import numpy as np
import pytest
from tests.hardening.test_adversarial_env import drift
from typer.testing import CliRunner

import apeval
from apeval.cli.main import app
from apeval.errors import ApevalError
from apeval.hardening import loop
from apeval.hardening.rounds import BETTER, NOT_SHOWN, WORSE, judged
from apeval.hardening.stored_rounds import read_hardening
from apeval.hardening.time_left import TimeLeft

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
    text = page.read_text("utf-8")
    assert "times less often</title>" in text.replace(" · apeval report", "")
    assert "Before: how round 0 fails" in text
    assert "After: how round 1 fails" in text
    assert "failure probability in each round" in text  # drawn by the page's own script
    with pytest.raises(ApevalError, match=r"folder of a hardening.*round-0"):
        apeval.load(tmp_path / "h")


def joined(text: str) -> str:
    """Without line breaks, which may stand in a path as well."""
    return " ".join(text.split())


COUNTED: dict[str, Any] = {"method": "mc", "episodes": 300, "return_episodes": 40, "seed": 1}
"""To count failures is enough where only the loop is tested."""


def stormy() -> apeval.Problem:
    """Failures in one episode of ten and more."""
    return drift(disturb=apeval.ActionNoise(std=1.2))


def in_turn(by: Sequence[float], began_with: list[float]) -> Callable[..., Gain]:
    """A training that turns the gain by another number each time."""
    left = list(by)

    def train(policy: Gain, env: Any, steps: int, seed: int) -> Gain:
        began_with.append(policy.gain)
        return Gain(policy.gain + left.pop(0))

    return train


def test_a_worse_policy_is_said_to_be_worse_and_left_behind(tmp_path: Path) -> None:
    began_with: list[float] = []
    train = in_turn([-0.4, -0.4], began_with)
    found = apeval.harden(stormy(), Gain(0.5), tmp_path, steps=5, rounds=2, train=train, **COUNTED)
    assert (found.verdict, found.best, len(found.rounds)) == (WORSE, 0, 3)
    assert found.policy == ""
    assert began_with == [0.5, 0.5]


def test_rounds_go_on_after_one_that_shows_nothing(tmp_path: Path) -> None:
    began_with: list[float] = []
    train = in_turn([0.0, 0.4], began_with)
    found = apeval.harden(stormy(), Gain(0.1), tmp_path, steps=5, rounds=2, train=train, **COUNTED)
    assert [it.verdict for it in found.rounds[1:]] == [NOT_SHOWN, BETTER]
    assert (found.verdict, found.best) == (BETTER, 2)
    assert began_with == [0.1, 0.1]


def test_a_policy_that_never_fails_is_not_trained(tmp_path: Path) -> None:
    calm, began_with = drift(disturb=apeval.ActionNoise(std=0.01)), list[float]()
    train = in_turn([0.0], began_with)
    found = apeval.harden(calm, Gain(0.5), tmp_path, steps=5, rounds=2, train=train, **COUNTED)
    assert (found.verdict, found.best, len(found.rounds)) == (NOT_SHOWN, 0, 1)
    assert began_with == []
    assert "there is nothing to train against: raise `episodes=`" in joined(str(found))


def test_a_training_that_is_over_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began_with: list[float] = []
    train = in_turn([0.4, 0.4], began_with)
    asked: dict[str, Any] = {"steps": 5, "train": train, **COUNTED}
    returns = loop.nominal_returns

    def stopped(*given: Any) -> Any:
        if began_with:  # round 1 is evaluated
            raise KeyboardInterrupt
        return returns(*given)

    monkeypatch.setattr(loop, "nominal_returns", stopped)
    with pytest.raises(KeyboardInterrupt):
        apeval.harden(stormy(), Gain(0.1), tmp_path, **asked)
    monkeypatch.undo()
    told: list[str] = []
    found = apeval.harden(stormy(), Gain(0.1), tmp_path, listener=told.append, **asked)
    assert began_with == [0.1]
    assert "round 1: trained before" in told
    whole = apeval.harden(
        stormy(), Gain(0.1), tmp_path / "whole", **{**asked, "train": in_turn([0.4], [])}
    )
    assert found.rounds == whole.rounds


def test_the_time_left_is_told_now_and_then() -> None:
    told: list[str] = []
    seconds = iter([0.0, 4.0, 20.0, 21.0, 40.0])
    left = TimeLeft(told.append, "round 1: training", 100, "steps", lambda: next(seconds))
    for done in (5, 20, 21, 100):
        left.at(done)
    assert told == ["round 1: training, 20 of 100 steps, 81 s left"]


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


# -- a folder is the hardening that it says -----------------------------------------------------

ASKED: dict[str, Any] = {"steps": 5, "episodes": 400, "return_episodes": 100, "seed": 1}


@pytest.fixture(scope="module")
def hardened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hardened") / "h"
    apeval.harden(drift(), Gain(0.1), folder, train=turned(0.4), **ASKED)
    return folder


def copied(hardened: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(hardened, tmp_path / "h"))


def test_the_same_call_says_the_same(hardened: Path, tmp_path: Path) -> None:
    folder = copied(hardened, tmp_path)
    again = apeval.harden(drift(), Gain(0.1), folder, train=turned(0.4), **ASKED)
    assert again.as_json() == read_hardening(hardened).as_json()


@pytest.mark.parametrize("what", ["policy", "threshold", "nominal", "horizon"])
def test_another_policy_or_problem_does_not_get_the_answer_of_the_first(
    hardened: Path, tmp_path: Path, what: str
) -> None:
    changes: dict[str, dict[str, Any]] = {
        "policy": {},
        "threshold": {"fails": lambda obs: abs(obs[0]) >= 2.9},
        "nominal": {"disturb": apeval.ActionNoise(std=0.62)},
        "horizon": {"horizon": 9},
    }
    policy = Gain(0.12 if what == "policy" else 0.1)
    with pytest.raises(ApevalError, match="holds a hardening of something else: in round 0"):
        apeval.harden(
            drift(**changes[what]), policy, copied(hardened, tmp_path), train=turned(0.4), **ASKED
        )


def test_a_kept_policy_that_was_exchanged_is_refused(hardened: Path, tmp_path: Path) -> None:
    folder = copied(hardened, tmp_path)
    (folder / "policy-1.pkl").write_bytes(cloudpickle.dumps(Gain(0.1)))
    with pytest.raises(ApevalError, match="in round 1, the policy that is kept there"):
        apeval.harden(drift(), Gain(0.1), folder, train=turned(0.4), **ASKED)


def places(data: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every number, text and truth value in nested data."""
    if isinstance(data, dict | list):
        inside = data.items() if isinstance(data, dict) else enumerate(data)
        return [it for key, value in inside for it in places(value, (*here, key))]
    return [here]


def test_no_number_of_a_hardening_can_be_edited(hardened: Path, tmp_path: Path) -> None:
    """But for returns and words, which stand in one place only and which no verdict rests on."""
    text = (hardened / "harden.json").read_text("utf-8")
    folder = copied(hardened, tmp_path)
    honest = read_hardening(folder)
    alone = ("nominal_return", "why", "settings", "schema_version", "repeatable", "world")
    tried = [it for it in places(json.loads(text)) if not set(alone) & set(it)]
    assert len(tried) >= 30
    for where in tried:
        data = json.loads(text)
        inside = data
        for key in where[:-1]:
            inside = inside[key]
        value = inside[where[-1]]
        if isinstance(value, bool):
            inside[where[-1]] = not value
        elif isinstance(value, str):
            inside[where[-1]] = "worse" if value == "better" else "better"
        else:
            inside[where[-1]] = 1 if value is None else value * 2 + 1
        (folder / "harden.json").write_text(json.dumps(data), "utf-8")
        with pytest.raises(ApevalError, match=r"harden\.json is damaged"):
            read_hardening(folder)
    (folder / "harden.json").write_text(text, "utf-8")
    assert read_hardening(folder) == honest


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"rounds": NaN}', "[]", '{"settings": {"steps": 1}, "rounds": [{}]}', "{"],
)
def test_hostile_files_of_a_hardening_are_refused_in_a_line(
    hardened: Path, tmp_path: Path, text: str
) -> None:
    folder = copied(hardened, tmp_path)
    (folder / "harden.json").write_text(text, "utf-8")
    for words in (["show", str(folder)], ["report", str(folder), "--out", str(tmp_path / "x")]):
        assert isinstance(CliRunner().invoke(app, words).exception, ApevalError)


def test_a_round_is_read_from_its_own_folder_only(hardened: Path, tmp_path: Path) -> None:
    folder = copied(hardened, tmp_path)
    data = json.loads((folder / "harden.json").read_text("utf-8"))
    data["rounds"][1]["folder"] = "../elsewhere"
    (folder / "harden.json").write_text(json.dumps(data), "utf-8")
    with pytest.raises(ApevalError, match="folder of round 1 does not follow"):
        read_hardening(folder)
