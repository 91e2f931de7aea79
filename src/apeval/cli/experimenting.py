"""`apeval reproduce` and `apeval bench`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from apeval.cli.running import print_json
from apeval.experiments.registry import REPORTING, TUNING, Report, Request, find
from apeval.results.store import prepare, write_json


def run_experiment(
    command: str, name: str, seeds: int | None, tuning: bool, out: Path | None, json: bool
) -> None:
    """Run, show, and store where asked."""
    chosen = find(command, name)
    folder = None if out is None else prepare(out)
    seeds = chosen.default_seeds if seeds is None else seeds
    with _ticker(quiet=json) as tick:
        first = (TUNING if tuning else REPORTING).start
        report = chosen.run(Request(seeds, first, folder, Path("runs/cells"), tick))
    if folder is not None:
        made_by = f"apeval {command} {name} --seeds {seeds}" + (" --tuning" if tuning else "")
        _store(report, folder, name, made_by)
    if json:
        print_json(report.data)
    else:
        typer.echo(report.text)
        if folder is not None:
            typer.echo(f"\nstored in {folder}")
    if not report.passed:
        raise typer.Exit(1)


def _store(report: Report, folder: Path, name: str, made_by: str) -> None:
    write_json(folder / f"{name}.json", report.data)
    text = f"{report.text}\n\nMade by `{made_by}`.\n"
    (folder / f"{name}.md").write_text(text, encoding="utf-8")


@contextmanager
def _ticker(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    if quiet or not sys.stderr.isatty():
        yield lambda what, done, total: None
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
