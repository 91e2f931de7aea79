"""What makes a folder a run folder: its format, its version, and the hashes of its files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError
from apeval.results.columns import LARGEST
from apeval.results.files import read_object, regular, whole, write_json
from apeval.results.model import ARRAYS, STRUCTURE
from apeval.results.samples import SAMPLE
from apeval.results.store import CURVE, RECORDS, RESULT

MANIFEST, PROVENANCE = "manifest.json", "provenance.json"
FORMAT, SCHEMA_VERSION = "apeval run", 1
HASHED = (RESULT, RECORDS, CURVE, PROVENANCE, SAMPLE, ARRAYS, STRUCTURE)


@dataclass(frozen=True)
class Manifest:
    """A finished run's batches, and its other files by name."""

    batches: int
    hashes: dict[str, str]


def write_unfinished(folder: Path) -> None:
    """Say that a run is under way."""
    _write(folder, {"complete": False})


def write_finished(folder: Path, batches: int) -> None:
    """Say that a run is complete."""
    hashes = {name: _hash(folder / name) for name in HASHED}
    _write(folder, {"complete": True, "batches": batches, "sha256": hashes})


def _write(folder: Path, state: dict[str, Any]) -> None:
    write_json(folder / MANIFEST, {"format": FORMAT, "schema_version": SCHEMA_VERSION, **state})


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a finished run."""
    try:
        is_file = folder.is_file()
    except OSError as error:  # a name that is too long, for example
        raise ApevalError(f"cannot read {folder}: {error.strerror or error}") from None
    if is_file:
        raise ApevalError(
            f"{folder} is a file, not a run folder: give a folder that `apeval run … --out` wrote"
        )
    if not folder.is_dir():
        raise ApevalError(f"there is no run folder {folder}: apeval run … --out {folder} makes one")
    path = folder / MANIFEST
    if not path.exists() and not path.is_symlink():
        raise ApevalError(
            f"{folder} is not a run folder (it has no {MANIFEST}): "
            "give a folder that `apeval run … --out` wrote"
        )
    data = read_object(path)
    if data.get("format") != FORMAT:
        raise ApevalError(f"{path} does not describe a run of apeval")
    if data.get("schema_version") != SCHEMA_VERSION:
        raise ApevalError(
            f"{path} has the schema version {data.get('schema_version')!r}; this apeval reads "
            f"{SCHEMA_VERSION}: load it with the apeval that wrote it, or run again"
        )
    if data.get("complete") is not True:
        raise ApevalError(f"the run in {folder} was not finished: run it again")
    hashes = data.get("sha256")
    if not isinstance(hashes, dict) or set(hashes) != set(HASHED):
        raise ApevalError(f"{path} is damaged: sha256 does not list the run's files")
    return Manifest(whole(data, "batches", path, 1), hashes)


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
