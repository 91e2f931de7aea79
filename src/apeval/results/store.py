"""Where results go: a folder that can be written to, and what every result leaves there."""

from __future__ import annotations

from pathlib import Path

from apeval import validate
from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.results.files import read_json, write_json
from apeval.run.result import Result, plain

__all__ = [
    "CURVE",
    "EXTENSION",
    "RECORDS",
    "RESULT",
    "prepare",
    "read_json",
    "refuse_another",
    "save",
    "write_json",
]

RESULT, RECORDS, CURVE = "result.json", "failures.json", "curve.json"
EXTENSION = "extended.json"


def prepare(folder: Path | str, name: str = "folder") -> Path:
    """Create the folder that the argument `name` asks for, or say why it cannot be; done before
    anything is simulated."""
    folder = validate.output_folder(name, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ApevalError(
            f"cannot write to the folder {folder}: {error.strerror or error}. Choose another"
        ) from None
    return folder


def save(result: Result, folder: Path) -> Path:
    """Write a result, its failures' replay records and its curve; returns result.json's path."""
    write_json(folder / RECORDS, list(result.records))
    write_json(folder / CURVE, list(result.curve))
    return write_json(folder / RESULT, result.as_json())


def refuse_another(folder: Path, problem: Problem) -> None:
    """A run of another problem is not replaced: it may have taken days."""
    path = folder / RESULT
    try:
        if not path.is_file():
            return
        held = read_json(path)
        other, parameters = held["problem"], held["parameters"]
    except (ApevalError, KeyError, TypeError, OSError):
        return  # nothing that could be read again
    if other != problem.name or parameters != plain(dict(problem.parameters)):
        what = f"{other} with other settings" if other == problem.name else other
        raise ApevalError(
            f"{folder} holds a run of {what}: choose another folder, or delete this one first"
        )
