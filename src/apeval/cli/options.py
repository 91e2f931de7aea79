"""Options and arguments that several commands have."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any

import typer

from apeval import validate
from apeval.cli.output import hush


def _hush(value: bool) -> bool:
    if value:
        hush(True)
    return value


def file_option(name: str) -> dict[str, Any]:
    """For an option that names a file to write; looked at as text, of which '' is no path."""
    return {"parser": functools.partial(validate.output_file, name), "metavar": "PATH"}


def folder_option(name: str) -> dict[str, Any]:
    """The same for a folder to write to."""
    return {"parser": functools.partial(validate.output_folder, name), "metavar": "PATH"}


Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print nothing but the result, and errors.",
        callback=_hush,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for the results.", **folder_option("out")),
]
Problem = Annotated[
    str,
    typer.Argument(
        help="A problem's name (see `apeval list`), or your own: file.py:factory, module:factory."
    ),
]
Stored = Annotated[Path, typer.Argument(help="A run folder: what `apeval run … --out` wrote.")]
OwnProblem = Annotated[
    str | None,
    typer.Option(
        "--problem",
        help="The code of your own problem, file.py:factory or module:factory; a run folder does "
        "not bring it along. Problems of apeval need no such option.",
    ),
]
Backend = Annotated[
    str,
    typer.Option(
        help="Who simulates: serial, processes (the cores of this machine) or ray (a cluster); "
        "the result is the same."
    ),
]
Workers = Annotated[
    int | None, typer.Option(help="How many workers; by default one for each core.")
]
Address = Annotated[
    str | None,
    typer.Option(help="With ray: the address of a running cluster, such as auto."),
]
Retries = Annotated[
    int | None,
    typer.Option(
        help="How often a block of episodes that did not come back is tried again with the same "
        "random numbers; 1 by default."
    ),
]
OnFault = Annotated[
    str | None,
    typer.Option(
        help="Then: stop (the default), or count the episode as unresolved, which widens the "
        "interval."
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(help="Seconds that an episode may take; needs workers, see --backend."),
]
Seeds = Annotated[int | None, typer.Option(help="Repetitions.")]
Tuning = Annotated[
    bool,
    typer.Option("--tuning", help="Use seeds 0, 1, … (for tuning) instead of 10000, 10001, …"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting of the method (name=value) or of the problem (problem.name=value); "
        "repeat it for several.",
    ),
]
