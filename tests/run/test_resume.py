"""An interrupted run goes on to the result that it would have had, bit for bit."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.simulate.test_backends import STEPS, cases, problem_of, told

import apeval
from apeval.errors import ApevalError, StorageError
from apeval.results import journal
from apeval.results.manifest import MANIFEST, read_state, write_manifest
from apeval.results.provenance import counted, inputs_hash
from apeval.simulate import episode_source
from apeval_bench.faults import PROBLEM, children, compare

SEED = 5
SEALED = {"schema_version": 2, "identity": {}, "inputs_sha256": ""}


def asked(method: str) -> dict[str, Any]:
    return {"steps": STEPS.get(method, 1_500), "seed": SEED}


@pytest.fixture
def every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block is written at once, as with a slow simulator."""
    monkeypatch.setattr(episode_source, "_FLUSH_SECONDS", 0.0)


class Struck(apeval.Recorder):
    """Is struck after so many batches."""

    after = 10**9

    def blow(self) -> None:
        raise KeyboardInterrupt

    def batch(self, episodes: Any, position: int) -> None:
        super().batch(episodes, position)
        if self.batches >= self.after:
            self.after = 10**9
            self.blow()


class Asked(Struck):
    """Is asked to stop, once, as by Ctrl-C."""

    def blow(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("every_block")
@pytest.mark.parametrize(("method", "name"), cases())
def test_every_method_goes_on_as_if_nothing_had_been(
    method: str, name: str, tmp_path: Path
) -> None:
    problem = problem_of(name)
    whole = apeval.evaluate(
        problem, method, **asked(method), recorder=apeval.Recorder(tmp_path / "whole")
    )
    batches = len(journal.numbers(tmp_path / "whole" / "episodes"))
    for after in {1, 1 + batches // 2, batches - 1} if method == "ape" else {1 + batches // 2}:
        folder = tmp_path / str(after)
        recorder = Struck(folder)
        recorder.after = after
        with pytest.raises(KeyboardInterrupt):
            apeval.evaluate(problem, method, **asked(method), recorder=recorder)
        assert not read_state(folder).complete
        assert told(apeval.resume(folder, problem)) == told(whole)
        run = apeval.load(folder)
        ids = [i for batch in run.batches() for i in batch.ids.tolist()]
        assert len(ids) == len(set(ids))
        assert told(apeval.resume(folder)) == told(whole)  # complete: it is only read


@pytest.mark.usefixtures("every_block")
@pytest.mark.parametrize(("method", "name"), [("ape", "gauss"), ("cem", "gauss"), ("mc", "walk")])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_ctrl_c_gives_a_smaller_result_and_the_run_goes_on(
    method: str, name: str, share: float, tmp_path: Path
) -> None:
    problem = problem_of(name)
    whole = apeval.evaluate(
        problem, method, **asked(method), recorder=apeval.Recorder(tmp_path / "whole")
    )
    batches = len(journal.numbers(tmp_path / "whole" / "episodes"))
    folder = tmp_path / "stopped"
    recorder = Asked(folder)
    recorder.after = 1 + int(share * (batches - 1))
    before = signal.getsignal(signal.SIGINT)
    small = apeval.evaluate(
        problem, method, **asked(method), recorder=recorder, on_interrupt="finish"
    )
    assert signal.getsignal(signal.SIGINT) is before
    assert small.interrupted
    assert small.steps < whole.steps
    assert any("was stopped after" in text for text in small.warnings)
    run = apeval.load(folder)  # complete and valid
    assert run.manifest.interrupted
    assert run.result.as_json() == small.as_json()
    assert run.episodes.n == run.sample.n == small.final.episodes
    assert told(apeval.resume(folder, problem)) == told(whole)
    assert not apeval.load(folder).manifest.interrupted


@pytest.mark.usefixtures("every_block")
def test_a_run_may_be_stopped_again_and_again(tmp_path: Path) -> None:
    problem, folder = problem_of("gauss"), tmp_path / "run"
    whole = apeval.evaluate(problem, "ape", **asked("ape"))
    recorder: Any = Asked(folder)
    recorder.after = 3
    apeval.evaluate(problem, "ape", **asked("ape"), recorder=recorder, on_interrupt="finish")
    for after in (6, 20):
        again = Asked.resuming(folder)
        again.__class__ = Struck
        again.after = after
        with pytest.raises(KeyboardInterrupt):
            apeval.evaluate(problem, "ape", **asked("ape"), recorder=again)
    assert told(apeval.resume(folder, problem, backend="processes", workers=2)) == told(whole)


@pytest.mark.usefixtures("every_block")
@pytest.mark.parametrize("torn", ["episodes", "decisions", "orphan"])
def test_a_torn_last_file_is_dropped_and_said(torn: str, tmp_path: Path) -> None:
    problem, folder = problem_of("gauss"), tmp_path / "run"
    whole = apeval.evaluate(problem, "ape", **asked("ape"))
    recorder = Struck(folder)
    recorder.after = 8
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(problem, "ape", **asked("ape"), recorder=recorder)
    decisions, episodes = journal.paths(folder / "episodes", 7)
    if torn == "orphan":  # killed before the second file, and so before the manifest
        last = journal.previous(folder / "episodes", 7)
        episodes.unlink()
        write_manifest(folder, replace(read_state(folder), batches=7, journal=last))
    else:
        file = episodes if torn == "episodes" else decisions
        file.write_bytes(file.read_bytes()[:-100])
    (folder / "episodes" / "000008.decisions.parquet.part").write_bytes(b"half")
    said: list[str] = []
    assert told(apeval.resume(folder, problem, tell=said.append)) == told(whole)
    assert len(said) == (0 if torn == "orphan" else 1)
    assert not list(folder.rglob("*.part"))


def test_a_full_disk_stops_with_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every_block: None
) -> None:
    problem, folder = problem_of("gauss"), tmp_path / "run"
    whole = apeval.evaluate(problem, "ape", **asked("ape"))
    written, real = [], os.fsync

    def full(descriptor: int) -> None:
        written.append(1)
        if len(written) > 25:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"No space left on device.*apeval.resume") as stop:
        apeval.evaluate(problem, "ape", **asked("ape"), recorder=apeval.Recorder(folder))
    assert str(folder) in str(stop.value)
    monkeypatch.undo()
    assert journal.numbers(folder / "episodes")
    assert told(apeval.resume(folder, problem)) == told(whole)


def unfinished(folder: Path, **how: Any) -> None:
    recorder = Struck(folder, careful=True)
    recorder.after = 1
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(apeval.make("walk", top=5), "mc", episodes=900, recorder=recorder, **how)


def rewrite(folder: Path, data: Any) -> None:
    """Another run.json, with every hash made anew, as someone would who wants it to pass."""
    if "inputs_sha256" in data:
        data["inputs_sha256"] = inputs_hash(data["inputs"], data["identity"])
    (folder / "run.json").write_text(json.dumps(data))
    write_manifest(folder, read_state(folder))


def test_changed_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unfinished(tmp_path / "run")
    inputs = tmp_path / "run" / "run.json"
    data = json.loads(inputs.read_text())
    data["versions"]["numpy"] = "1.0"
    rewrite(tmp_path / "run", {**data, "source_sha256": "0" * 64})
    with pytest.raises(ApevalError, match=r"own code .*numpy 1.0 \(now .*`allow_changes=True`"):
        apeval.resume(tmp_path / "run")
    whole = apeval.evaluate(apeval.make("walk", top=5), "mc", episodes=900)
    resumed = apeval.resume(tmp_path / "run", allow_changes=True)
    assert "numpy 1.0" in resumed.warnings[0]
    assert resumed.warnings[1:] == whole.warnings
    assert resumed.trusted == whole.trusted
    assert told(replace(resumed, warnings=whole.warnings)) == told(whole)
    kept = apeval.load(tmp_path / "run").provenance["changes_allowed"]
    assert [text.split(" (now")[0] for text in kept] == ["apeval's own code", "numpy 1.0"]


def test_episodes_of_another_run_are_refused(tmp_path: Path) -> None:
    problem = problem_of("gauss")
    recorder = Struck(tmp_path / "a")
    recorder.after = 3
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(problem, "cem", episodes=600, recorder=recorder)
    data = json.loads((tmp_path / "a" / "run.json").read_text())
    # the proposals of `ape` have several components
    data["inputs"] |= {"method": "ape", "settings": {}}
    rewrite(tmp_path / "a", data)
    state = read_state(tmp_path / "a")
    write_manifest(tmp_path / "a", replace(state, inputs=counted(data["inputs"])))
    with pytest.raises(ApevalError, match="do not belong to this run"):
        apeval.resume(tmp_path / "a", problem)


def test_an_interrupted_run_is_not_replaced_unasked(command: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    unfinished(folder)
    run = ["run", "walk", "--set", "problem.top=5", "--method", "mc", "--episodes", "900"]
    code, _, err = command(*run, "--out", str(folder))
    assert code == 2
    assert "this very run, interrupted: apeval resume" in err
    assert "--fresh" in err
    code, _, err = command(*run, "--seed", "8", "--out", str(folder))
    assert (code, "another run, interrupted" in err) == (2, True)
    code, out, _ = command("resume", str(folder))
    assert code == 0
    code, shown, _ = command("resume", str(folder))
    assert (code, "is complete" in shown) == (0, True)
    assert shown.splitlines()[1:] == out.splitlines()
    unfinished_again = tmp_path / "again"
    unfinished(unfinished_again)
    assert command(*run, "--out", str(unfinished_again), "--fresh")[0] == 0


def test_a_run_that_extends_another_still_does(command: Any, tmp_path: Path) -> None:
    first, more = tmp_path / "first", tmp_path / "more"
    run = ["run", "walk", "--set", "problem.top=5", "--method", "mc", "--episodes", "900"]
    assert command(*run, "--out", str(first))[0] == 0
    recorder = Struck(more, extends=["../first"])
    recorder.after = 1
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(apeval.make("walk", top=5), "mc", episodes=900, seed=1, recorder=recorder)
    code, resumed, _ = command("resume", str(more), "--json")
    whole = command(*run, "--extend", str(first), "--out", str(tmp_path / "whole"), "--json")[1]
    assert code == 0
    one, other = json.loads(resumed), json.loads(whole)
    assert one["interval"] == other["interval"]
    assert (more / "extended.json").exists()
    code, shown, _ = command("resume", str(more), "--json")  # complete: what the run printed
    assert (code, json.loads(shown)) == (0, one)


def test_a_run_that_was_stopped_before_its_common_answer_still_gives_it(
    command: Any, tmp_path: Path
) -> None:
    """Its own result alone would be another number."""
    first, more = tmp_path / "first", tmp_path / "more"
    problem = apeval.make("walk", top=5)
    for folder, seed, extends in ((first, 0, []), (more, 1, ["../first"])):
        recorder = apeval.Recorder(folder, extends=extends)
        apeval.evaluate(problem, "mc", episodes=900, seed=seed, recorder=recorder)
    code, shown, _ = command("resume", str(more), "--json")
    both = apeval.merge([apeval.load(first), apeval.load(more)], extended=True)
    assert (code, json.loads(shown)["interval"]) == (0, list(both.interval))
    assert (more / "extended.json").exists()
    first.rename(tmp_path / "elsewhere")
    code, shown, _ = command("resume", str(more), "--json")
    assert (code, json.loads(shown)["trusted"]) == (0, False)


def test_a_problem_of_ones_own_is_not_run_on_a_folders_word(command: Any, tmp_path: Path) -> None:
    code = "import apeval\ndef problem():\n    return apeval.make('walk', top=5)\n"
    file, folder = tmp_path / "mine.py", tmp_path / "run"
    file.write_text(code)
    recorder = Struck(folder, files=[file])
    recorder.after = 1
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(apeval.make(str(file)), "mc", episodes=900, recorder=recorder)
    status, _, err = command("resume", str(folder))
    assert (status, "name it, --problem" in err) == (2, True)
    file.write_text(code + "# changed\n")
    status, _, err = command("resume", str(folder), "--problem", str(file))
    assert (status, "mine.py" in err, "--allow-changes" in err) == (2, True, True)
    file.write_text(code)
    assert command("resume", str(folder), "--problem", str(file))[0] == 0


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"schema_version": 7}, "schema version 7"),
        ({"schema_version": 2, "extends": [], "inputs": []}, "damaged"),
        ({**SEALED, "extends": [3], "inputs": {}}, "does not list the earlier runs"),
        ({**SEALED, "extends": [], "inputs": {"problem": "walk"}}, "view is missing"),
    ],
)
def test_a_damaged_run_json_is_one_clear_line(data: Any, says: str, tmp_path: Path) -> None:
    unfinished(tmp_path / "run")
    rewrite(tmp_path / "run", data)
    with pytest.raises(ApevalError, match=says):
        apeval.resume(tmp_path / "run")


def started(folder: Path, *how: str) -> subprocess.Popen[str]:
    main = "from apeval.cli.main import main; main()"
    command = [PROBLEM, "--no-check", "--episodes", "900", "--out", str(folder), *how]
    return subprocess.Popen(
        [sys.executable, "-c", main, "run", *command, "--set", "problem.cost=2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for_batch(folder: Path, process: subprocess.Popen[str]) -> None:
    while not list(folder.glob("episodes/*.episodes.parquet")):
        assert process.poll() is None
        with_timeout(process, 0.05)


def with_timeout(process: subprocess.Popen[str], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_the_command_with_a_result(number: int, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = started(folder, "--backend", "processes", "--workers", "2")
    wait_for_batch(folder, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"apeval resume {folder}" in out
    assert "Ctrl-C again stops at once" in err
    assert apeval.load(folder).result.interrupted
    assert children(process.pid) == []


def test_two_signals_stop_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = started(folder, "--block", "4000")  # a block that takes a while
    while not (folder / MANIFEST).exists():
        with_timeout(process, 0.05)
    with_timeout(process, 0.3)
    process.send_signal(signal.SIGINT)
    with_timeout(process, 0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "\nstopped\n" in err
    assert read_state(folder).resumable


def test_kills_of_workers_and_of_the_run_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`apeval bench faults` in small."""
    monkeypatch.setattr("apeval_bench.faults._PAUSE", 0.7)
    row = compare(tmp_path, seed=3, episodes=160, cost=2.0, kills=4)
    assert row["workers"] + row["runs"] >= 3
    assert row["identical"]
    assert row["episodes_are_whole"]
