"""`apeval resume`."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from apeval.cli.extending import show_common
from apeval.cli.live_view import live_progress
from apeval.cli.options import Given
from apeval.cli.output import note
from apeval.cli.running import show_result
from apeval.errors import ApevalError
from apeval.remedies import in_shell
from apeval.results.extension import read_extension
from apeval.results.folder import Run, load
from apeval.results.inputs import read_inputs
from apeval.results.manifest import read_state
from apeval.results.resume import resume
from apeval.run.run_options import FINISH


def resume_run(
    folder: Path, problem: str | None, given: Given, allow_changes: bool, json: bool
) -> None:
    """Go on with a run and show it."""
    if not read_state(folder).resumable:
        if not json:
            note(f"the run in {folder} is complete")
        _show_complete(folder, json)
        return
    earlier = _extended(folder)
    with live_progress(quiet=json) as watcher:
        result = resume(
            folder,
            problem,
            listener=watcher,
            on_interrupt=FINISH,
            allow_changes=allow_changes,
            tell=lambda text: typer.echo(f"apeval: {in_shell(text)}", err=True),
            **given,
        )
    show_result(result, earlier, None, folder, json)


def _show_complete(folder: Path, json: bool) -> None:
    """What the run printed: of one that extends others their common answer, which is made now where
    the run was stopped just before that."""
    run, common = load(folder), read_extension(folder)
    if common is None:
        show_result(run.result, _extended(folder), None, folder, json)
    else:
        show_common(common, folder, json)


def _extended(folder: Path) -> list[Run]:
    """Runs that this one makes more precise."""
    try:
        paths = read_inputs(folder).extends
        return [load(Path(os.path.normpath(folder.resolve() / path))) for path in paths]
    except ApevalError as error:
        raise ApevalError(f"{folder} cannot be resumed: {error}") from None
