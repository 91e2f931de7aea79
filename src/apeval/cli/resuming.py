"""`apeval resume`."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from apeval.cli.output import note
from apeval.cli.progress import live_progress
from apeval.cli.running import How, show_result
from apeval.errors import ApevalError
from apeval.remedies import in_shell
from apeval.results.folder import Run, load
from apeval.results.inputs import read_inputs
from apeval.results.manifest import read_state
from apeval.results.resuming import resume


def resume_run(
    folder: Path, problem: str | None, how: How, allow_changes: bool, json: bool
) -> None:
    """Go on with a run and show it."""
    if not read_state(folder).resumable:
        if not json:
            note(f"the run in {folder} is complete")
        show_result(load(folder).result, [], None, folder, json)
        return
    earlier = _extended(folder)
    with live_progress(quiet=json) as watcher:
        result = resume(
            folder,
            problem,
            listener=watcher,
            on_interrupt="finish",
            allow_changes=allow_changes,
            tell=lambda text: typer.echo(f"apeval: {in_shell(text)}", err=True),
            **how.given(),
        )
    show_result(result, earlier, None, folder, json)


def _extended(folder: Path) -> list[Run]:
    """Runs that this one makes more precise."""
    try:
        paths = read_inputs(folder).extends
        return [load(Path(os.path.normpath(folder.resolve() / path))) for path in paths]
    except ApevalError as error:
        raise ApevalError(f"{folder} cannot be resumed: {error}") from None
