"""`apeval replay`."""

from __future__ import annotations

from pathlib import Path

from apeval.cli.output import note, print_json, say
from apeval.errors import ApevalError
from apeval.results.folder import load
from apeval.results.replaying import replay_failure, replay_mode


def replay_run(
    path: Path, failure: int | None, mode: int | None, address: str | None, out: Path | None,
    json: bool,
) -> None:  # fmt: skip
    """Replay a recorded failure, print its trajectory, and draw it where asked."""
    if failure is not None and mode is not None:
        raise ApevalError("give --failure or --mode, not both")
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
