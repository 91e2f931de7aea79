"""A damaged, hostile or foreign run folder: one clear error, no traceback, nothing written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apeval
from apeval.errors import ApevalError
from apeval.results import columns
from apeval.results.failure_replay import replay_failure
from apeval.results.manifest import HASHED, MANIFEST

FILES = (*HASHED, MANIFEST, "episodes/000000.episodes.parquet", "episodes/000000.decisions.parquet")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "run"
    problem = apeval.make("walk", top=5)
    apeval.evaluate(problem, "ape", steps=1_500, seed=1, recorder=apeval.Recorder(folder))
    return folder


@pytest.fixture
def run(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "run"))


def read_all(folder: Path) -> None:
    """Everything that a folder holds."""
    it = apeval.load(folder)
    assert it.sample.n == it.episodes.n
    assert it.learning is None or it.learning.n
    assert it.model.arrays
    assert str(it)
    replay_failure(it, 1, it.problem())


def seal(folder: Path) -> None:
    """Hash the files again, as someone would who wants the damage to pass."""
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["sha256"] = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in HASHED
    }
    (folder / MANIFEST).write_text(json.dumps(manifest))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_good_folder_is_good(run: Path) -> None:
    before = snapshot(run)
    read_all(run)
    assert snapshot(run) == before


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("what", ["gone", "empty", "half", "link", "folder", "pipe", "noise"])
def test_each_file_in_each_state(run: Path, name: str, what: str, tmp_path: Path) -> None:
    path = run / name
    data = path.read_bytes()
    path.unlink()
    if what == "link":
        (tmp_path / "elsewhere").write_bytes(data)
        path.symlink_to(tmp_path / "elsewhere")
    elif what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what != "gone":
        path.write_bytes(
            {"empty": b"", "half": data[: len(data) // 2], "noise": b"\xff" * 999}[what]
        )
    with pytest.raises(ApevalError) as caught:
        read_all(run)
    assert name.split("/")[0].split(".")[0] in str(caught.value)
    assert "\n" not in str(caught.value)


def change(name: str, edit: Callable[[Any], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        data = edit(json.loads((folder / name).read_text()))
        (folder / name).write_text(data if isinstance(data, str) else json.dumps(data))
        if name != MANIFEST:
            seal(folder)

    return apply


def put(name: str, *path: Any, value: Any) -> Callable[[Path], None]:
    def edit(data: Any) -> Any:
        inner = data
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        return data

    return change(name, edit)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (put(MANIFEST, "schema_version", value=99), "schema version 99"),
        (put(MANIFEST, "format", value="x"), "does not describe a run"),
        (put(MANIFEST, "complete", value=False), "was not finished"),
        (put(MANIFEST, "batches", value=10**30), "batches is not a whole number"),
        (put(MANIFEST, "batches", value=2), "batches of 2"),
        (put(MANIFEST, "sha256", value={"../../etc/passwd": ""}), "does not list"),
        (change(MANIFEST, lambda d: [d]), "no JSON object"),
        (put("result.json", "schema_version", value=1), "schema version 1"),
        (put("result.json", "estimate", value="1e-6"), "estimate is not a number"),
        (put("result.json", "estimate", value=-1.0), "between 0 and 1"),
        (put("result.json", "estimate", value=None), "between 0 and 1"),
        (put("result.json", "interval", value=[0.0]), "a list of 2"),
        (put("result.json", "final", "episodes", value=3.5), "final.episodes is not a whole"),
        (put("result.json", "final", "episodes", value=7), "does not fit the result"),
        (put("result.json", "seed", value=10**80), "seed is not a whole number"),
        (put("result.json", "modes", value={"a": 1}), "modes is not a list"),
        (put("result.json", "problem", value="os:system"), "problem is not what provenance.json"),
        (put("result.json", "view", value="nothing"), "view is not what provenance.json"),
        (put("result.json", "parameters", "top", value=9), "parameters is not what prov"),
        (change("result.json", lambda d: "[" * 100_000), "not JSON"),
        (change("result.json", lambda d: '{"estimate": NaN}'), "not JSON"),
        (change("result.json", lambda d: '{"estimate": 1' + "0" * 9_999 + "}"), "not JSON"),
        (put("failures.json", 0, "id", value=10**40), "names no episode"),
        (put("failures.json", 0, "id", value=5_000_000), "was not recorded"),
        (change("failures.json", lambda d: [1, 2]), "records[0] is not an object"),
        (put("model.json", "schema_version", value=2), "schema version 2"),
        (change("curve.json", lambda d: [["x", 1]]), "curve[0][0] is not a whole number"),
    ],
)
def test_wrong_content(run: Path, damage: Callable[[Path], None], says: str) -> None:
    damage(run)
    before = snapshot(run)
    with pytest.raises(ApevalError) as caught:
        read_all(run)
    assert says in str(caught.value)
    assert snapshot(run) == before


def test_foreign_folders(tmp_path: Path) -> None:
    with pytest.raises(ApevalError, match="no run folder"):
        apeval.load(tmp_path / "nowhere")
    with pytest.raises(ApevalError, match="not a run folder"):
        apeval.load(tmp_path)
    (tmp_path / "x\0y" if os.name == "nt" else tmp_path / "file").write_text("x")
    with pytest.raises(ApevalError, match="not a run folder"):
        apeval.load(tmp_path / "file")


def test_more_than_memory_is_refused_before_it_is_read(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "LARGEST", 100)
    with pytest.raises(ApevalError, match="refused"):
        read_all(run)


@pytest.mark.parametrize(
    "value",
    [
        {"type": "float64", "shape": [10**9, 10**9], "base64": ""},
        {"type": "object", "shape": [1], "base64": "gASVJA=="},
        {"type": "float64", "shape": [-1], "base64": "AAAA"},
        7,
    ],
)
def test_a_packed_array_cannot_lie(value: Any) -> None:
    with pytest.raises(ApevalError, match="packed array"):
        columns.unpack(value, Path("x"))


def test_a_link_in_the_way_is_not_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "episodes").symlink_to(outside)
    with pytest.raises(ApevalError, match="is a link"):
        apeval.Recorder(tmp_path / "run")
    (tmp_path / "run" / "episodes").unlink()
    (tmp_path / "run" / "result.json.part").symlink_to(outside / "stolen")
    (tmp_path / "run" / "result.json").symlink_to(outside / "stolen")
    recorder = apeval.Recorder(tmp_path / "run")
    apeval.evaluate(apeval.make("walk", top=5), "mc", episodes=50, recorder=recorder)
    assert list(outside.iterdir()) == []
    read_all(tmp_path / "run")


def test_random_damage_never_gets_further_than_an_error(good: Path, tmp_path: Path) -> None:
    """Bytes changed, cut out and doubled anywhere, with hashes made to fit."""
    rng = np.random.default_rng(0)
    refused = 0
    folder = tmp_path / "run"
    shutil.copytree(good, folder)
    for _ in range(150):
        path = folder / FILES[rng.integers(len(FILES))]
        kept = path.read_bytes()
        manifest = (folder / MANIFEST).read_bytes()
        data = bytearray(kept)
        for _ in range(int(rng.integers(1, 4))):
            at, size = int(rng.integers(len(data))), int(rng.integers(1, 20))
            new = [
                bytes(rng.integers(0, 256, size, np.uint8)),
                b"",
                bytes(data[at : at + size]) * 2,
            ]
            data[at : at + size] = new[rng.integers(3)]
        path.write_bytes(bytes(data))
        if path.name != MANIFEST:
            seal(folder)
        try:
            read_all(folder)
        except ApevalError:
            refused += 1
        path.write_bytes(kept)
        (folder / MANIFEST).write_bytes(manifest)
    read_all(folder)
    assert refused > 100
