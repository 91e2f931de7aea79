"""What makes a folder a run folder: its format, its version, and the hashes of its files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError
from apeval.remedies import Call
from apeval.results.columns import LARGEST
from apeval.results.faults import FAULTS
from apeval.results.files import read_object, regular, whole, write_json
from apeval.results.inputs import INPUTS
from apeval.results.model import ARRAYS, STRUCTURE
from apeval.results.samples import SAMPLE
from apeval.results.store import CURVE, RECORDS, RESULT

MANIFEST, PROVENANCE = "manifest.json", "provenance.json"
FORMAT, SCHEMA_VERSION = "apeval run", 1
HASHED = (RESULT, RECORDS, CURVE, PROVENANCE, SAMPLE, ARRAYS, STRUCTURE)
OPTIONAL = (INPUTS, FAULTS)
"""Files that a run may have besides."""


@dataclass(frozen=True)
class Manifest:
    """A run's batches, and its other files by name."""

    batches: int
    hashes: dict[str, str]
    interrupted: bool = False
    """It has a result, but was to go on."""


@dataclass(frozen=True)
class State:
    """How far a run came."""

    complete: bool
    interrupted: bool
    course: int | None
    """Batches that belong to the course of an uninterrupted run; None: all that are there."""

    @property
    def resumable(self) -> bool:
        """Whether there is something left to do."""
        return self.interrupted or not self.complete


def write_unfinished(folder: Path, course: int | None = None) -> None:
    """Say that a run is under way; and, where it took a detour, after how many batches."""
    _write(folder, {"complete": False, **({} if course is None else {"course": course})})


def write_finished(folder: Path, batches: int, interrupted: bool, course: int | None) -> None:
    """Say that a run has its result, and whether it was to go on."""
    present = [name for name in (*HASHED, *OPTIONAL) if (folder / name).is_file()]
    hashes = {name: _hash(folder / name) for name in present}
    state: dict[str, Any] = {"complete": True, "batches": batches, "sha256": hashes}
    if interrupted:
        state |= {"interrupted": True, "course": batches if course is None else course}
    _write(folder, state)


def _write(folder: Path, state: dict[str, Any]) -> None:
    write_json(folder / MANIFEST, {"format": FORMAT, "schema_version": SCHEMA_VERSION, **state})


def read_state(folder: Path) -> State:
    """How far the run in a folder came."""
    data, path = _read(folder), folder / MANIFEST
    course = whole(data, "course", path) if "course" in data else None
    return State(data.get("complete") is True, data.get("interrupted") is True, course)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a run that has a result."""
    data, path = _read(folder), folder / MANIFEST
    if data.get("complete") is not True:
        raise ApevalError(
            f"the run in {folder} was not finished: {Call('resume', str(folder))} goes on with it"
        )
    hashes = data.get("sha256")
    if not isinstance(hashes, dict) or not set(HASHED) <= set(hashes) <= {*HASHED, *OPTIONAL}:
        raise ApevalError(f"{path} is damaged: sha256 does not list the run's files")
    return Manifest(whole(data, "batches", path, 1), hashes, data.get("interrupted") is True)


def _read(folder: Path) -> dict[str, Any]:
    try:
        is_file = folder.is_file()
    except OSError as error:  # a name that is too long, for example
        raise ApevalError(f"cannot read {folder}: {error.strerror or error}") from None
    if is_file:
        raise ApevalError(
            f"{folder} is a file, not a run folder: give a folder that a run was stored in"
        )
    if not folder.is_dir():
        raise ApevalError(f"there is no run folder {folder}: give one that a run was stored in")
    path = folder / MANIFEST
    if not path.exists() and not path.is_symlink():
        raise ApevalError(
            f"{folder} is not a run folder (it has no {MANIFEST}): "
            "give a folder that a run was stored in"
        )
    data = read_object(path)
    if data.get("format") != FORMAT:
        raise ApevalError(f"{path} does not describe a run of apeval")
    if data.get("schema_version") != SCHEMA_VERSION:
        raise ApevalError(
            f"{path} has the schema version {data.get('schema_version')!r}; this apeval reads "
            f"{SCHEMA_VERSION}: load it with the apeval that wrote it, or run again"
        )
    return data


def check(folder: Path, name: str, manifest: Manifest) -> Path:
    """The path of a file that is as the run left it."""
    path = regular(folder / name, LARGEST)
    if _hash(path) != manifest.hashes[name]:
        raise ApevalError(f"{path} is damaged: it has changed since the run was stored")
    return path


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    except OSError as error:
        raise ApevalError(f"cannot read {path}: {error.strerror or error}") from None
    return digest.hexdigest()
