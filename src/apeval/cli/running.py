"""`apeval run`."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import typer

from apeval.adapt.address import full_address
from apeval.cli.extending import extended_runs, next_seed, show_extended
from apeval.cli.live_view import live_progress
from apeval.cli.options import Given
from apeval.cli.output import note, print_json, say
from apeval.environments import make
from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.remedies import Option
from apeval.results.extension import relative
from apeval.results.folder import Run
from apeval.results.inputs import how_to_resume
from apeval.results.recorder import Recorder
from apeval.results.store import refuse_another
from apeval.results.tensorboard import TensorBoard
from apeval.run.completed_run import InMemory
from apeval.run.evaluate import evaluate
from apeval.run.progress import Listener, Progress
from apeval.run.result import Result
from apeval.run.run_options import FINISH

DEFAULT_STEPS = 9_000
PREFIX = "problem."


def run_problem(
    name: str,
    method: str | None,
    given: Given,
    assignments: list[str],
    *,
    view: str | None,
    extend: Path | None,
    tensorboard: Path | None,
    fresh: bool,
    out: Path | None,
    json: bool,
) -> None:
    """Evaluate, show, and store where asked."""
    problem, settings = build_problem(full_address(name), assignments)
    if view is not None:
        problem = problem.seen_as(view)
    open_budget = not {"steps", "episodes", "target_error"} & given.keys()
    if open_budget:
        given["steps"] = DEFAULT_STEPS
    earlier = [] if extend is None else extended_runs(extend, problem, given.get("seed"), out)
    given.setdefault("seed", next_seed(earlier))
    recorder = None if out is None else _recorder(out, problem, earlier, fresh)
    memory = InMemory(problem) if earlier and recorder is None else None
    with live_progress(quiet=json) as watcher, _log(tensorboard) as log:
        result = evaluate(
            problem,
            method,
            listener=_both(watcher, None if log is None else log.listen),
            recorder=recorder or memory,
            settings=settings,
            on_interrupt=FINISH,
            **given,
        )
        if log is not None:
            log.finish(result)
    if open_budget:
        tell_budget(DEFAULT_STEPS, json)
    show_result(result, earlier, memory, None if recorder is None else recorder.folder, json)


def tell_budget(steps: int, json: bool) -> None:
    """Say which budget a run had that was given none; the live view shows it while it runs."""
    if not json:
        note(
            f"budget: {steps:,} decisions, since none was given; {Option('steps')} or "
            f"{Option('episodes')} sets it"
        )


def show_result(
    result: Result, earlier: list[Run], memory: InMemory | None, folder: Path | None, json: bool
) -> None:
    """Print a run's result, or the common one with the runs it extends; exit code 130 where it was
    stopped early."""
    if earlier:
        show_extended(earlier, memory, folder, json)
    elif json:
        print_json(result.as_json())
    else:
        say(str(result))
        if folder is not None:
            note(f"  stored in            {folder}")
    if result.interrupted:
        if folder is not None and not json:
            note(f"  to go on             {how_to_resume(folder)}")
        raise typer.Exit(130)


def _log(folder: Path | None) -> AbstractContextManager[TensorBoard | None]:
    return nullcontext() if folder is None else TensorBoard(folder)


def _both(watcher: Listener | None, log: Listener | None) -> Listener | None:
    """A listener that tells both, where there are two."""
    if watcher is None or log is None:
        return watcher or log

    def listen(now: Progress) -> None:
        watcher(now)
        log(now)

    return listen


def _recorder(out: Path, problem: Problem, earlier: list[Run], fresh: bool) -> Recorder:
    """Keeps the run in a folder, with where it comes from."""
    refuse_another(out, problem)
    return Recorder(
        out,
        command=["apeval", *sys.argv[1:]],
        extends=relative(earlier, out),
        careful=not fresh,
    )


def build_problem(name: str, assignments: list[str]) -> tuple[Problem, dict[str, Any]]:
    """The problem with its own settings applied, and what is left for the method."""
    parameters: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for text in assignments:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise ApevalError(f"--set takes name=value; got '{text}'")
        if key.startswith(PREFIX):
            parameters[key.removeprefix(PREFIX)] = value
        else:
            settings[key] = value
    return make(name, **parameters), settings
