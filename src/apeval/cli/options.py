"""Options and arguments that several commands have."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any

import typer

from apeval import validate
from apeval.cli.output import hush

Given = dict[str, Any]
"""The options of a run that a command line names (see `option_flags`)."""


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
AnswerFile = Annotated[
    Path | None,
    typer.Option("--out", help="JSON file for the answer.", **file_option("out")),
]
Problem = Annotated[
    str,
    typer.Argument(
        help="A problem's name (see `apeval list`), or your own: file.py:factory, module:factory."
    ),
]


def _looked_at(value: Path | list[Path] | None) -> Path | list[Path] | None:
    for path in value if isinstance(value, list) else [value]:
        if path is not None:
            validate.input_folder("run", path)
    return value


STORED: dict[str, Any] = {"callback": _looked_at}
"""For arguments and options that name run folders."""
Stored = Annotated[
    Path, typer.Argument(help="A run folder: what `apeval run … --out` wrote.", **STORED)
]
OwnProblem = Annotated[
    str | None,
    typer.Option(
        "--problem",
        help="The code of your own problem, file.py:factory or module:factory; a run folder does "
        "not bring it along. Problems of apeval need no such option.",
    ),
]
Method = Annotated[
    str | None, typer.Option(help="A method's name; by default the best for the problem.")
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
