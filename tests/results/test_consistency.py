"""Edits of a run folder with every hash made anew: the files no longer say the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.run.test_resume import rewrite

import apeval
from apeval.errors import ApevalError
from apeval.results import journal
from apeval.results.columns import read_table, write_table
from apeval.results.extension import read_extension, save_extension
from apeval.results.failure_replay import replay_failure
from apeval.results.manifest import read_state, write_manifest

OTHERS = {"seed": 3, "confidence": 0.5, "block": 100, "on_fault": "unresolved"}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored") / "run"
    problem = apeval.make("one-step", beta=2.0)
    apeval.evaluate(problem, episodes=1_000, recorder=apeval.Recorder(folder))
    return folder


@pytest.fixture
def folder(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "run"))


def edit(folder: Path, name: str, *path: Any, value: Any) -> None:
    data = json.loads((folder / name).read_text())
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    assert inner[path[-1]] != value
    inner[path[-1]] = value
    (folder / name).write_text(json.dumps(data))
    write_manifest(folder, read_state(folder))  # hashes as someone would who wants it to pass


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("estimate",), 1e-9),
        (("standard_error",), 1e-9),
        (("interval",), [1e-10, 1e-8]),
        (("confidence",), 0.5),
        (("seed",), 7),
        (("budget", "episodes"), 10),
        (("parameters", "beta"), 9.0),
        (("problem",), "walk"),
        (("method",), "mc"),
        (("final", "failures"), 1),
        (("failure_rate",), 0.9),
        (("unresolved", "probability"), 1e-9),
        (("below",), {"below": 1, "verdict": "shown", "lower": 0, "upper": 0, "unit": "steps"}),
    ],
)
def test_an_edited_result(folder: Path, path: tuple[str, ...], value: Any) -> None:
    edit(folder, "result.json", *path, value=value)
    with pytest.raises(ApevalError, match=r"result.json is damaged"):
        apeval.load(folder)


@pytest.mark.parametrize("name", ["run.json", "provenance.json"])
@pytest.mark.parametrize("entry", ["seed", "confidence", "problem", "method"])
def test_edited_inputs(folder: Path, name: str, entry: str) -> None:
    edit(folder, name, "inputs", entry, value="other")
    with pytest.raises(ApevalError, match=rf"{name} is damaged"):
        apeval.load(folder)


@pytest.mark.parametrize("column", ["log_p", "kind", "margin", "length"])
def test_an_edited_sample(folder: Path, column: str) -> None:
    arrays, about = read_table(folder / "sample.parquet")
    arrays[column] = arrays[column].copy()
    arrays[column][3] += 1
    write_table(folder / "sample.parquet", arrays, about)
    write_manifest(folder, read_state(folder))
    with pytest.raises(ApevalError, match="is damaged"):
        _ = apeval.load(folder).episodes


@pytest.mark.parametrize("name", ["run.json", "model.json", "model.safetensors", "curve.json"])
def test_damage_without_new_hashes_is_seen_by_every_command(folder: Path, name: str) -> None:
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(bytes(data))
    with pytest.raises(ApevalError, match=f"{name} is damaged"):
        apeval.load(folder)


def test_a_changed_swapped_or_foreign_batch(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    problem = apeval.make("one-step", beta=2.0)
    apeval.evaluate(problem, episodes=1_000, seed=1, recorder=apeval.Recorder(other))
    journal = sorted((folder / "episodes").iterdir())
    for k in (0, 1):
        before = journal[k].read_bytes()
        shutil.copy(other / "episodes" / journal[k].name, journal[k])
        with pytest.raises(ApevalError, match=r"do not belong|does not follow|has changed"):
            _ = apeval.load(folder).episodes
        journal[k].write_bytes(before)
    arrays, about = read_table(journal[0])
    arrays["a_E"] = np.asarray(arrays["a_E"]) * 1.01
    write_table(journal[0], arrays, about)
    with pytest.raises(ApevalError, match="is damaged"):
        _ = apeval.load(folder).episodes


@pytest.mark.parametrize("entry", ["seed", "confidence", "block", "on_fault", "retries"])
def test_a_run_that_goes_on_keeps_its_inputs(entry: str, tmp_path: Path) -> None:
    from tests.run.test_resume import unfinished

    unfinished(tmp_path / "run")
    data = json.loads((tmp_path / "run" / "run.json").read_text())
    data["inputs"][entry] = {**OTHERS, "retries": 3}[entry]
    rewrite(tmp_path / "run", data)
    with pytest.raises(ApevalError, match=f"run.json is damaged: {entry} is not what manifest"):
        apeval.resume(tmp_path / "run")


def test_a_sample_in_another_order(folder: Path) -> None:
    """Sums of the same numbers in another order differ in their last digits."""
    arrays, about = read_table(folder / "sample.parquet")
    write_table(folder / "sample.parquet", {k: v[::-1] for k, v in arrays.items()}, about)
    write_manifest(folder, read_state(folder))
    with pytest.raises(ApevalError, match="not in the order of their numbers"):
        apeval.load(folder)


def edited_batch(folder: Path, number: int, column: str, row: int, value: Any) -> None:
    path = folder / "episodes" / f"{number:06d}.episodes.parquet"
    arrays, about = read_table(path)
    arrays = {k: np.array(v) for k, v in arrays.items()}
    arrays[column][row] = value
    write_table(path, arrays, about)
    journal.read_sound(folder / "episodes", number)


def test_an_edited_batch(folder: Path) -> None:
    last = len(journal.numbers(folder / "episodes")) - 1
    with pytest.raises(ApevalError, match="not numbered from 0 on"):
        edited_batch(folder, 0, "ids", -1, 10**6)
    failed = np.flatnonzero(journal.read_batch(folder / "episodes", last).failed)
    with pytest.raises(ApevalError, match="an unresolved episode has an outcome"):
        edited_batch(folder, last, "unresolved", int(failed[0]), True)


def test_a_replay_record_that_names_another_failure(folder: Path) -> None:
    records = json.loads((folder / "failures.json").read_text())
    edit(folder, "failures.json", 0, "id", value=records[1]["id"])
    run = apeval.load(folder)
    with pytest.raises(ApevalError, match="a_E of a replay record is not that of episode"):
        replay_failure(run, 1, run.problem())
    assert replay_failure(run, 2, run.problem()).as_json()["id"] == records[1]["id"]


@pytest.mark.parametrize(
    ("path", "value"),
    [(("problem",), "walk"), (("episodes",), 9_999), (("failures",), 7), (("estimate",), 1e-2),
     (("trusted",), None), (("parts", 0, "estimate"), 1e-2), (("parts", 1, "seed"), 9),
     (("parts", 0, "share"), 0.3)],
)  # fmt: skip
def test_an_edited_common_answer(path: tuple[Any, ...], value: Any, folder: Path) -> None:
    more = folder.parent / "more"
    problem = apeval.make("one-step", beta=2.0)
    apeval.evaluate(problem, episodes=500, seed=1, recorder=apeval.Recorder(more))
    runs = [apeval.load(folder), apeval.load(more)]
    merged = apeval.merge(runs, extended=True)
    save_extension(more, runs[:1], merged)
    found = read_extension(more)
    assert found is not None
    assert found.episodes == merged.episodes
    edit(more, "extended.json", *path, value=not merged.trusted if value is None else value)
    with pytest.raises(ApevalError, match=r"extended.json is damaged"):
        read_extension(more)


def test_a_common_answer_without_its_runs_is_not_trusted(folder: Path) -> None:
    more = folder.parent / "more"
    problem = apeval.make("one-step", beta=2.0)
    apeval.evaluate(problem, episodes=500, seed=1, recorder=apeval.Recorder(more))
    runs = [apeval.load(folder), apeval.load(more)]
    save_extension(more, runs[:1], apeval.merge(runs, extended=True))
    there = read_extension(more)
    assert there is not None
    assert there.trusted
    folder.rename(folder.parent / "elsewhere")
    alone = read_extension(more)
    assert alone is not None
    assert not alone.trusted
    assert "cannot be verified" in alone.warnings[0]
    assert "move it back" in str(alone)
    edit(more, "extended.json", "estimate", value=there.estimate * 1.01)
    with pytest.raises(ApevalError, match="estimate does not follow"):
        read_extension(more)


def test_the_seal_tells_of_any_rewriting(folder: Path) -> None:
    before = apeval.load(folder).seal
    assert apeval.load(folder).seal == before
    for name, path in (("result.json", ()), ("provenance.json", ("result",))):
        edit(folder, name, *path, "seconds", value=0.125)  # consistently: nothing else can tell
    assert apeval.load(folder).seal != before
