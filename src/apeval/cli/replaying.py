"""`apeval replay`."""

from __future__ import annotations

from pathlib import Path

from apeval.cli.output import note, print_json, say
from apeval.errors import ApevalError
from apeval.results.failure_replay import replay_failure, replay_mode
from apeval.results.fault_replay import replay_fault
from apeval.results.folder import load


def replay_run(
    path: Path, failure: int | None, mode: int | None, fault: int | None, address: str | None,
    out: Path | None, json: bool,
) -> None:  # fmt: skip
    """Replay a recorded failure or fault, print its trajectory, and draw it where asked."""
    if sum(it is not None for it in (failure, mode, fault)) > 1:
        raise ApevalError("give one of --failure, --mode and --fault")
    if fault is not None:
        if out is not None:
            raise ApevalError("an episode that does not come back cannot be drawn: leave --out out")
        told = replay_fault(path, fault, address)
        print_json(told.as_json()) if json else say(str(told))
        return
    if out is not None and out.suffix.lower() != ".gif":
        raise ApevalError(f"an animation is a GIF: write --out {out.with_suffix('.gif')}")
    run = load(path)
    problem = run.problem(address)
    if mode is not None:
        it = replay_mode(run, mode, problem)
    else:
        it = replay_failure(run, 1 if failure is None else failure, problem)
    if out is not None:
        it.film(out)
    if json:
        print_json(it.as_json())
        return
    say(str(it))
    if out is not None:
        note(f"drawn in {out}")
