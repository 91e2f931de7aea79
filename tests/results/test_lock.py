"""One run at a time in a folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.run.test_resume import Struck

import apeval
from apeval.errors import ApevalError
from apeval.results.lock import LOCK, Lock

SLOW = """
import sys, time
import numpy as np
import apeval

def slow(x, a_A, a_E, draws):
    time.sleep(0.05)
    return x + a_E

problem = apeval.Problem(
    nominal=apeval.Normal(), reset=lambda d: np.zeros((d.n, 1)), step=slow,
    failed=lambda x: x[:, 0] > 2.0, horizon=4, chunk=8)
if __name__ == "__main__":
    apeval.evaluate(
        problem, "mc", episodes=4_000, check=False, recorder=apeval.Recorder(sys.argv[1]))
"""


@pytest.fixture
def running(tmp_path: Path) -> Any:
    (tmp_path / "slow.py").write_text(SLOW)
    process = subprocess.Popen([sys.executable, str(tmp_path / "slow.py"), str(tmp_path / "run")])
    ends = time.monotonic() + 60.0
    while not (tmp_path / "run" / "manifest.json").exists():
        assert time.monotonic() < ends
        assert process.poll() is None
        time.sleep(0.05)
    yield process
    process.kill()
    process.wait()


def test_a_second_run_is_refused_and_told_who_is_there(running: Any, tmp_path: Path) -> None:
    problem = apeval.make("walk", top=5)
    before = sorted(p.name for p in (tmp_path / "run").iterdir())
    says = f"in use by another run .process {running.pid} on .*since"
    with pytest.raises(ApevalError, match=says):
        apeval.evaluate(problem, steps=500, recorder=apeval.Recorder(tmp_path / "run"))
    with pytest.raises(ApevalError, match="in use by another run"):
        apeval.Recorder.resuming(tmp_path / "run")
    with pytest.raises(ApevalError, match=f"is under way .process {running.pid} on"):
        apeval.load(tmp_path / "run")
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == before


def test_a_killed_run_leaves_no_lock(running: Any, tmp_path: Path) -> None:
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert (tmp_path / "run" / LOCK).exists()
    again = apeval.Recorder(tmp_path / "run", careful=False)
    result = apeval.evaluate(apeval.make("walk", top=5), steps=500, recorder=again)
    assert apeval.load(tmp_path / "run").result.estimate == result.estimate
    assert not (tmp_path / "run" / LOCK).exists()


def test_a_run_that_raises_gives_the_folder_back(tmp_path: Path) -> None:
    recorder = Struck(tmp_path)
    recorder.after = 1
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(apeval.make("walk", top=5), "mc", episodes=900, recorder=recorder)
    Lock(tmp_path).acquire()


def test_a_lock_says_who_holds_it(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    lock.acquire()
    assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    with pytest.raises(ApevalError, match=f"process {os.getpid()}"):
        Lock(tmp_path).acquire()
    lock.release()
    Lock(tmp_path).acquire()
