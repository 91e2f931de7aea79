"""The attack in small (`apeval bench attack` runs thousands of cases), and that it sees what it
looks for."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from apeval.errors import ApevalError
from apeval.results.provenance import inputs_hash
from apeval_bench import attack
from apeval_bench.attack import folders, kills, lines, sizes, users
from apeval_bench.attack.command import PATIENCE, ran
from apeval_bench.attack.edits import edits
from apeval_bench.attack.readings import Answer, Page, judge, only_learning
from apeval_bench.attack.seals import find_seals, seal
from apeval_bench.attack.ways.every import WAYS
from apeval_bench.registry import ExperimentRequest

OPEN = frozenset(json.loads(Path(__file__).with_name("attack_open.json").read_text("utf-8")))
"""Cases that are known to fail: to be mended, one by one, until there is none."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attack") / "prepared"
    folders.prepare(folder)
    return folder


def attacked(part: str, prepared: Path) -> None:
    cases, outcomes = attack.run_part(part, prepared, [sizes.SMALL], seed=0)
    assert [o["seed"] for o in outcomes] == cases
    found = {o["seed"]: o["findings"] for o in outcomes if o["findings"]}
    assert {case: it for case, it in found.items() if case not in OPEN} == {}


def test_edited_folders_show_no_other_number(prepared: Path) -> None:
    attacked("folders", prepared)


def test_hostile_command_lines_are_refused(prepared: Path) -> None:
    attacked("lines", prepared)


def test_killed_runs_go_on_to_the_same_number(tmp_path: Path) -> None:
    attacked("kills", tmp_path / "prepared")


def test_users_code_that_misbehaves_gives_no_other_number(tmp_path: Path) -> None:
    attacked("users", tmp_path / "prepared")


# -- the attack is as large as it says, and sees what it looks for -----------------------------


def test_the_attack_is_large(prepared: Path) -> None:
    edited = folders.names(prepared)
    assert len(edited) == len(set(edited)) >= 1_000
    assert {name.split(":")[1] for name in edited} > {"complete", "killed", "python", "around"}
    assert any(name.endswith(":unsealed") for name in edited)
    assert len(lines.names(prepared)) == len(set(lines.names(prepared))) >= 500
    assert len(kills.names(prepared)) == len(set(kills.names(prepared))) >= 200
    assert len(WAYS) >= 40
    assert {name.split(":")[3] for name in users.names(prepared)} == {"serial", "processes", "ray"}
    for module in (lines, kills, users):
        assert set(module.names(prepared, small=True)) <= set(module.names(prepared))


def test_the_sample_is_large_enough(prepared: Path) -> None:
    least = {"folders": 1_000, "lines": 500, "kills": 200, "users": 120}
    for part, module in {"folders": folders, "lines": lines, "kills": kills}.items():
        cases = module.names(prepared)
        assert least[part] <= len(sizes.select(part, cases)) < len(cases)
    cases = users.names(prepared)
    tried: dict[str, set[str]] = {}
    for case in sizes.select("users", cases):
        tried.setdefault(case.split(":")[1], set()).add(case.split(":")[3])
    assert len([way for way, it in tried.items() if it == {"serial", "processes", "ray"}]) >= 40
    assert len(tried) >= 70


def test_a_sample_is_spread_evenly() -> None:
    cases = [f"{k}" for k in range(10)]
    assert sizes.evenly(cases, 4) == ["0", "2", "5", "7"]
    assert sizes.evenly(cases, 99) == cases
    assert sizes.evenly([], 3) == []


def test_the_attacker_makes_every_hash_fit(prepared: Path, tmp_path: Path) -> None:
    base, run = prepared / "complete" / "run", tmp_path / "run"
    seals = find_seals(base)
    assert {"result.json", "run.json", "sample.parquet"} <= {it.of for it in seals}
    named = {edit.name: edit for edit in edits(base, prepared / "complete" / "other")}
    shutil.copytree(base, run)
    named["run.json:inputs.seed:=1"].do(run)
    seal(run, seals)
    told = json.loads((run / "run.json").read_text())
    assert told["inputs"]["seed"] == 1
    assert told["inputs_sha256"] == inputs_hash(told["inputs"], told["identity"])
    manifest = json.loads((run / "manifest.json").read_text())
    content = (run / "run.json").read_bytes()
    assert manifest["sha256"]["run.json"] == hashlib.sha256(content).hexdigest()


def test_every_edit_changes_the_folder(prepared: Path, tmp_path: Path) -> None:
    base = prepared / "own" / "run"
    before = {p: p.read_bytes() for p in sorted(base.rglob("*")) if p.is_file()}
    run = tmp_path / "run"
    found = edits(base, prepared / "own" / "other")
    for edit in found[:: len(found) // 60]:
        shutil.copytree(base, run)
        edit.do(run)
        after = {base / p.relative_to(run): p.read_bytes() for p in run.rglob("*") if p.is_file()}
        assert after != before, edit.name
        shutil.rmtree(run)


def test_answers_are_judged() -> None:
    honest = Answer({"estimate": 1.0})
    assert judge(honest, Answer({"estimate": 1.0})) == "same"
    assert judge(honest, Answer(None)) == "refused"
    assert judge(honest, Answer({"estimate": 2.0})) == "different"
    assert judge(honest, Answer({"estimate": 2.0}, "not to be trusted")) == "warned"
    assert judge(Answer(None), Answer({"estimate": 2.0})) == "answered"
    page = Answer(Page(("estimate", "0.1", "nominal", "0.5")))
    assert judge(page, Answer(Page(("estimate", "0.1")))) == "less"
    assert judge(page, Answer(Page(("nominal", "0.5", "estimate", "0.1")))) == "different"
    assert judge(page, Answer(Page(("estimate", "0.2")))) == "different"


def test_only_learning_in_an_export_cannot_be_told() -> None:
    head, learning, counted = "id,stage,margin,weight", "0,learning,1.5,", "1,estimate,1.5,0.1"
    honest = Answer({"episodes.csv": f"{head}\n{learning}\n{counted}", "tail.csv": "1"})

    def same(rows: str, tail: str = "1") -> bool:
        return only_learning(honest, Answer({"episodes.csv": f"{head}\n{rows}", "tail.csv": tail}))

    assert same(f"0,learning,1.7,\n{counted}")
    assert not same(f"2,learning,1.5,\n{counted}")
    assert not same(f"{learning}\n1,estimate,1.7,0.1")
    assert not same(f"{learning}\n1,learning,1.5,")
    assert not same(f"0,learning,1.7,\n{counted}", "2")
    assert not only_learning(Answer({"estimate": 1}), Answer({"estimate": 2}))


def test_kills_are_of_commands_that_end_well_undisturbed(tmp_path: Path) -> None:
    """Else their own exit code would be taken for that of the kill."""
    for name in ("plan", "help"):
        assert ran(kills.SCENES[name].words, tmp_path).returncode == 0


def test_an_option_of_a_line_is_changed_and_not_given_twice() -> None:
    found = lines.command_lines()
    assert found["report:--out=blank"] == ["report", "run", "--out", " "]
    assert found["report:--out twice"].count("--out") == 2


def test_a_torn_file_and_a_wrong_number_are_findings(tmp_path: Path) -> None:
    it = kills.Kill("case")
    page = tmp_path / "page.html"
    page.write_text("<html>")
    kills.whole(it, page)
    assert [finding["kind"] for finding in it.findings] == ["torn file"]


def test_a_resumed_run_that_hangs_is_a_finding_and_busy_machines_get_longer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And no end of the attack. Here all takes ten times as long as on a quiet machine."""
    (tmp_path / kills._SECONDS).write_text(f"{10 * kills._QUIET}")
    waited: list[float] = []

    def hangs(words: Any, folder: Path, patience: float = PATIENCE) -> Any:
        waited.append(patience)
        raise subprocess.TimeoutExpired(words, patience)

    monkeypatch.setattr(kills, "ran", hangs)
    monkeypatch.setattr(kills, "_stopped", lambda *_: (None, "", "", True))
    outcome = kills.kill("kills:run:SIGINT:0", 0, tmp_path)
    assert [finding["kind"] for finding in outcome["findings"]] == ["hang"]
    assert waited == [10 * PATIENCE]


def test_a_part_that_is_not_run_anew_stays_in_the_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run_cells(task: str, work: Any, cells: Any, *_: Any, **__: Any) -> list[dict[str, Any]]:
        return [{"cases": len(cell["part"]), "tally": {}, "findings": []} for cell in cells]

    monkeypatch.setattr(attack, "run_cells", run_cells)
    first = attack.attack(ExperimentRequest(1, out=tmp_path, rows=("small",)))
    (tmp_path / "attack.json").write_text(json.dumps(first.data), "utf-8")
    second = attack.attack(ExperimentRequest(1, out=tmp_path, rows=("lines:small",)))
    assert [row["part"] for row in second.data["rows"]] == list(attack.PARTS)
    assert all(row["cases"] == len(row["part"]) for row in second.data["rows"])
    for part in attack.PARTS:  # how each row was made, whatever was run last
        assert f"| `{part}:small` |" in second.text


def test_cases_are_selected_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []

    def block(cell: Any) -> dict[str, Any]:
        asked.append(cell)
        finding = {"case": "".join(cell["rows"]), "kind": "traceback", "call": "x", "detail": "y"}
        return {"cases": 1, "tally": {"same": 1}, "findings": [finding, finding]}

    monkeypatch.setattr(attack, "block", block)
    report = attack.attack(ExperimentRequest(1, rows=("users:the clock",)))
    assert [(cell["part"], cell["rows"]) for cell in asked] == [("users", ["users:the clock"])]
    assert not report.passed
    assert report.data["rows"][0]["figures"]["tracebacks"] == 1  # cases, not findings
    cells = attack.cells_of(ExperimentRequest(1, rows=("kills:sample", "users")))
    assert {(it["part"], *it["rows"]) for it in cells} == {("kills", "sample"), ("users",)}
    assert len(cells) == attack.PARTS["kills"] + attack.PARTS["users"]
    with pytest.raises(ApevalError, match="no row nothing"):
        attack.attack(ExperimentRequest(1, rows=("nothing",)))
    with pytest.raises(ApevalError, match="no case users:nothing"):
        attack.run_part("users", tmp_path / "prepared", ["users:nothing"], 0)
