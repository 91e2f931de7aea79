"""The run folders that are edited: complete, extended, stopped, killed, with faults, by tables, of
an own file, and of a problem that exists in Python alone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apeval.environments import make
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.results.recorder import Recorder
from apeval.run.evaluate import evaluate
from apeval_bench.fuzz.folders import Killed, Stopped

OWN = "own.py:problem"
MODULE = """
GAIN = 0.9
"""
FILE = """
import apeval
import attacked_part

def problem(std: float = 0.5, top: float = 2.0):
    return apeval.Problem(
        nominal=apeval.Normal(0.0, std),
        initial=apeval.Normal(0.0, 0.5),
        reset=lambda draws, a_0: a_0 + 0.0,
        step=lambda x, a_A, a_E, draws: attacked_part.GAIN * x + a_A + a_E,
        agent=lambda x: -0.1 * x,
        failed=lambda x: x[:, 0] > top,
        margin=lambda x: top - x[:, 0],
        horizon=5,
        chunk=64,
    )

def wider():
    return problem(std=0.6)

def brittle():
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


@dataclass(frozen=True)
class Base:
    """A run: of what, how, and where it was left."""

    problem: str
    method: str = "ape"
    episodes: int = 300
    state: str = "finished"
    own: str = ""
    """The address of its code, which commands that build the problem need."""
    change: str = "std*1.1"
    """A change of its nominal that `reweight` can be asked for."""
    on_fault: str = "stop"

    @property
    def whole(self) -> bool:
        """Whether the run has its result."""
        return self.state != "killed"


BASES = {
    "complete": Base("one-step"),
    "tabular": Base("walk", "ape-tabular", 400, change="probabilities[1]*1.1"),
    "own": Base(OWN, own=OWN),
    "killed": Base(OWN, own=OWN, state="killed"),
    "stopped": Base(OWN, own=OWN, state="stopped"),
    "faults": Base("own.py:brittle", "mc", 90, own="own.py:brittle", on_fault="unresolved"),
    "python": Base("", own="own.py:wider"),
    "extended": Base("one-step"),
}
OTHER_SEED = 7


def prepare(folder: Path) -> None:
    """Make every base, `NAME/run`, and another run of the same problem, `NAME/other`."""
    folder.mkdir(exist_ok=True)
    (folder / "own.py").write_text(FILE, "utf-8")
    (folder / "attacked_part.py").write_text(MODULE, "utf-8")
    recorders = {"finished": Recorder, "killed": Killed, "stopped": Stopped}
    with _inside(folder):
        for name, base in BASES.items():
            problem = python_problem() if not base.problem else make(base.problem, **_small(base))
            for which, seed in (("run", 0), ("other", OTHER_SEED)):
                target = Path(name, which)
                recorder = recorders[base.state if which == "run" else "finished"]
                code = [Path("own.py")] if base.own and base.problem else []
                with contextlib.suppress(KeyboardInterrupt):
                    _evaluate(problem, base, seed, recorder(target, files=code))
    _extend(folder)


def python_problem(std: float = 0.6) -> Problem:
    """A problem that exists in Python alone, though a file has its twin."""
    return Problem(
        nominal=Normal(0.0, std),
        initial=Normal(0.0, 0.5),
        reset=lambda draws, a_0: a_0 + 0.0,
        step=lambda x, a_A, a_E, draws: 0.9 * x + a_A + a_E,
        agent=lambda x: -0.1 * np.asarray(x),
        failed=lambda x: np.asarray(x[:, 0] > 2.0),
        margin=lambda x: 2.0 - x[:, 0],
        horizon=5,
        chunk=64,
    )


def _small(base: Base) -> dict[str, Any]:
    return {"top": 5} if base.problem == "walk" else {}


def _evaluate(problem: Problem, base: Base, seed: int, recorder: Recorder) -> None:
    evaluate(
        problem,
        base.method,
        episodes=base.episodes,
        seed=seed,
        recorder=recorder,
        on_fault=base.on_fault,
        on_interrupt="finish",
    )


def _extend(folder: Path) -> None:
    """The base `extended` becomes a run that makes its `other` more precise."""
    import shutil

    from apeval_bench.attack.command import ran

    shutil.rmtree(folder / "extended" / "run")
    words = ["run", "one-step", "--episodes", "300", "--extend", "other", "--out", "run"]
    said = ran([*words, "--json"], folder / "extended")
    if said.returncode != 0:
        raise RuntimeError(f"the base cannot be extended: {said.stderr}")


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
