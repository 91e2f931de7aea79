"""run.json: what a run was asked, and with what code; written before anything is simulated."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.results.files import read_object, write_json
from apeval.results.provenance import SCHEMA_VERSION, file_hash, provenance, source_hash
from apeval.results.rebuild import build
from apeval.results.recipe import files_of
from apeval.version import __version__

INPUTS = "run.json"


@dataclass(frozen=True)
class Inputs:
    """What `evaluate` is called with once more when a run is resumed."""

    problem: str
    view: str
    method: str
    seed: int
    settings: Mapping[str, Any]
    parameters: Mapping[str, Any]
    budget: Mapping[str, int]
    target_error: float | None
    below: float | None
    confidence: float
    block: int
    on_fault: str
    retries: int
    time_limit: float | None


@dataclass(frozen=True)
class Asked:
    """A run's inputs as its folder has them."""

    inputs: Inputs
    about: Mapping[str, Any]
    """All of run.json."""
    extends: tuple[str, ...]
    """Runs that it extends, relative to the folder."""


def write_inputs(
    folder: Path,
    inputs: Mapping[str, Any],
    command: Sequence[str] | None,
    files: Sequence[Path],
    extends: Sequence[str],
    started: str,
) -> dict[str, Any]:
    """Write run.json; returns what stands in it."""
    about = {**provenance(command, inputs, files, started), "extends": list(extends)}
    write_json(folder / INPUTS, about)
    return about


def read_inputs(folder: Path) -> Asked:
    """The inverse of `write_inputs`."""
    where = folder / INPUTS
    if not where.exists() and not where.is_symlink():
        raise ApevalError(f"{folder} does not say what was asked (no {INPUTS}): run it again")
    about = read_object(where)
    if about.get("schema_version") != SCHEMA_VERSION:
        raise ApevalError(
            f"{where} has the schema version {about.get('schema_version')!r}; this apeval reads "
            f"{SCHEMA_VERSION}: resume it with the apeval that wrote it, or run again"
        )
    extends = about.get("extends")
    if not isinstance(extends, list) or not all(isinstance(p, str) for p in extends):
        raise ApevalError(f"{where} is damaged: it does not list the earlier runs")
    return Asked(build(Inputs, about.get("inputs"), where), about, tuple(extends))


def changes(asked: Asked, problem: Problem) -> list[str]:
    """What is no longer as it was when the run began, and might change its result."""
    about, found = asked.about, []
    if about.get("source_sha256") != source_hash():
        found.append(f"apeval's own code (now {__version__})")
    versions = about.get("versions")
    for name, version in (versions if isinstance(versions, dict) else {}).items():
        if name not in ("apeval", "python") and _version(name) != version:
            found.append(f"{name} {version} (now {_version(name) or 'missing'})")
    files = about.get("files")
    before = {
        str(f.get("name")): f.get("sha256")
        for f in (files if isinstance(files, list) else [])
        if isinstance(f, dict)
    }
    now = {file.name: file_hash(file) for file in files_of(problem)}
    found += [name for name in before if name in now and before[name] != now[name]]
    return found


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        return None
