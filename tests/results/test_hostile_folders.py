"""Run folders whose JSON was made to harm: one line that names the file, never a traceback."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apeval
from apeval.errors import ApevalError
from apeval.results.columns import read_about, read_table, write_table
from apeval.results.export import export_csv
from apeval.results.extension import chain, read_extension, save_extension
from apeval.results.failure_replay import replay_failure
from apeval.results.fault_log import read_faults
from apeval.results.files import DEEPEST, parse_json, read_json
from apeval.results.manifest import MANIFEST
from apeval.results.report import write_report
from apeval.simulate.replay import replay

FILES = (
    "result.json", "failures.json", "curve.json", "provenance.json", "model.json", "run.json",
    "extended.json",
)  # fmt: skip


def nested(depth: int) -> Any:
    """A number inside lists and objects."""
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, -0.5, 1e308, 1e-320, "", "\ud800\u202e\x1b[31m\n", "y" * 9_999, [],
    {}, [None], [[]], [1, 2, 3], ["a"], [0.9, 0.1], {"a": 1}, {"": [1]}, nested(60), nested(500),
    2**63 - 1,
)  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a margin, modes, a value function and a verdict, which extends another one."""
    base = tmp_path_factory.mktemp("good")
    problem = apeval.make("pendulum")
    for name, seed in (("earlier", 1), ("run", 2)):
        recorder = apeval.Recorder(base / name)
        apeval.evaluate(problem, steps=4_000, seed=seed, below=1e-3, recorder=recorder)
    both = [apeval.load(base / name) for name in ("earlier", "run")]
    save_extension(base / "run", both[:1], apeval.merge(both, extended=True))
    return base / "run"


@pytest.fixture
def run(good: Path, tmp_path: Path) -> Path:
    shutil.copytree(good.parent / "earlier", tmp_path / "earlier")
    return Path(shutil.copytree(good, tmp_path / "run"))


def seal(folder: Path) -> None:
    """Hash the files again, as someone would who wants the damage to pass."""
    manifest = json.loads((folder / MANIFEST).read_text())
    for name in manifest["sha256"]:
        manifest["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest))


def change(folder: Path, name: str, path: tuple[Any, ...], value: Any) -> None:
    """Put a value somewhere into a JSON file."""
    data = json.loads((folder / name).read_text("utf-8"))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    if path:
        inner[path[-1]] = value
    (folder / name).write_text(json.dumps(data if path else value), "utf-8")
    seal(folder)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in plain data; of a list, the first and the last."""
    yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from places(value, (*path, key))
    elif isinstance(data, list):
        for k in sorted({0, len(data) - 1}) if data else ():
            yield from places(data[k], (*path, k))


def read_all(folder: Path, out: Path) -> list[str]:
    """Every reader of a folder; what they complain of."""

    def show() -> None:
        run = apeval.load(folder)
        assert str(run)
        json.dumps(run.result.as_json(), allow_nan=False)

    def play() -> None:
        run = apeval.load(folder)
        assert str(replay_failure(run, 1, run.problem()))

    readers = (
        show,
        play,
        lambda: write_report([folder], out / "report.html"),
        lambda: export_csv(apeval.load(folder), out / "csv"),
        lambda: apeval.load(folder).model,
        lambda: read_extension(folder),
        lambda: chain(folder),
        lambda: read_faults(folder),
    )
    complaints = []
    for reader in readers:
        try:
            reader()
        except ApevalError as error:
            complaints.append(str(error))
    return complaints


def test_the_good_folder_is_good(run: Path, tmp_path: Path) -> None:
    assert read_all(run, tmp_path) == []


@pytest.mark.parametrize(
    ("name", "path", "value", "says"),
    [
        ("result.json", ("settings", "x"), nested(500), "nested deeper than 64"),
        ("result.json", ("parameters",), {"x": nested(500)}, "nested deeper than 64"),
        ("provenance.json", ("versions",), nested(500), "nested deeper than 64"),
        ("model.json", ("components", 0), nested(500), "nested deeper than 64"),
        ("result.json", ("value_function", "theta"), 3.0, "theta is not a list of numbers"),
        ("result.json", ("value_function", "theta"), [1.0], "do not fit the columns"),
        ("result.json", ("value_function", "theta", 0), None, "theta is not a list of numbers"),
        ("result.json", ("value_function", "theta", 0), 10**400, "value_function"),
        ("result.json", ("value_function", "columns"), [10**12], "do not fit the columns"),
        ("result.json", ("value_function", "columns", 0), -1, "columns are not numbers of"),
        ("result.json", ("value_function", "scale", 0), 0.0, "do not fit the columns"),
        ("result.json", ("value_function", "times"), 10**12, "times is not a whole number"),
        ("result.json", ("value_function",), {"x": [1]}, "mean is not a list"),
        ("result.json", ("modes", 0, "share"), None, "modes[0].share is not a number of at least"),
        ("result.json", ("modes", 0, "interval"), [None, 1.0], "modes[0].interval[0]"),
        ("result.json", ("modes", 0, "failures"), -3, "modes[0].failures"),
        ("result.json", ("modes", 0, "most_likely"), {}, "failure 1: a replay record is damaged"),
        ("result.json", ("modes", 0, "most_likely", "key"), [1], "two 32-bit numbers"),
        ("result.json", ("modes", 0, "most_likely", "id"), "7", "names no episode"),
        ("result.json", ("modes", 0, "most_likely", "a_E", 0), [], "actions are no numbers"),
        ("failures.json", (0, "a_E", 0, 0), None, "actions are no numbers"),
        ("failures.json", (0, "key", 0), 2**40, "two 32-bit numbers"),
        ("result.json", ("tail", 0, "probability"), None, "tail[0].probability"),
        ("result.json", ("below", "verdict"), "perhaps", "below.verdict is unknown"),
        ("result.json", ("kinds",), {}, "no kind of failure"),
        ("result.json", ("steps",), -5, "steps is not a number of at least 0"),
        ("result.json", ("failures",), 10**9, "more failures than episodes"),
        ("model.json", ("components",), {}, "does not list the proposal's components"),
        ("model.json", ("shares",), {"array": "x"}, "shares do not fit"),
        ("model.json", ("components", 0), {"array": "gone"}, "array 'gone', which is not stored"),
        ("extended.json", ("interval", 0), [None], "interval[0] is not a number"),
        ("extended.json", ("estimate",), 2.0, "between 0 and 1"),
        ("extended.json", ("parts",), [], "does not list the runs"),
    ],
)
def test_damage_is_named_with_its_file(
    run: Path, tmp_path: Path, name: str, path: tuple[Any, ...], value: Any, says: str
) -> None:
    change(run, name, path, value)
    complaints = read_all(run, tmp_path)
    assert any(name in text and says in text and "damaged" in text for text in complaints)
    assert all(len(text.splitlines()) == 1 for text in complaints)


def test_numbers_that_are_no_numbers_are_refused(run: Path) -> None:
    (run / "curve.json").write_text("[[1, 1e999]]", "utf-8")
    with pytest.raises(ApevalError, match=r"curve.json.*1e999 is too large"):
        read_json(run / "curve.json")


def test_the_deepest_that_is_read() -> None:
    assert parse_json(json.dumps(nested(DEEPEST)))
    for text in (json.dumps(nested(DEEPEST + 1)), json.dumps(nested(500)), "[" * 100_000):
        with pytest.raises(ValueError, match="nested deeper"):
            parse_json(text)


def test_metadata_of_columns_is_no_deeper(run: Path) -> None:
    path = run / "episodes" / "000000.episodes.parquet"
    arrays, about = read_table(path)
    write_table(path, arrays, {**about, "law_0": nested(500)})
    with pytest.raises(ApevalError, match=r"000000.episodes.parquet is damaged: nested deeper"):
        read_about(path)


def test_a_record_of_another_problem_is_refused() -> None:
    problem = apeval.make("one-step", beta=2.0)
    record = {"key": [1, 2], "id": 3, "a_0": [], "a_E": [[0.5, 0.5]]}
    with pytest.raises(ApevalError, match="1 components are wanted"):
        replay(problem, record)
    walk = apeval.make("walk", top=5)
    for outcome, says in ((99, "outcomes"), (-1, "outcomes"), (0.5, "not whole numbers")):
        with pytest.raises(ApevalError, match=says):
            replay(walk, {**record, "a_E": [[outcome]]})


@pytest.mark.parametrize("name", FILES)
def test_any_value_anywhere_is_read_or_refused(good: Path, name: str, tmp_path: Path) -> None:
    """A sample of all places and values: what cannot be read is one line, and nothing else is
    raised."""
    rng = np.random.default_rng(list(name.encode()))
    where = list(places(json.loads((good / name).read_text("utf-8"))))
    shutil.copytree(good.parent / "earlier", tmp_path / "earlier")
    for number in range(6):
        folder = Path(shutil.copytree(good, tmp_path / f"run-{number}"))
        path = where[int(rng.integers(len(where)))]
        change(folder, name, path, VALUES[int(rng.integers(len(VALUES)))])
        for text in read_all(folder, tmp_path):
            assert len(text.splitlines()) == 1
