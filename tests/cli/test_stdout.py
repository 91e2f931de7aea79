"""stdout carries results and nothing else, whatever a user's problem prints, and where."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from apeval.cli.main import app

NOISY = '''
"""A problem that prints wherever code of its own runs."""
import atexit, ctypes, os, subprocess, sys
import numpy as np
import apeval

LIBC = ctypes.CDLL(None)
FIRST = sys.stdout


def shout(where):
    print("NOISE", where)
    sys.__stdout__.write("NOISE through the old object\\n")
    FIRST.write("NOISE through an object kept from before\\n")
    os.write(1, b"NOISE through the descriptor\\n")
    LIBC.puts(b"NOISE held by a C library")
    subprocess.run(["echo", "NOISE of a child"], check=True)


shout("while it is imported")
atexit.register(shout, "at the very end")


def step(x, a_A, a_E, draws):
    if draws.t == 1:
        shout("in a step")
    return x + a_E


def problem():
    """Loud."""
    shout("in the factory")
    return apeval.Problem(
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=step,
        agent=lambda x: 0.0 * x,
        nominal=apeval.Normal(0.0, 1.0),
        failed=lambda x: x[:, 0] > 2.0,
        horizon=3,
    )
'''


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the problem, and a run of it."""
    folder = tmp_path_factory.mktemp("loud")
    (folder / "loud.py").write_text(NOISY)
    assert apeval_in(folder, *RUN, "--out", "runs/a", "--no-check").returncode == 0
    return folder


RUN = ("run", "loud.py", "--method", "mc", "--episodes", "200", "--json")


def apeval_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "apeval", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        RUN,  # with the check before it
        (*RUN, "--backend", "processes", "--workers", "2"),
        ("check", "loud.py", "--json", "--seconds", "1"),
        ("replay", "runs/a", "--problem", "loud.py", "--json"),
    ],
)
def test_json_stands_alone_on_stdout(arguments: tuple[str, ...], place: Path) -> None:
    done = apeval_in(place, *arguments)
    assert done.returncode in (0, 1), done.stderr
    assert isinstance(json.loads(done.stdout), dict)
    assert "NOISE in a step" in done.stderr
    assert "NOISE held by a C library" in done.stderr
    assert "NOISE at the very end" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_json_stands_alone_on_stdout_with_ray(place: Path) -> None:
    done = apeval_in(place, *RUN, "--backend", "ray", "--workers", "1", "--no-check")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["episodes"] == 200


@pytest.mark.parametrize(
    ("arguments", "begins"),
    [
        (("run", "loud.py", "--method", "mc", "--episodes", "100", "-q"), "loud.py:problem · mc"),
        (("list", "loud.py"), "loud.py:problem: Loud."),
        (("report", "runs/a", "--problem", "loud.py", "--out", "r.html"), "report in r.html"),
    ],
)
def test_text_is_free_of_what_a_problem_prints(
    arguments: tuple[str, ...], begins: str, place: Path
) -> None:
    done = apeval_in(place, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(begins)
    assert "NOISE" not in done.stdout
    assert "NOISE in the factory" in done.stderr or "NOISE while" in done.stderr


def test_what_is_printed_in_the_same_process_is_told_apart(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner has a stdout of its own, which is given back as it was."""
    text = NOISY.replace('atexit.register(shout, "at the very end")', "")  # not in this process
    (place / "here.py").write_text(text)
    monkeypatch.chdir(place)
    before = os.fstat(1), sys.stdout
    done = CliRunner().invoke(app, ["run", "here.py", *RUN[2:], "--no-check"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["problem"] == "here.py:problem"
    assert "NOISE in a step" in done.stderr
    assert (os.fstat(1), sys.stdout) == before


@pytest.mark.parametrize("arguments", [("show", "runs/a"), ("list", "walk"), ("--help",)])
def test_a_closed_pipe_is_exit_code_141(arguments: tuple[str, ...], place: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "apeval", *arguments],
        cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr as told:
        assert told.read() == ""
    assert process.wait(60) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("arguments", [("show", "runs/a"), ("--help",)])
def test_a_full_disk_is_one_clear_line(arguments: tuple[str, ...], place: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "apeval", *arguments],
            cwd=place, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("apeval: cannot write")
    assert len(done.stderr.splitlines()) == 1


def test_the_end_of_a_file_in_a_problem_is_its_own_mistake(tmp_path: Path) -> None:
    """It is no Ctrl-D at a question that nobody asked."""
    (tmp_path / "ends.py").write_text('def problem():\n    raise EOFError("no more data")\n')
    done = apeval_in(tmp_path, "check", "ends.py")
    assert done.returncode == 2
    assert "EOFError: no more data (ends.py, line 2)" in done.stderr
