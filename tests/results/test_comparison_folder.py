"""A comparison in its folder: shown, reported, judged again, and refused where it was changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import apeval
from apeval.cli.main import app
from apeval.errors import ApevalError
from apeval.estimate.paired import compare_pairs
from apeval.results.comparison_folder import ANSWER, PAIRS, load_comparison, save_comparison
from apeval.run.policy_comparison import PolicyComparison


@pytest.fixture(scope="module")
def found() -> PolicyComparison:
    old, new = (apeval.make("one-step", beta=beta) for beta in (3.0, 3.1))
    return apeval.compare_policies(old, new, "mc", episodes=20_000, seed=3)


@pytest.fixture
def folder(found: PolicyComparison, tmp_path: Path) -> Path:
    return save_comparison(found, tmp_path / "kept")


def test_it_comes_back_as_it_was(found: PolicyComparison, folder: Path) -> None:
    again = load_comparison(folder)
    assert again == found
    assert str(again) == str(found)
    assert again.as_json() == found.as_json()
    assert sorted(it.name for it in folder.iterdir()) == [ANSWER, PAIRS]


def test_it_is_judged_again_from_its_pairs(found: PolicyComparison, folder: Path) -> None:
    sure = load_comparison(folder).judged(0.999)
    assert found.record is not None
    from_pairs = compare_pairs(found.record.a, found.record.b, 0.999)
    assert sure.ratio_interval == from_pairs.ratio_interval
    assert sure.difference_interval == from_pairs.difference_interval
    assert (sure.confidence, sure.estimate_a, sure.pairing) == (
        0.999, found.estimate_a, found.pairing,
    )  # fmt: skip
    lo, hi = sure.ratio_interval
    assert lo < found.ratio_interval[0]
    assert hi is not None
    assert found.ratio_interval[1] is not None
    assert hi > found.ratio_interval[1]
    assert sure.judged(found.confidence) == found


def test_looks_at_any_time_are_judged_as_such(tmp_path: Path) -> None:
    old, new = (apeval.make("one-step", beta=beta) for beta in (2.0, 2.2))
    *_, last = apeval.compare_anytime(old, new, "mc", episodes=6_000, seed=3)
    again = load_comparison(save_comparison(last, tmp_path / "kept"))
    assert again == last
    assert again.record is not None
    assert again.record.planned
    one_look = compare_pairs(again.record.a, again.record.b, 0.95)
    assert again.ratio_interval[0] < one_look.ratio_interval[0]


def test_what_was_changed_is_refused(folder: Path) -> None:
    stored = json.loads((folder / ANSWER).read_text())
    better = json.loads(json.dumps(stored))
    better["answer"]["ratio_interval"][1] *= 0.9
    (folder / ANSWER).write_text(json.dumps(better))
    with pytest.raises(ApevalError, match="does not follow from its pairs"):
        load_comparison(folder)
    (folder / ANSWER).write_text(json.dumps(stored))
    columns = dict(np.load(folder / PAIRS))
    columns["a_kind"] = np.zeros_like(columns["a_kind"])
    np.savez_compressed(folder / PAIRS, **columns)
    with pytest.raises(ApevalError, match="its hash is another one"):
        load_comparison(folder)
    for spoilt in ({}, {"format": 2}, {**stored, "answer": {}}):
        (folder / ANSWER).write_text(json.dumps(spoilt))
        with pytest.raises(ApevalError):
            load_comparison(folder)


def test_a_folder_in_use_and_runs_without_pairs_are_refused(
    found: PolicyComparison, folder: Path
) -> None:
    with pytest.raises(ApevalError, match="exists already"):
        save_comparison(found, folder)
    with pytest.raises(ApevalError, match="holds no comparison"):
        load_comparison(folder.parent)
    runs = [apeval.InMemory(apeval.make("one-step", beta=beta)) for beta in (2.0, 2.5)]
    for seed, run in enumerate(runs):
        apeval.evaluate(run.of, "mc", episodes=500, seed=seed, recorder=run)
    apart = apeval.compare(runs[0], runs[1])
    with pytest.raises(ApevalError, match="no pairs to keep"):
        save_comparison(apart, folder.parent / "other")
    with pytest.raises(ApevalError, match="no pairs"):
        apart.judged(0.9)


def test_the_commands_keep_show_judge_and_report(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    words = ["compare-policies", "one-step", "--method", "mc", "--set-a", "problem.beta=2"]
    words += ["--set-b", "problem.beta=2.5", "--episodes", "4000", "--keep", str(kept)]
    run = CliRunner()
    made = run.invoke(app, words)
    assert made.exit_code == 0, made.output
    shown = run.invoke(app, ["show", str(kept)])
    assert "A fails more often than B" in shown.output
    judged = run.invoke(app, ["compare", str(kept), "--confidence", "0.5", "--json"])
    assert json.loads(judged.output)["confidence"] == 0.5
    reported = run.invoke(app, ["report", str(kept)])
    assert reported.exit_code == 0, reported.output
    page = (kept / "report.html").read_text(encoding="utf-8")
    assert "A fails more often than B" in page
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert isinstance(run.invoke(app, words).exception, ApevalError)
    shutil.rmtree(kept)
    assert isinstance(run.invoke(app, ["compare", str(tmp_path)]).exception, ApevalError)
