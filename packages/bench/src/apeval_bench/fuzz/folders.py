"""Run folders that were damaged, and everything that reads one or goes on with it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from apeval.environments import make
from apeval.results.failure_replay import replay_failure
from apeval.results.folder import Run, load
from apeval.results.recorder import Recorder
from apeval.run.evaluate import evaluate
from apeval.simulate.episodes import Episodes
from apeval_bench.fuzz.calls import Calls
from apeval_bench.fuzz.damage import damage

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
    on_fault: str = "stop"

    def address(self, prepared: Path) -> str:
        """What to call the problem."""
        return f"{prepared / self.problem}" if self.own else self.problem

    def arguments(self, prepared: Path) -> list[str]:
        """The command line of the run, without where it goes."""
        budget = [w for unit, size in self.budget.items() for w in (f"--{unit}", str(size))]
        values = {**self.settings, **{f"problem.{k}": v for k, v in self.parameters.items()}}
        settings = [w for k, v in values.items() for w in ("--set", f"{k}={v}")]
        faults = ["--on-fault", self.on_fault]
        return ["run", self.address(prepared), "--method", self.method, *budget, *settings, *faults]


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
    Original(
        "brittle", "own.py:brittle", {}, "mc", {"episodes": 90}, "std*1.1", own=True,
        on_fault="unresolved",
    ),
)  # fmt: skip
STATES = ("finished", "finished", "unfinished", "stopped")
"""In which the run that is damaged was left: killed on its way, or stopped with a smaller
result."""
_PATIENCE = 2.0  # seconds that a resumed run may take until it is stopped: any budget may be asked

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

def brittle() -> apeval.Problem:
    def step(x, a_A, a_E, draws):
        if (a_E > 2.0).any():
            raise ArithmeticError("the solver does not converge")
        return x + a_E

    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: 0.0 * draws.normal(1),
        step=step,
        failed=lambda x: x[:, 0] > 1.5,
        horizon=3,
        chunk=30,
    )
"""


class Killed(Recorder):
    """Ends after its first batch, as by Ctrl-C twice."""

    def batch(self, episodes: Episodes, position: int) -> None:
        super().batch(episodes, position)
        raise KeyboardInterrupt


class Stopped(Recorder):
    """Is asked to come to an end after its first batch, as by Ctrl-C."""

    def batch(self, episodes: Episodes, position: int) -> None:
        super().batch(episodes, position)
        if self.batches == 1:
            os.kill(os.getpid(), signal.SIGINT)


def prepare(folder: Path) -> None:
    """The undamaged runs: of every one the three states, and one with another seed."""
    (folder / "own.py").write_text(_OWN, "utf-8")
    recorders = {"finished": Recorder, "unfinished": Killed, "stopped": Stopped}
    for it in ORIGINALS:
        problem = make(it.address(folder), **it.parameters)
        for name in (*recorders, "other"):
            with contextlib.suppress(KeyboardInterrupt):
                evaluate(
                    problem,
                    it.method,
                    **it.budget,  # type: ignore[arg-type]
                    seed=int(name == "other"),
                    settings=it.settings,
                    recorder=recorders.get(name, Recorder)(folder / it.name / name),
                    on_fault=it.on_fault,
                    on_interrupt="finish",
                )


def fuzz(calls: Calls, rng: Random, prepared: Path) -> None:
    """Damage a run, then read it in every way that there is (most ways, drawn anew each time)."""
    it = rng.choice(ORIGINALS)
    run, other, out = (calls.sandbox / name for name in ("run", "other", "out"))
    state = rng.choice(STATES)
    shutil.copytree(prepared / it.name / state, run)
    shutil.copytree(prepared / it.name / "other", other)
    (calls.sandbox / "outside").mkdir()
    out.mkdir()
    damage(rng, run)
    own = [it.address(prepared)] if it.own else []
    _read_all(calls, run, *own)
    commands = _commands(it, it.arguments(prepared), run, other, out, rng, own)
    for arguments, writes in rng.sample(commands, 4):
        calls.command(*arguments, writes=writes)
    if state != "finished" or rng.random() < 0.3:
        how = rng.choice(([], ["--allow-changes"], ["--on-fault", "unresolved"]))
        arguments = ["resume", str(run), *how, *(w for a in own for w in ("--problem", a))]
        calls.command(*arguments, *rng.choice(([], ["--json"])), writes=[run], stop=_PATIENCE)


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
    """Every command that reads a run folder, with what it may write; a new one is added here."""
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
        (["replay", str(run), "--fault", "1", *json, *code], []),
        (["replay", str(run), "--failure", "2", "--out", str(film), *code], [film]),
        (["reweight", str(run), "--nominal", it.change, *json, *code], []),
        (["reweight", str(run), "--nominal", "std*1.2", "--confidence", "0.9", *code], []),
        (["compare", *pair, *json], []),
        (["merge", *pair, "--out", str(merged), *json], [merged]),
        (["export", str(run), "--csv", str(tables)], [tables]),
        ([*again, "--extend", str(run), "--out", str(more), "--no-check", *json], [more]),
        ([*again, "--seed", "3", "--out", str(run), "--no-check", *json], [run]),
    ]
