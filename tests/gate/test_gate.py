"""The gate: passes, fails, is undecided and judges again; idle where it is not used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import apeval
from apeval.gate.gate import Gate
from apeval.gate.outcomes import GateRecord, GateRefutedError, GateUndecidedError

EXAMPLE = Path(__file__).parents[2] / "examples" / "ci-gate"
TEST = "test_safety-test_the_tank_hardly_ever_overflows"


def pytest_in(folder: Path, *arguments: str, **given: str) -> subprocess.CompletedProcess[str]:
    """A session of its own, as a continuous integration would start it."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, **given, "COLUMNS": "200"}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The sample project after its gate has passed, and what was printed."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    return folder, pytest_in(folder)


def written(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (folder / "runs").rglob("*")}


def test_the_sample_project_passes_and_keeps_its_run(project: tuple[Path, Any]) -> None:
    folder, done = project
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "shown: is the failure probability below 0.0001?" in done.stdout
    result = apeval.load(folder / "runs" / "gates" / TEST).result
    assert result.trusted
    assert result.interval[1] < 1e-4


def test_a_stored_run_is_judged_again_without_simulating(project: tuple[Path, Any]) -> None:
    folder, _ = project
    before = written(folder)
    done = pytest_in(folder, "--apeval-rejudge", BELOW="1e-5")
    assert done.returncode == 0, done.stdout
    assert "shown: is the failure probability below 1e-05?" in done.stdout
    assert "judged again from" in done.stdout
    assert written(folder) == before


def test_a_bound_that_is_too_low_is_refuted(project: tuple[Path, Any]) -> None:
    done = pytest_in(project[0], "--apeval-rejudge", BELOW="1e-6")
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "GateRefutedError: refuted" in done.stdout
    assert "gate.py" not in done.stdout.split("apeval gates")[0]  # the user's line, not ours
    assert "apeval_gate(problem(), below=BELOW" in done.stdout


def test_the_sample_projects_page_says_what_each_bound_brings(project: tuple[Path, Any]) -> None:
    run = apeval.load(project[0] / "runs" / "gates" / TEST)
    text = (EXAMPLE / "README.md").read_text("utf-8")
    promised = re.findall(r"^    BELOW=(\S+) pytest +# (refuted|undecided)", text, re.MULTILINE)
    assert {verdict for _, verdict in promised} == {"refuted", "undecided"}
    for bound, verdict in promised:
        assert apeval.judge(run, float(bound)).verdict == verdict


def test_an_undecided_gate_fails_in_its_own_way(project: tuple[Path, Any]) -> None:
    """With the bound of the how-to, which shows this very output."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "ci-gate.md").read_text("utf-8")
    shown = re.search(r"undecided: is the failure probability below (\S+)\?", page)
    assert shown is not None
    done = pytest_in(project[0], "--apeval-rejudge", "-v", BELOW=shown[1])
    assert shown[0] in done.stdout
    assert done.returncode == 1
    assert "1 passed, 1 undecided" in done.stdout
    assert "UNDECIDED" in done.stdout
    assert "FAILURES" not in done.stdout
    found = re.search(r"target_error=(\S+) and budget=(\d+) would decide", done.stdout)
    assert found is not None, done.stdout
    assert float(found[1]) < 0.2
    assert int(found[2]) > 20_000


def test_a_budget_that_is_too_small_is_undecided_too(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    done = pytest_in(tmp_path, "--apeval-runs", "elsewhere", BUDGET="600", BELOW="1e-5")
    assert done.returncode == 1
    assert "1 undecided" in done.stdout
    assert apeval.load(tmp_path / "elsewhere" / TEST).result.budget == {"steps": 600}


def test_the_run_of_another_controller_is_not_judged(project: tuple[Path, Any]) -> None:
    folder, _ = project
    text = (folder / "tank.py").read_text("utf-8")
    (folder / "tank.py").write_text(text.replace("OPENS_AT = 5", "OPENS_AT = 8"), encoding="utf-8")
    try:
        done = pytest_in(folder, "--apeval-rejudge")
    finally:
        (folder / "tank.py").write_text(text, encoding="utf-8")
    assert done.returncode == 1
    assert "is one of another problem" in done.stdout


def test_there_must_be_a_run_to_judge_again(tmp_path: Path) -> None:
    gate = Gate(tmp_path / "none", True, lambda found: None)
    with pytest.raises(apeval.ApevalError, match="run without --apeval-rejudge first"):
        gate(apeval.make("walk", top=5), below=0.1, budget=2_000)


def test_verdicts_are_those_of_the_run(tmp_path: Path) -> None:
    told: list[GateRecord] = []
    gate = Gate(tmp_path / "walk", False, told.append)
    walk = apeval.make("walk", top=5)  # 0.0323
    result = gate(walk, below=0.1, budget=2_000)
    assert result.below is not None
    assert result.below.verdict == "shown"
    with pytest.raises(GateRefutedError) as refuted:
        gate(walk, below=0.001, budget=2_000)
    with pytest.raises(GateUndecidedError, match=r"budget=\d+ would decide") as undecided:
        gate(walk, method="mc", below=0.034, budget=4_000)
    assert isinstance(refuted.value, AssertionError)
    assert not isinstance(undecided.value, AssertionError)
    assert [it.verdict for it in told] == ["shown", "refuted", "undecided"]
    assert [it.folder for it in told] == [str(tmp_path / f"walk{end}") for end in ("", "-2", "-3")]
    assert GateRecord(**told[2].as_json()).as_json() == told[2].as_json()
    with pytest.raises(apeval.ApevalError, match="budget and steps are the same"):
        gate(walk, below=0.1, budget=2_000, steps=3)


def test_what_is_not_trusted_shows_nothing(tmp_path: Path) -> None:
    gate = Gate(tmp_path / "run", False, lambda found: None)
    with pytest.raises(GateUndecidedError, match=r"not trusted: the estimate rests on") as raised:
        gate(apeval.make("walk", top=20), below=0.9, budget=1_000)
    assert raised.value.record.bound < 0.9  # a trusted one would have shown it


@pytest.mark.parametrize("bound", [0.1, 0.034, 0.001])
def test_judge_says_what_evaluate_would_have_said(bound: float) -> None:
    for given in ({"steps": 2_000}, {"episodes": 800}, {"steps": 30_000, "target_error": 0.2}):
        run = apeval.InMemory(apeval.make("walk", top=5))
        asked = apeval.evaluate(run.of, below=bound, recorder=run, **given)  # type: ignore[arg-type]
        assert apeval.judge(run, bound) == asked.below
    assert apeval.judge(run, bound, confidence=0.8).upper < apeval.judge(run, bound).upper
    with pytest.raises(apeval.ApevalError, match="below"):
        apeval.judge(run, 2.0)


def test_a_session_without_gates_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        textwrap.dedent(
            """
            import sys

            def test_nothing_heavy_is_there():
                assert "apeval.gate.plugin" in sys.modules
                ours = {name for name in sys.modules if name.split(".")[0] == "apeval"}
                assert ours == {"apeval", "apeval.version", "apeval.gate", "apeval.gate.plugin"}
                assert not {"numpy", "scipy", "torch", "pyarrow", "gymnasium"} & set(sys.modules)
            """
        ),
        encoding="utf-8",
    )
    options = ["-p", "no:hypothesispytest", "-p", "no:xdist", "-W", "error"]
    done = pytest_in(tmp_path, *options)
    assert done.returncode == 0, done.stdout
    assert "apeval gates" not in done.stdout


def test_gates_in_workers_are_reported(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text(
        textwrap.dedent(
            """
            import apeval, pytest

            @pytest.mark.parametrize("below", [0.1, 0.034])
            def test_walk(apeval_gate, below):
                walk = apeval.make("walk", top=5)
                apeval_gate(walk, method="mc", below=below, budget=4_000)
            """
        ),
        encoding="utf-8",
    )
    done = pytest_in(tmp_path, "-n", "2")
    assert done.returncode == 1
    assert "1 passed, 1 undecided" in done.stdout
    assert "shown: is" in done.stdout
    assert "undecided: is" in done.stdout
    assert len(list((tmp_path / "runs" / "gates").iterdir())) == 2
