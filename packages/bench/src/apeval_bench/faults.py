"""Random kills of workers and of the run itself: nothing may be lost, nothing counted twice."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.results.folder import load
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

PROBLEM = "apeval_bench.busy:problem"
_MAIN = "from apeval.cli.main import main; main()"
_KILLS, _EPISODES, _COST = 100, 6_000, 2.0
_RUN_SHARE = 0.25  # of the kills: the run itself; the rest are workers
_PAUSE = 1.2  # seconds between kills, on average


@experiment("bench", "faults", "random kills of workers and of the run, all resumed", seeds=1)
def faults(request: ExperimentRequest) -> ExperimentReport:
    """A run on an expensive toy simulator, undisturbed and under fire."""
    rows = []
    for k, seed in enumerate(request.all_seeds):
        request.tick(f"seed {seed}", k, request.seeds)
        with tempfile.TemporaryDirectory() as folder:
            rows.append(compare(Path(folder), seed, _EPISODES, _COST, _KILLS))
    passed = all(
        row["identical"] and row["episodes_are_whole"] and row["workers"] + row["runs"] >= _KILLS
        for row in rows
    )
    lines = [
        "| seed | kills of workers | kills of the run | resumed | result bit-identical "
        "| episodes each once |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['seed']} | {r['workers']} | {r['runs']} | {r['resumed']} | {_yes(r['identical'])} "
        f"| {_yes(r['episodes_are_whole'])} |"
        for r in rows
    ]
    return ExperimentReport({"rows": rows}, "\n".join(lines), passed=passed)


def compare(folder: Path, seed: int, episodes: int, cost: float, kills: int) -> dict[str, Any]:
    """The undisturbed result, serial, beside that of a run under fire, with two workers."""
    asked = [PROBLEM, "--seed", str(seed), "--episodes", str(episodes), "--no-check"]
    asked += ["--set", f"problem.cost={cost}"]
    quiet, fire = folder / "quiet", folder / "fire"
    subprocess.run(_command("run", *asked, "--out", str(quiet)), check=True, capture_output=True)
    many = ["--backend", "processes", "--workers", "2"]
    first = _command("run", *asked, *many, "--out", str(fire))
    again = _command("resume", str(fire), "--problem", PROBLEM, *many)
    struck = under_fire(first, again, fire, kills, random.Random(seed))
    ids = np.concatenate([batch.ids for batch in load(fire).batches()])
    result = load(fire).result
    return {
        "seed": seed,
        "workers": struck["workers"],
        "runs": struck["runs"],
        "resumed": struck["resumed"],
        "identical": told(quiet) == told(fire),
        "episodes_are_whole": sorted(ids.tolist()) == list(range(result.episodes)),
    }


def under_fire(
    first: list[str], again: list[str], folder: Path, kills: int, rng: random.Random
) -> Counter[str]:
    """Start a run and kill its workers, or itself, at random moments, `kills` times; resume it as
    often as needed, then let it end."""
    struck: Counter[str] = Counter()
    process = _start(first)
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                pause = rng.expovariate(1.0 / _PAUSE) if struck["all"] < kills else None
                code = process.wait(pause)
                if code == 0:
                    return struck
                if code != -signal.SIGKILL:
                    raise ApevalError(f"the run under fire ended with exit code {code}")
                begun = (folder / "manifest.json").exists()
                struck["resumed"] += int(begun)
                process = _start(again if begun else first)
                continue
            _strike(process.pid, rng, struck)
    finally:
        process.kill()
        process.wait()


def _strike(run: int, rng: random.Random, struck: Counter[str]) -> None:
    workers = children(run)
    itself = rng.random() < _RUN_SHARE
    if not itself and not workers:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(run if itself else rng.choice(workers), signal.SIGKILL)
        struck["runs" if itself else "workers"] += 1
        struck["all"] += 1


def children(of: int) -> list[int]:
    """Processes that a process has started."""
    said = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True)
    pairs = (line.split() for line in said.stdout.splitlines())
    return [int(pid) for pid, parent in pairs if int(parent) == of]


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", _MAIN, *arguments, "--json"]


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def told(folder: Path) -> dict[str, Any]:
    """What a run says, but for the time it took."""
    data = json.loads((folder / "result.json").read_text("utf-8"))
    return {k: v for k, v in data.items() if k != "seconds"}


def _yes(it: bool) -> str:
    return "yes" if it else "**no**"
