from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from apeval_bench import cells
from apeval_bench.registry import ExperimentRequest

CELLS = [{"problem": "p", "seed": k} for k in range(5)]


def square(cell: Mapping[str, Any]) -> dict[str, Any]:
    return {"square": cell["seed"] ** 2}


def test_outcomes_come_in_the_order_of_the_cells_whatever_the_workers() -> None:
    alone = cells.run_cells("copies", dict, CELLS, ExperimentRequest(1), workers=1)
    together = cells.run_cells("copies", dict, CELLS, ExperimentRequest(1), workers=2)
    assert alone == together == CELLS


def test_an_interrupted_experiment_goes_on_where_it_stopped(tmp_path: Path) -> None:
    ran: list[int] = []

    def fails_at_three(cell: Mapping[str, Any]) -> dict[str, Any]:
        if cell["seed"] == 3:
            raise KeyboardInterrupt
        ran.append(cell["seed"])
        return square(cell)

    def counted(cell: Mapping[str, Any]) -> dict[str, Any]:
        ran.append(cell["seed"])
        return square(cell)

    request = ExperimentRequest(1, cache=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cells.run_cells("squares", fails_at_three, CELLS, request, workers=1)
    torn = tmp_path / "squares.jsonl"
    torn.write_text(torn.read_text() + '{"code": "abc", "cel')
    outcomes = cells.run_cells("squares", counted, CELLS, request, workers=1)
    assert outcomes == [{"square": k**2} for k in range(5)]
    assert ran == [0, 1, 2, 3, 4]
    cells.run_cells("squares", counted, CELLS, request, workers=1)
    assert len(ran) == 5


def test_outcomes_of_other_code_are_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = ExperimentRequest(1, cache=tmp_path)
    cells.run_cells("squares", square, CELLS, request, workers=1)
    monkeypatch.setattr(cells, "fingerprint", lambda: "another")
    calls: list[int] = []

    def counted(cell: Mapping[str, Any]) -> dict[str, Any]:
        calls.append(cell["seed"])
        return square(cell)

    cells.run_cells("squares", counted, CELLS, request, workers=1)
    assert calls == [0, 1, 2, 3, 4]


LONELY = """
import os, pathlib, sys, time
from apeval_bench.cells import run_cells
from apeval_bench.registry import ExperimentRequest

def work(cell):
    pathlib.Path(cell["note"]).write_text(str(os.getpid()))
    time.sleep(120.0)
    return {}

if __name__ == "__main__":
    notes = [{"note": note} for note in sys.argv[1:]]
    run_cells("lonely", work, notes, ExperimentRequest(1), workers=2)
"""


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_workers_of_an_experiment_that_is_stopped_leave(tmp_path: Path, way: int) -> None:
    script = tmp_path / "lonely.py"
    script.write_text(LONELY)
    notes = [tmp_path / name for name in ("a", "b")]
    process = subprocess.Popen([sys.executable, str(script), *map(str, notes)])
    while not all(note.exists() and note.read_text() for note in notes):
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(way)
    try:
        process.wait(30.0)  # and it does not wait for them
    finally:
        process.kill()
    workers = {note.read_text() for note in notes}
    ends = time.monotonic() + 60.0  # they would sleep for longer
    while left := workers & _running():
        assert time.monotonic() < ends, left
        time.sleep(0.2)


def _running() -> set[str]:
    said = subprocess.run(["ps", "-e", "-o", "pid=,stat="], capture_output=True, text=True)
    return {line.split()[0] for line in said.stdout.splitlines() if "Z" not in line.split()[1]}
