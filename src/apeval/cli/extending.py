"""`apeval run … --extend`."""

from __future__ import annotations

from pathlib import Path

from apeval.cli.output import note, print_json, say
from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.results.extension import chain, save_extension
from apeval.results.folder import Run, load
from apeval.run.completed_run import CompletedRun, InMemory, differing
from apeval.run.merge import Merged, merge
from apeval.simulate.identity.identity import differences, identify, in_short


def extended_runs(path: Path, problem: Problem, seed: int | None, out: Path | None) -> list[Run]:
    """The run to extend with all that it extends itself; refused before anything is simulated."""
    earlier = chain(path)
    last = earlier[-1].result
    if problem.name != last.problem:
        raise ApevalError(f"{path} is a run of {last.problem}: extend it with the same problem")
    changed = differing(problem.parameters, last.parameters)
    if changed:
        wanted = " ".join(f"--set problem.{k}={last.parameters.get(k)}" for k in changed)
        raise ApevalError(f"{path} has other settings of the problem: add {wanted}")
    found = differences(earlier[-1].identity, identify(problem, lambda: None), ignore=("view",))
    if found:
        raise ApevalError(f"{path} is a run of another problem: {in_short(found)}")
    if seed is not None and seed in {run.result.seed for run in earlier}:
        raise ApevalError(
            f"seed {seed} would draw the episodes of {path} again: leave --seed out, or choose "
            f"another, such as {next_seed(earlier)}"
        )
    if out is not None and any(out.resolve() == run.path.resolve() for run in earlier):
        raise ApevalError(f"--out {out} would overwrite the run that is extended: choose another")
    return earlier


def next_seed(earlier: list[Run]) -> int:
    """A seed that none of the runs has; 0 without any."""
    return max((run.result.seed for run in earlier), default=-1) + 1


def show_extended(
    earlier: list[Run], memory: InMemory | None, folder: Path | None, json: bool
) -> None:
    """The common answer of all runs, stored beside the new one's own."""
    fresh: CompletedRun = load(folder) if folder is not None else _named(memory)
    merged = merge([*earlier, fresh], extended=True)
    if folder is not None:
        save_extension(folder, earlier, merged)
    show_common(merged, folder, json)


def show_common(merged: Merged, folder: Path | None, json: bool) -> None:
    """The common answer, and where it is."""
    if json:
        print_json(merged.as_json())
        return
    say(str(merged))
    if folder is not None:
        note(f"  stored in            {folder}")


def _named(memory: InMemory | None) -> InMemory:
    if memory is None:
        raise ApevalError("a run that extends another must be kept")
    memory.path = Path("this run")
    return memory
