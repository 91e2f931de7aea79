"""Run folders that were damaged, and everything that reads one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from apeval.environments import make
from apeval.experiments.fuzz.calls import Calls
from apeval.experiments.fuzz.damage import damage
from apeval.results.folder import Run, load
from apeval.results.recorder import Recorder
from apeval.results.replaying import replay_failure
from apeval.run.evaluate import evaluate

LIBRARIES = ("matplotlib.font_manager", "pyarrow.parquet", "torch", "zuko")


@dataclass(frozen=True)
class Original:
    """A small valid run: a problem with its settings, a method, a budget."""

    name: str
    problem: str
    parameters: dict[str, Any]
    method: str
    budget: dict[str, int]
    change: str
    """A change of its nominal that `reweight` can be asked for."""
    settings: dict[str, Any] = field(default_factory=dict)
    own: bool = False
    """Whether the problem is a file, which has to be named to be built again."""

    def address(self, prepared: Path) -> str:
        """What to call the problem."""
        return f"{prepared / self.problem}" if self.own else self.problem

    def arguments(self, prepared: Path) -> list[str]:
        """The command line of the run, without where it goes."""
        budget = [w for unit, size in self.budget.items() for w in (f"--{unit}", str(size))]
        values = {**self.settings, **{f"problem.{k}": v for k, v in self.parameters.items()}}
        settings = [w for k, v in values.items() for w in ("--set", f"{k}={v}")]
        return ["run", self.address(prepared), "--method", self.method, *budget, *settings]


ORIGINALS = (
    Original("walk", "walk", {"top": 5}, "ape", {"steps": 1_200}, "probabilities[1]*1.1"),
    Original(
        "tabular", "walk", {"top": 5}, "ape-tabular", {"steps": 1_500}, "probabilities[0]*0.9"
    ),
    Original("gauss", "one-step", {"beta": 3.0}, "ape", {"episodes": 400}, "std*1.1"),
    Original("count", "one-step", {"beta": 1.0}, "mc", {"episodes": 100}, "mean+0.1"),
    Original("start", "own.py:problem", {}, "ape", {"episodes": 300}, "initial.mean+0.1", own=True),
    Original(
        "spline", "first-step", {}, "ape", {"episodes": 150}, "std*1.1", {"learner": "spline"}
    ),
    Original("entropy", "gaussian-sum", {}, "cem", {"episodes": 300}, "std[1]*1.1"),
    Original("grid", "minigrid-s1", {}, "ape-tabular", {"steps": 1_500}, "probabilities[0]*0.99"),
    Original("road", "int-v1", {}, "ape", {"steps": 300}, "std*1.05"),
    Original("pole", "pendulum", {}, "ape", {"episodes": 60}, "std*1.05"),
)

_OWN = """
import apeval

def problem(top: float = 2.0) -> apeval.Problem:
    return apeval.Problem(
        nominal=apeval.TruncatedNormal(lambda x, a_A: 0.1 * x, 0.5, -2.0, 2.0, dim=1),
        initial=apeval.Normal(0.0, 0.5),
        reset=lambda draws, a_0: a_0.copy(),
        step=lambda x, a_A, a_E, draws: 0.8 * x + a_E,
        agent=lambda x: -0.1 * x,
        failed=lambda x: x[:, 0] > top,
        margin=lambda x: top - x[:, 0],
        horizon=5,
    )
"""


def prepare(folder: Path) -> None:
    """The undamaged runs, each with two seeds."""
    (folder / "own.py").write_text(_OWN, "utf-8")
    for it in ORIGINALS:
        problem = make(it.address(folder), **it.parameters)
        for seed in (0, 1):
            evaluate(
                problem,
                it.method,
                **it.budget,  # type: ignore[arg-type]
                seed=seed,
                settings=it.settings,
                recorder=Recorder(folder / it.name / f"run{seed}"),
            )


def fuzz(calls: Calls, rng: Random, prepared: Path) -> None:
    """Damage a run, then read it in every way that there is (most ways, drawn anew each time)."""
    it = rng.choice(ORIGINALS)
    run, other, out = (calls.sandbox / name for name in ("run", "other", "out"))
    shutil.copytree(prepared / it.name / "run0", run)
    shutil.copytree(prepared / it.name / "run1", other)
    (calls.sandbox / "outside").mkdir()
    out.mkdir()
    damage(rng, run)
    own = [it.address(prepared)] if it.own else []
    _read_all(calls, run, *own)
    commands = _commands(it, it.arguments(prepared), run, other, out, rng, own)
    for arguments, writes in rng.sample(commands, 4):
        calls.command(*arguments, writes=writes)


def _read_all(calls: Calls, folder: Path, *own: str) -> None:
    """Every property of what `apeval.load` returns."""
    run = calls.python("apeval.load", lambda: load(folder))
    if run is None:
        return
    for name, read in _READERS.items():
        calls.python(f"run.{name}", lambda read=read: read(run))  # type: ignore[misc]
    calls.python("run.problem", lambda: run.problem(*own))
    replayed = calls.python("replay", lambda: replay_failure(run, 1, run.problem(*own)))
    if replayed is not None:
        calls.python("replayed", lambda: (str(replayed), replayed.as_json()))


_READERS: dict[str, Callable[[Run], Any]] = {
    "result": lambda run: (str(run), repr(run.result), run.result.as_json()),
    "records": lambda run: (run.records, run.curve, run.key, run.provenance),
    "sample": lambda run: run.sample.weights,
    "episodes": lambda run: run.episodes.steps,
    "learning": lambda run: run.learning,
    "batches": lambda run: [batch.n for batch in run.batches()],
    "model": lambda run: (run.model.structure, run.model.arrays),
}

Command = tuple[list[str], list[Path]]


def _commands(
    it: Original,
    again: list[str],
    run: Path,
    other: Path,
    out: Path,
    rng: Random,
    own: list[str],
) -> list[Command]:
    """Every command that takes a run folder, with what it may write. A new one, such as one that
    goes on with an unfinished run, is added here."""
    json = rng.choice(([], ["--json"]))
    code = [word for address in own for word in ("--problem", address)]
    page, film, merged, tables, more = (
        out / name for name in ("report.html", "film.gif", "merged.json", "tables", "more")
    )
    pair = [str(run), str(other)]
    rng.shuffle(pair)
    return [
        (["show", str(run), *json], []),
        (["report", str(run), "--out", str(page), *code], [page]),
        (["report", *pair, "--out", str(page), *code], [page]),
        (["replay", str(run), *json, *code], []),
        (["replay", str(run), "--mode", "1", *json, *code], []),
        (["replay", str(run), "--failure", "2", "--out", str(film), *code], [film]),
        (["reweight", str(run), "--nominal", it.change, *json, *code], []),
        (["reweight", str(run), "--nominal", "std*1.2", "--confidence", "0.9", *code], []),
        (["compare", *pair, *json], []),
        (["merge", *pair, "--out", str(merged), *json], [merged]),
        (["export", str(run), "--csv", str(tables)], [tables]),
        ([*again, "--extend", str(run), "--out", str(more), "--no-check", *json], [more]),
        ([*again, "--seed", "3", "--out", str(run), "--no-check", *json], [run]),
    ]
