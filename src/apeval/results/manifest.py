"""What makes a folder a run folder: its format, its version, and the hashes of its files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError
from apeval.remedies import Call
from apeval.results import journal
from apeval.results.columns import LARGEST
from apeval.results.fault_log import FAULTS
from apeval.results.files import as_json, read_object, regular, whole, write_json
from apeval.results.inputs import INPUTS, how_to_resume
from apeval.results.lock import holder
from apeval.results.model import ARRAYS, STRUCTURE
from apeval.results.provenance import counted
from apeval.results.samples import SAMPLE
from apeval.results.store import CURVE, EXTENSION, RECORDS, RESULT

MANIFEST, PROVENANCE = "manifest.json", "provenance.json"
FORMAT, SCHEMA_VERSION = "apeval run", 2
HASHED = (RESULT, RECORDS, CURVE, PROVENANCE, SAMPLE, ARRAYS, STRUCTURE, INPUTS)
OPTIONAL = (FAULTS, EXTENSION)
"""Files that a run may have besides."""


@dataclass(frozen=True)
class Manifest:
    """How far a run came, its journal, and the hashes of its files."""

    complete: bool = False
    interrupted: bool = False
    """It has a result, but was to go on."""
    batches: int = 0
    """Batches in the journal."""
    journal: str = journal.EMPTY
    """What the last batch is sealed with, and by it all before."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """What the run was asked, as run.json says it too."""
    course: int | None = None
    """Batches that belong to the course of an uninterrupted run; None: all that are there."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    pending: Mapping[str, str] = field(default_factory=dict)
    """Hashes of files that were about to be written."""

    @property
    def resumable(self) -> bool:
        """Whether there is something left to do."""
        return self.interrupted or not self.complete


def write_manifest(folder: Path, it: Manifest) -> None:
    """Write the manifest; the hashes of the files that are there are taken anew."""
    names = (*HASHED, *OPTIONAL) if it.complete else (INPUTS, FAULTS)
    present = [name for name in names if (folder / name).is_file()]
    state: dict[str, Any] = {
        "complete": it.complete,
        "batches": it.batches,
        "journal": it.journal,
        "inputs": dict(it.inputs),
        "sha256": {name: hash_of(folder / name) for name in present},
    }
    if it.interrupted:
        state["interrupted"] = True
    if it.course is not None:
        state["course"] = it.course
    _write(folder, state)


def write_listed(folder: Path, name: str, data: Any) -> Path:
    """Write a JSON file of a run that has a manifest already. Its hash is announced first, so
    that an interruption at any moment leaves a folder whose files are those of its manifest."""
    state = _read(folder)
    state["pending"] = {name: hashlib.sha256(as_json(data)).hexdigest()}
    _write(folder, {k: v for k, v in state.items() if k not in ("format", "schema_version")})
    path = write_json(folder / name, data)
    write_manifest(folder, read_state(folder))
    return path


def _write(folder: Path, state: dict[str, Any]) -> None:
    write_json(folder / MANIFEST, {"format": FORMAT, "schema_version": SCHEMA_VERSION, **state})


def read_state(folder: Path) -> Manifest:
    """How far the run in a folder came, and what its files must be."""
    data, path = _read(folder), folder / MANIFEST
    complete = data.get("complete") is True
    hashes, pending = (_hashes(data.get(name, {}), path) for name in ("sha256", "pending"))
    if not set(HASHED if complete else (INPUTS,)) <= {*hashes, *pending}:
        raise ApevalError(f"{path} is damaged: sha256 does not list the run's files")
    head = data.get("journal")
    if not isinstance(head, str):
        raise ApevalError(f"{path} is damaged: it does not seal the journal")
    course = whole(data, "course", path) if "course" in data else None
    interrupted = data.get("interrupted") is True
    batches = whole(data, "batches", path, 1 if complete else 0)
    inputs = data.get("inputs")
    if not isinstance(inputs, dict):
        raise ApevalError(f"{path} is damaged: it does not say what was asked")
    return Manifest(complete, interrupted, batches, head, inputs, course, hashes, pending)


def _hashes(data: Any, path: Path) -> dict[str, str]:
    if not isinstance(data, dict) or not set(data) <= {*HASHED, *OPTIONAL}:
        raise ApevalError(f"{path} is damaged: sha256 does not list the run's files")
    return {name: str(value) for name, value in data.items()}


def read_complete(folder: Path) -> Manifest:
    """The manifest of a run that has a result."""
    it = read_state(folder)
    if not it.complete and (who := holder(folder)) is not None:
        raise ApevalError(f"the run in {folder} is under way ({who}): wait for it to end")
    if not it.complete:
        raise ApevalError(
            f"the run in {folder} was not finished: {how_to_resume(folder)} goes on with it"
        )
    return it


def seal(folder: Path) -> str:
    """SHA-256 of the manifest: who has noted it sees whether anything in the folder was rewritten,
    even with all hashes made anew."""
    return hash_of(regular(folder / MANIFEST))


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
    if not path.exists() and (folder / "harden.json").is_file():
        raise ApevalError(
            f"{folder} is the folder of a hardening, whose rounds are run folders: give one of "
            f"them, {Call('load', str(folder / 'round-0'))}"
        )
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
    if hash_of(path) not in (manifest.hashes.get(name), manifest.pending.get(name)):
        raise ApevalError(f"{path} is damaged: it has changed since the run was stored")
    return path


def check_all(folder: Path, manifest: Manifest) -> None:
    """Every file but those of the journal, which are looked at when they are read."""
    for name in manifest.hashes:
        check(folder, name, manifest)
    for name in OPTIONAL:
        if (folder / name).exists() and name not in {**manifest.hashes, **manifest.pending}:
            raise ApevalError(f"{folder / name} is damaged: it is no part of the stored run")


def check_asked(folder: Path, manifest: Manifest, inputs: Mapping[str, Any]) -> None:
    """The inputs in run.json are those that the manifest names. What is done with faults may
    differ while run.json is about to be written anew, and older manifests do not name it."""
    names = {*counted(inputs), *counted(manifest.inputs)}
    if INPUTS not in manifest.pending:
        names |= set(manifest.inputs)
    for name in sorted(names):
        if inputs.get(name) != manifest.inputs.get(name):
            raise ApevalError(f"{folder / INPUTS} is damaged: {name} is not what {MANIFEST} says")


def hash_of(path: Path) -> str:
    """SHA-256 of a file that must be readable."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    except OSError as error:
        raise ApevalError(f"cannot read {path}: {error.strerror or error}") from None
    return digest.hexdigest()
