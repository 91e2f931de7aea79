"""Problems as users write them, with mistakes: a file for each, checked, run and evaluated."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from apeval.environments import make
from apeval.learn.method import methods
from apeval.results.recorder import Recorder
from apeval.run.evaluate import evaluate
from apeval.simulate.check import check_problem
from apeval_bench.fuzz.calls import Calls
from apeval_bench.fuzz.written import source

LIBRARIES = ("matplotlib.font_manager", "gymnasium")
_METHODS = (None, None, "ape", "mc", "ape-tabular", "ape-discrete", "cem", "cem-discrete")


def prepare(folder: Path) -> None:
    """Nothing is shared between inputs."""
    methods()


def fuzz(calls: Calls, rng: Random, prepared: Path) -> None:
    """Write a problem, then do with it what users do."""
    path = calls.sandbox / "mine.py"
    path.write_text(source(rng), "utf-8")
    address, out, kept = str(path), calls.sandbox / "out", calls.sandbox / "kept"
    budget = rng.choice((["--steps", "150"], ["--episodes", "12"]))
    method = rng.choice(_METHODS)
    words = ["run", address, *budget, *rng.choice(([], ["--no-check"], ["--no-check"]))]
    words += [] if method is None else ["--method", method]
    calls.command("check", address, "--episodes", "12", "--seconds", "0.3")
    calls.command(*words, "--out", str(out), *rng.choice(([], ["--json"])), writes=[out])
    if (out / "manifest.json").exists():
        where = ["--problem", f"{address}:problem"]
        calls.command("replay", str(out), *where)
        page = calls.sandbox / "report.html"
        if rng.random() < 0.2:
            calls.command("report", str(out), *where, "--out", str(page), writes=[page])
    problem = calls.python("make", lambda: make(address), users_code=True)
    if problem is None:
        return
    calls.python("check_problem", lambda: check_problem(problem, episodes=12, seconds=0.3))
    calls.python(f"evaluate(…, {method!r})", lambda: _evaluate(problem, method, kept), [kept], True)


def _evaluate(problem: Any, method: str | None, folder: Path) -> Any:
    return evaluate(problem, method, episodes=12, recorder=Recorder(folder))
