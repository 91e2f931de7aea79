"""`apeval reproduce` and `apeval bench`."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from apeval.cli.output import is_quiet, note, print_json, say
from apeval.errors import ApevalError
from apeval.results.store import prepare
from apeval_bench.registry import REPORTING, TUNING, ExperimentRequest, find, store


@dataclass(frozen=True)
class Selection:
    """Which part of an experiment to run; names are separated by commas."""

    rows: str = ""
    methods: str = ""
    held_out: bool = False

    def as_fields(self) -> dict[str, Any]:
        """For a `ExperimentRequest`."""
        split = {k: tuple(filter(None, getattr(self, k).split(","))) for k in ("rows", "methods")}
        return {**split, "held_out": self.held_out}

    def __str__(self) -> str:
        parts = [f" --{k} {v}" for k, v in (("rows", self.rows), ("methods", self.methods)) if v]
        return "".join(parts) + (" --held-out" if self.held_out else "")


def run_experiment(
    command: str,
    name: str,
    seeds: int | None,
    tuning: bool,
    out: Path | None,
    json: bool,
    selection: Selection = Selection(),
    first_seed: int | None = None,
) -> None:
    """Run, show, and store where asked."""
    chosen = find(command, name)
    if first_seed is not None and (tuning or first_seed < REPORTING.start):
        raise ApevalError(
            f"--first-seed is for reporting and takes {REPORTING.start:,} or more; "
            "--tuning takes seeds from 0 on"
        )
    if str(selection) and not chosen.selects:
        raise ApevalError(f"{command} {name} runs as a whole: leave out{selection}")
    folder = None if out is None else prepare(out, "out")
    seeds = chosen.default_seeds if seeds is None else seeds
    with _ticker(quiet=json) as tick:
        first = (TUNING if tuning else REPORTING).start if first_seed is None else first_seed
        fields = selection.as_fields()
        report = chosen.run(
            ExperimentRequest(seeds, first, folder, Path("runs/cells"), tick, **fields)
        )
    if folder is not None:
        begun = "" if first_seed is None else f" --first-seed {first_seed}"
        made_by = f"apeval {command} {name} --seeds {seeds}{begun}{selection}" + (
            " --tuning" if tuning else ""
        )
        store(report, folder, name, made_by)
    if json:
        print_json(report.data)
    else:
        say(report.text)
        if folder is not None:
            note(f"\nstored in {folder}")
    if not report.passed:
        raise typer.Exit(1)


class Lines:
    """Progress for a log: a line a minute at the most, with the time left."""

    _EVERY = 60.0  # seconds

    def __init__(
        self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.write, self.clock = write, clock
        self.task, self.begun, self.at, self.told = "", 0.0, 0, 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        now, task = self.clock(), what.partition(":")[0]
        if task != self.task:
            self.task, self.begun, self.at, self.told = task, now, done, now
        elif now - self.told >= self._EVERY and done > self.at:
            self.told = now
            left = (now - self.begun) * (total - done) / (done - self.at)
            self.write(f"{what}: {done:,} of {total:,}, about {math.ceil(left / 60.0):,} min left")


@contextmanager
def _ticker(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    if quiet or is_quiet():
        yield lambda what, done, total: None
        return
    if not sys.stderr.isatty():
        yield Lines(lambda text: typer.echo(text, err=True))
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda what, done, total: bar.update(
            task, description=what, completed=done, total=total
        )
