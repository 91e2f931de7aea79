"""A run that extends earlier ones: which, and their common answer, beside its own files."""

from __future__ import annotations

import os
from pathlib import Path

from apeval.errors import ApevalError
from apeval.results.dataclass_json import build
from apeval.results.files import read_object
from apeval.results.folder import Run, load
from apeval.results.manifest import write_listed
from apeval.results.plausible import check_merged
from apeval.results.store import EXTENSION
from apeval.run.merge import Merged


def save_extension(folder: Path, earlier: list[Run], merged: Merged) -> Path:
    """Beside the run's own result; earlier runs are named relative to the folder."""
    answer = {"earlier": relative(earlier, folder), **merged.as_json()}
    return write_listed(folder, EXTENSION, answer)


def relative(earlier: list[Run], folder: Path) -> list[str]:
    """Where earlier runs are, seen from the folder."""
    return [os.path.relpath(run.path.resolve(), folder.resolve()) for run in earlier]


def read_extension(folder: Path) -> Merged | None:
    """The common answer that was stored with a run; None where it extends nothing."""
    where = folder / EXTENSION
    if not where.exists() and not where.is_symlink():
        return None
    merged = build(Merged, read_object(where), where)
    check_merged(merged, where)
    return merged


def chain(path: Path) -> list[Run]:
    """A run with all that it extends, the first one first."""
    run = load(path)
    where = run.path / EXTENSION
    if not where.exists():
        return [run]
    paths = read_object(where).get("earlier")
    if not isinstance(paths, list) or not all(isinstance(p, str) for p in paths):
        raise ApevalError(f"{where} is damaged: it does not list the earlier runs")
    try:
        return [*(load(Path(os.path.normpath(run.path / p))) for p in paths), run]
    except ApevalError as error:
        raise ApevalError(
            f"{path} extends a run that is not there any more ({error}): move it back"
        ) from None
