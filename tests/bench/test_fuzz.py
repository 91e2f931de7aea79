"""The fuzzer in small (`apeval bench fuzz` runs thousands), that it sees what it looks for, and
what it has found."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

import apeval
from apeval.errors import ApevalError
from apeval_bench.fuzz import guard
from apeval_bench.fuzz.calls import Calls
from apeval_bench.fuzz.damage import damage
from apeval_bench.fuzz.tables import payload
from apeval_bench.fuzz.watch import Auditor
from apeval_bench.fuzz.written import source

PATIENCE = 60.0  # seconds: a hang is not a slow machine


@pytest.mark.parametrize(
    ("family", "inputs"), [("folders", 20), ("configurations", 45), ("problems", 35)]
)
def test_no_input_is_answered_by_a_traceback(family: str, inputs: int) -> None:
    outcomes = list(guard.run_inputs(family, range(inputs), PATIENCE))
    assert [o["seed"] for o in outcomes] == list(range(inputs))
    assert [(o["seed"], f) for o in outcomes for f in o["findings"]] == []
    # the inputs are neither all nonsense nor all right
    assert sum(o["answered"] for o in outcomes) > inputs / 3
    assert sum(o["refused"] for o in outcomes) > inputs / 3


# -- the fuzzer sees what it looks for -----------------------------------------------------------


@pytest.fixture(scope="module")
def auditor(tmp_path_factory: pytest.TempPathFactory) -> Auditor:
    return Auditor(tmp_path_factory.mktemp("caches"))  # a hook cannot be taken out again


@pytest.fixture
def calls(auditor: Auditor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    (tmp_path / "box").mkdir()
    monkeypatch.setattr(sys, "argv", sys.argv)
    return Calls(tmp_path / "box", auditor)


def kinds(calls: Calls) -> list[str]:
    return [finding["kind"] for finding in calls.findings]


def test_a_traceback_is_a_finding_and_a_refusal_is_none(calls: Calls) -> None:
    def refuse() -> None:
        raise ApevalError("no")

    assert calls.python("wrong", lambda: 1 / 0) is None
    assert calls.python("refused", refuse) is None
    assert calls.python("right", lambda: 3) == 3
    assert kinds(calls) == ["traceback"]
    assert (calls.refused, calls.answered) == (1, 1)


def test_files_and_programs_are_findings(calls: Calls, tmp_path: Path) -> None:
    inside, outside = calls.sandbox / "made", tmp_path / "outside"
    calls.python("allowed", lambda: inside.write_text("x"), [inside])
    assert calls.findings == []
    calls.python("changed", lambda: inside.write_text("xy"))
    calls.python("outside", lambda: outside.write_text("x"))
    calls.python("program", lambda: subprocess.run([sys.executable, "--version"], check=True))
    assert kinds(calls) == ["changed a file", "outside the sandbox", "outside the sandbox"]


def test_the_planted_code_would_leave_a_trace(calls: Calls) -> None:
    import pickle

    trace = calls.sandbox / "hit"
    calls.python("unpickled", lambda: pickle.loads(payload(trace)).close())
    assert kinds(calls) == ["changed a file"]


def test_the_command_line_is_judged(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    calls.command("list", "walk")
    calls.command("run", "nothing")
    assert (calls.answered, calls.refused, calls.findings) == (1, 1, [])
    monkeypatch.setattr("apeval.cli.main.app", lambda **_: 7)
    calls.command("list")
    assert kinds(calls) == ["exit code"]


def test_a_hang_and_a_crash_end_one_input_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(guard.FAMILIES, "odd", "user_problems.odd_family")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    outcomes = list(guard.run_inputs("odd", range(4), 3.0))
    found = [[f["kind"] for f in o["findings"]] for o in outcomes]
    assert found == [[], ["hang"], ["crash"], []]


def test_inputs_follow_from_their_seed(tmp_path: Path) -> None:
    assert source(Random("a 1")) == source(Random("a 1"))
    assert len({source(Random(f"a {k}")) for k in range(50)}) > 40
    recorder = apeval.Recorder(tmp_path / "good")
    apeval.evaluate(apeval.make("walk", top=5), "mc", episodes=20, recorder=recorder)
    found: list[dict[str, Any]] = []
    for copy in ("a", "b"):
        for seed in range(8):
            folder = tmp_path / copy / str(seed) / "run"
            shutil.copytree(tmp_path / "good", folder)
            (folder.parent / "outside").mkdir()
            damage(Random(f"x {seed}"), folder)
        found.append(
            {
                str(p.relative_to(tmp_path / copy)): p.lstat().st_size
                for p in (tmp_path / copy).rglob("*")
                if not p.is_symlink() and p.suffix != ".py"  # these hold the path itself
            }
        )
    assert found[0].keys() == found[1].keys()
