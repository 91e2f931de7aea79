"""Signals, deaths and refusals at moments that do not suit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.run.test_resume import Asked, Struck, asked, every_block
from tests.simulate.test_backends import problem_of, told

import apeval
from apeval.errors import ApevalError
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.results.manifest import read_state
from apeval.run.interrupt import interrupts
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.backends.serial import SerialPool
from apeval.simulate.episodes import Episodes
from apeval.simulate.fault_handling import FaultHandler, FaultPolicy
from apeval.simulate.task import LATE, Task, Trouble
from apeval.simulate.workers.process import ProcessWorker

__all__ = ["every_block"]


class AskedOnReading(apeval.Recorder):
    """Is asked to stop when it has handed out so many recorded blocks."""

    after = 1

    def recorded(self, first: int, n: int) -> Episodes | None:
        found = super().recorded(first, n)
        if found is not None:
            self.after -= 1
            if self.after == 0:
                os.kill(os.getpid(), signal.SIGINT)
        return found


@pytest.mark.usefixtures("every_block")
@pytest.mark.parametrize(
    ("method", "name", "share"),
    [("ape", "gauss", 0.1), ("cem", "gauss", 0.3), ("mc", "walk", 0.3)],
)
def test_a_stop_while_recorded_episodes_are_read_loses_none(
    method: str, name: str, share: float, tmp_path: Path
) -> None:
    problem, folder = problem_of(name), tmp_path / "run"
    whole = apeval.evaluate(
        problem, method, **asked(method), recorder=apeval.Recorder(tmp_path / "whole")
    )
    recorder = Struck(folder)
    recorder.after = most = 1 + int(0.7 * len(list(tmp_path.glob("whole/*/*.episodes.parquet"))))
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(problem, method, **asked(method), recorder=recorder)
    again = AskedOnReading.resuming(folder)
    again.after = 1 + int(share * most)  # type: ignore[attr-defined]
    again.__class__ = AskedOnReading
    small = apeval.evaluate(problem, method, **asked(method), recorder=again, on_interrupt="finish")
    assert small.interrupted
    run = apeval.load(folder)
    ids = [i for batch in run.batches() for i in batch.ids.tolist()]
    assert len(ids) == len(set(ids))
    assert run.episodes.n == run.sample.n
    assert told(apeval.resume(folder, problem)) == told(whole)


@pytest.mark.usefixtures("every_block")
def test_a_stop_while_a_method_learns_anew_leaves_the_folder(tmp_path: Path) -> None:
    """`ape-tabular` learns on its own: what it recorded comes after, and is not for another
    proposal."""
    problem, folder = problem_of("walk"), tmp_path / "run"
    whole = apeval.evaluate(problem, "ape-tabular", steps=3_000, seed=5)
    recorder = Struck(folder)
    recorder.after = 2
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(problem, "ape-tabular", steps=3_000, seed=5, recorder=recorder)
    batches = len(list(folder.glob("episodes/*")))

    def stop(now: Any) -> None:
        if not stopped:
            stopped.append(1)
            os.kill(os.getpid(), signal.SIGINT)

    stopped: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        apeval.resume(folder, problem, listener=stop, on_interrupt="finish")
    assert len(list(folder.glob("episodes/*"))) == batches
    assert told(apeval.resume(folder, problem)) == told(whole)


@pytest.mark.usefixtures("every_block")
def test_a_refused_resume_leaves_the_smaller_result(tmp_path: Path) -> None:
    problem, folder = problem_of("gauss"), tmp_path / "run"
    recorder = Asked(folder)
    recorder.after = 2
    small = apeval.evaluate(
        problem, "ape", **asked("ape"), recorder=recorder, on_interrupt="finish"
    )
    with pytest.raises(ApevalError, match="can be stopped"):
        apeval.resume(folder, problem, time_limit=3.0)
    faults = folder / "faults.json"
    faults.write_text("{")
    with pytest.raises(ApevalError, match=r"faults\.json"):
        apeval.resume(folder, problem)
    faults.unlink()
    run = apeval.load(folder)
    assert run.result.as_json() == small.as_json()
    assert run.episodes.n == run.sample.n
    assert read_state(folder).resumable


def test_a_signal_in_the_middle_of_a_line_is_only_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy:
        def write(self, text: str) -> int:
            raise RuntimeError("reentrant call inside <_io.BufferedWriter name='<stderr>'>")

        def flush(self) -> None: ...

    monkeypatch.setattr(sys, "stderr", Busy())
    with interrupts("finish") as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.asked


# -- workers -------------------------------------------------------------------------------------


def forking(how: str, note: Path) -> Problem:
    """In its 8th episode it starts a process that outlives it, and then dies or hangs."""

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        if 8 in draws.ids and draws.t == 1 and not note.exists():
            child = os.fork()
            if child == 0:
                time.sleep(60.0)
                os._exit(0)
            note.write_text(str(child))
            if how == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60.0)
        return x + a_E

    return replace(problem_of("gauss"), step=step, chunk=4)


def is_running(pid: int) -> bool:
    said = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return bool(said.stdout.strip()) and not said.stdout.startswith("Z")


@pytest.mark.parametrize("how", ["dies", "hangs"])
def test_what_a_simulator_started_goes_with_its_worker(how: str, tmp_path: Path) -> None:
    """A process that holds the pipe of a dead worker open keeps nobody waiting, and is ended."""
    note = tmp_path / "child"
    limit = None if how == "dies" else 1.0
    began = time.monotonic()
    spread = apeval.evaluate(
        forking(how, note), "mc", episodes=40, backend="processes", workers=2, time_limit=limit
    )
    assert time.monotonic() - began < 50.0  # the process that was started sleeps for longer
    serial = apeval.evaluate(replace(problem_of("gauss"), chunk=4), "mc", episodes=40)
    assert spread.estimate == serial.estimate
    assert not is_running(int(note.read_text()))


def test_too_many_workers_are_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def few(*words: Any, **how: Any) -> Any:
        if len(started) == 2:
            raise OSError(11, "Resource temporarily unavailable")
        started.append(popen(*words, **how))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", few)
    with pytest.raises(ApevalError, match="fewer `workers=`"):
        apeval.evaluate(problem_of("gauss"), "mc", episodes=40, backend="processes", workers=3)
    assert all(process.poll() is not None for process in started)


def test_a_worker_that_went_is_noticed() -> None:
    worker = ProcessWorker()
    worker.process.kill()
    while worker.hear().kind != "gone":
        pass
    worker.kill()
    assert worker.process.returncode == -signal.SIGKILL


# -- faults --------------------------------------------------------------------------------------


class LateOnce(SerialPool):
    """Its first block is late, and never again."""

    late = True

    def result(self, ticket: int) -> Episodes | Trouble:
        answer = super().result(ticket)
        if self.late:
            self.late = False
            return Trouble(LATE, "no answer")
        return answer


@pytest.mark.parametrize("retries", [0, 1])
def test_a_block_that_was_late_by_chance_comes_back_whole(retries: int) -> None:
    """Alone, its episodes might have other last digits, or too few decisions each."""
    problem, key = problem_of("walk"), make_key(3)
    task = Task(only(Nominal()), 0, 0, 30, total=200)  # decisions that few of them use up
    pool, noted = LateOnce(problem, key), []
    trouble = pool.result(pool.submit(task))
    assert isinstance(trouble, Trouble)
    mender = FaultHandler(problem, key, FaultPolicy(retries=retries), noted.append)
    mended, whole = mender.mend(pool, task, trouble, 0), task.simulate(problem, key)
    assert np.array_equal(mended.length, whole.length)
    assert np.array_equal(mended.s_end, whole.s_end)
    assert noted[0]["outcome"] == "passed"


@pytest.mark.usefixtures("every_block")
def test_a_resumed_run_knows_what_episodes_look_like(tmp_path: Path) -> None:
    """Its first new block may hold nothing but faults."""

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        if ((draws.ids >= 60) & (draws.ids < 66)).any():
            raise ArithmeticError("the solver does not converge")
        return x + a_E

    problem = replace(problem_of("gauss"), step=step, chunk=6)
    how: dict[str, Any] = {"episodes": 300, "on_fault": "unresolved", "retries": 0}
    whole = apeval.evaluate(problem, "mc", **how)
    recorder = Struck(tmp_path / "run")
    recorder.after = 10
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(problem, "mc", **how, recorder=recorder)
    assert told(apeval.resume(tmp_path / "run", problem)) == told(whole)


BRITTLE = """
import apeval, numpy as np

def problem(where: str = "step", std: float = 1.0):
    def reset(draws):
        if where == "reset" and (draws.ids % 20 == 3).any():
            raise ArithmeticError("the reset does not converge")
        return np.zeros((draws.n, 1))

    def step(x, a_A, a_E, draws):
        if where == "step" and (a_E > 2.0).any():
            raise ArithmeticError("the solver does not converge")
        return x + a_E

    nominal = apeval.Normal(lambda x, a_A: 0.0 * x, std, dim=1)
    return apeval.Problem(nominal=nominal, reset=reset, step=step,
        failed=lambda x: x[:, 0] > 2.5, horizon=3, chunk=20)
"""


@pytest.mark.parametrize("where", ["step", "reset"])
def test_runs_with_faults_are_read_in_every_way(where: str, command: Any, tmp_path: Path) -> None:
    file, run = tmp_path / "brittle.py", tmp_path / "run"
    file.write_text(BRITTLE)
    common = ["run", str(file), "--episodes", "600", "--on-fault", "unresolved", "--retries", "0"]
    common += ["--set", f"problem.where={where}"]  # with half as many, reweight may refuse
    assert command(*common, "--out", str(run))[0] == 0
    assert command(*common, "--seed", "1", "--out", str(tmp_path / "other"))[0] == 0
    assert apeval.load(run).result.unresolved["episodes"] > 0
    for words in (
        ["reweight", str(run), "--nominal", "std*1.05", "--problem", str(file)],
        ["reweight", str(run), "--set", "problem.std=1.05", "--problem", str(file)],
        ["replay", str(run), "--fault", "1", "--problem", str(file)],
        ["merge", str(run), str(tmp_path / "other")],
        ["compare", str(run), str(tmp_path / "other")],
        ["report", str(run), "--out", str(tmp_path / "r.html"), "--problem", str(file)],
        ["export", str(run), "--csv", str(tmp_path / "csv")],
    ):
        code, _, err = command(*words)
        assert (words[0], code, err) == (words[0], 0, err)
