"""`apeval run`."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from apeval.adapt.address import full_address, is_address
from apeval.cli.extending import extended_runs, next_seed, show_extended
from apeval.cli.output import note, print_json, say
from apeval.cli.progress import live_progress
from apeval.environments import make
from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.results.extension import forget_extension
from apeval.results.recorder import Recorder
from apeval.results.store import refuse_another
from apeval.results.tensorboard import TensorBoard
from apeval.run.evaluate import evaluate
from apeval.run.past import InMemory
from apeval.run.progress import Listener, Progress
from apeval.simulate.check.door import require_sound

_DEFAULT_STEPS = 9_000
PREFIX = "problem."


def run_problem(
    name: str,
    view: str | None,
    method: str | None,
    steps: int | None,
    episodes: int | None,
    target_error: float | None,
    below: float | None,
    seed: int | None,
    confidence: float,
    assignments: list[str],
    out: Path | None,
    json: bool,
    check: bool = True,
    extend: Path | None = None,
    tensorboard: Path | None = None,
) -> None:
    """Evaluate, show, and store where asked."""
    name = full_address(name)
    problem, settings = build_problem(name, assignments)
    if check and is_address(name):
        require_sound(problem)
    if view is not None:
        problem = problem.seen_as(view)
    if steps is None and episodes is None and target_error is None:
        steps = _DEFAULT_STEPS
    earlier = [] if extend is None else extended_runs(extend, problem, seed, out)
    seed = next_seed(earlier) if seed is None else seed
    recorder = None if out is None else _recorder(out, problem, name)
    memory = InMemory(problem) if earlier and recorder is None else None
    with live_progress(quiet=json) as watcher, _log(tensorboard) as log:
        result = evaluate(
            problem,
            method,
            steps=steps,
            episodes=episodes,
            target_error=target_error,
            below=below,
            seed=seed,
            confidence=confidence,
            settings=settings,
            listener=_both(watcher, None if log is None else log.listen),
            recorder=recorder or memory,
        )
        if log is not None:
            log.finish(result)
    if earlier:
        show_extended(earlier, memory, None if recorder is None else recorder.folder, json)
        return
    if json:
        print_json(result.as_json())
        return
    say(str(result))
    if recorder is not None:
        note(f"  stored in            {recorder.folder}")


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


def _recorder(out: Path, problem: Problem, address: str) -> Recorder:
    """Keeps the run in a folder, with where it comes from: the problem's code, and files that its
    parameters name, such as a policy's."""
    refuse_another(out, problem)
    code = Path(address.rpartition(":")[0])
    files = [code] if code.suffix == ".py" else []
    files += [Path(v) for v in problem.parameters.values() if isinstance(v, str) and _is_file(v)]
    recorder = Recorder(out, command=["apeval", *sys.argv[1:]], files=files)
    forget_extension(out)
    return recorder


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:  # too long for a name, for example
        return False


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
