"""`apeval show`."""

from __future__ import annotations

from pathlib import Path

from apeval.cli.output import print_json, say
from apeval.results.extension import read_extension
from apeval.results.folder import load


def show_run(path: Path, json: bool) -> None:
    """What the run printed, from its folder."""
    run = load(path)
    if json:
        print_json(run.result.as_json())
    else:
        say(str(run))
        extended = read_extension(run.path)
        if extended is not None:
            say(f"\nwith the runs that it extends\n{extended}")
