"""Ctrl-C and SIGTERM end the program with one line and exit code 130, whenever they come."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apeval.cli.main import main
from apeval.signals import ProgramStoppedError, Stoppable

BOTH = [signal.SIGINT, signal.SIGTERM]
WAITING = '''
import pathlib, time
import numpy as np
import apeval


def wait(where):
    """Say where the program is, and stay there; a signal that comes just before a long sleep would
    only be heard after it."""
    pathlib.Path("here").write_text(where)
    for _ in range(int(10 * {seconds})):
        time.sleep(0.1)


{on_import}


def step(x, a_A, a_E, draws):
    {on_step}
    return x + a_E


def problem():
    return apeval.Problem(
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=step,
        agent=lambda x: 0.0 * x,
        nominal=apeval.Normal(0.0, 1.0),
        failed=lambda x: x[:, 0] > 2.0,
        horizon=3,
    )
'''


def write(folder: Path, seconds: float = 60.0, on_import: str = "", on_step: str = "") -> None:
    text = WAITING.format(seconds=seconds, on_import=on_import, on_step=on_step)
    (folder / "waiting.py").write_text(text)


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "apeval", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_until(reached: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    ends = time.monotonic() + 60.0
    while not reached():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < ends
        time.sleep(0.01)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


STOPPED = (130, "", "apeval: stopped\n")


def has_loaded(process: subprocess.Popen[str], library: bytes) -> bool:
    return library in Path(f"/proc/{process.pid}/maps").read_bytes()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux tells what is loaded")
@pytest.mark.parametrize(
    ("number", "library"), [(signal.SIGINT, b"_bz2"), (signal.SIGTERM, b"_multiarray_umath")]
)
def test_a_signal_while_modules_are_loaded(number: int, library: bytes, tmp_path: Path) -> None:
    """The first of the libraries is loaded by the command line itself, the second by a command."""
    process = started(tmp_path, "truth", "walk")
    wait_until(lambda: has_loaded(process, library), process)
    process.send_signal(number)
    assert ended(process) == STOPPED


@pytest.mark.parametrize(
    ("number", "arguments", "place"),
    [
        (signal.SIGTERM, ("run", "waiting.py", "--episodes", "9"), {"on_import": 'wait("import")'}),
        (signal.SIGTERM, ("run", "waiting.py", "--episodes", "9"), {"on_step": 'wait("check")'}),
        (signal.SIGINT, ("check", "waiting.py"), {"on_step": 'wait("check")'}),
    ],
)
def test_a_signal_outside_of_a_run(
    number: int, arguments: tuple[str, ...], place: dict[str, str], tmp_path: Path
) -> None:
    write(tmp_path, **place)  # type: ignore[arg-type]
    process = started(tmp_path, *arguments)
    wait_until((tmp_path / "here").exists, process)
    process.send_signal(number)
    assert ended(process) == STOPPED


LOST = "\n".join(
    [
        "try:",
        '    wait("import")',
        "except BaseException:",
        '    pathlib.Path("lost").touch()',
        '    wait("again")',
    ]
)


def test_a_lost_exception_is_no_way_out(tmp_path: Path) -> None:
    """Code that catches everything does not hear of it twice."""
    write(tmp_path, on_import=LOST)
    process = started(tmp_path, "list", "waiting.py")
    wait_until((tmp_path / "here").exists, process)
    process.send_signal(signal.SIGTERM)
    wait_until((tmp_path / "lost").exists, process)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == STOPPED


def test_a_lost_exception_is_no_success(tmp_path: Path) -> None:
    write(tmp_path, seconds=5.0, on_import=LOST.replace('wait("again")', "pass"))
    process = started(tmp_path, "list", "waiting.py")
    wait_until((tmp_path / "here").exists, process)
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    assert (code, err) == (130, "apeval: stopped\n")


def test_the_second_signal_of_a_run_stops_at_once(tmp_path: Path) -> None:
    write(tmp_path, on_step='wait("step")')
    process = started(tmp_path, "run", "waiting.py", "--no-check", "--episodes", "100")
    wait_until((tmp_path / "here").exists, process)
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    told = process.stderr.readline() + process.stderr.readline()
    assert "Ctrl-C again stops at once" in told
    process.send_signal(signal.SIGTERM)
    code, out, err = ended(process)
    assert (code, out) == (130, "")
    assert err.endswith("apeval: stopped\n")
    assert "Traceback" not in err


def children(pid: int, name: str) -> list[str]:
    """Processes of that name whose parent is `pid`."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(it.split(":\t", 1) for it in status.read_text().splitlines() if "\t" in it)
        except OSError:  # it has just ended
            continue
        if lines.get("PPid") == str(pid) and lines.get("Name") == name:
            found.append(status.parent.name)
    return found


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells who runs")
def test_a_signal_while_ray_starts(tmp_path: Path) -> None:
    """One is heard and the run ends well; Ray's processes go with it."""
    write(tmp_path)
    arguments = ("waiting.py", "--no-check", "--episodes", "3000", "--method", "mc", "--json")
    process = started(tmp_path, "run", *arguments, "--block", "50", "--backend", "ray")
    wait_until(lambda: children(process.pid, "gcs_server") != [], process)
    started_by_ray = children(process.pid, "gcs_server")
    process.send_signal(signal.SIGTERM)
    code, out, err = ended(process)
    assert code == 130
    assert '"interrupted": true' in out
    assert err == "\nstopping after what is under way; Ctrl-C again stops at once\n"
    assert not any(Path(f"/proc/{pid}").exists() for pid in started_by_ray)


def send(number: int) -> None:
    """To this process, and wait until it is heard."""
    os.kill(os.getpid(), number)
    time.sleep(1.0)


def test_a_program_is_stoppable_for_a_while() -> None:
    before = [signal.getsignal(number) for number in BOTH]
    with Stoppable() as stop:
        with pytest.raises(ProgramStoppedError):
            send(signal.SIGTERM)
        assert stop.asked
    assert [signal.getsignal(number) for number in BOTH] == before


@pytest.mark.parametrize("moment", ["__enter__", "__exit__"])
def test_a_signal_at_the_very_beginning_or_end_is_no_traceback(
    moment: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As handlers are set, or about to be put back."""
    usual = getattr(Stoppable, moment)

    def struck(self: Stoppable, *error: Any) -> Any:
        found = usual(self) if moment == "__enter__" else None
        send(signal.SIGINT)
        return found or usual(self, *error)

    before = [signal.getsignal(number) for number in BOTH]
    monkeypatch.setattr(Stoppable, moment, struck)
    monkeypatch.setattr("sys.argv", ["apeval", "list"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "apeval: stopped\n"
    assert [signal.getsignal(number) for number in BOTH] == before


def test_a_process_that_a_problem_forks_is_not_the_program() -> None:
    """Asynchronous vector environments end theirs with SIGTERM: no traceback, and they do end."""
    program = """
import os, signal
from apeval.run.interrupt import interrupts
from apeval.signals import Stoppable

def child():
    there, here = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(here, b".")
        signal.pause()
        os._exit(0)
    os.read(there, 1)
    os.kill(pid, signal.SIGTERM)
    return os.waitpid(pid, 0)[1]

with Stoppable():
    print(child())
    with interrupts("finish"):
        print(child())
    print(signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL)
"""
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60.0
    )
    assert (said.stdout.split(), said.stderr) == (["15", "15", "True"], "")
