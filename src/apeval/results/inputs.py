"""run.json: what a run was asked, and with what code; written before anything is simulated."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apeval.adapt.address import is_address
from apeval.environments import find_entry
from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.remedies import Call
from apeval.results.dataclass_json import build, damaged
from apeval.results.files import read_object
from apeval.results.provenance import SCHEMA_VERSION, inputs_hash, source_hash
from apeval.run.run_options import ALWAYS_STORED, STORED, RunOptions
from apeval.simulate.identity.identity import differences, identify
from apeval.simulate.identity.reference import Reference
from apeval.version import __version__

INPUTS = "run.json"


@dataclass(frozen=True)
class Inputs:
    """What a run was asked, besides its options."""

    problem: str
    view: str
    parameters: Mapping[str, Any]
    budget: Mapping[str, int]
    """`steps` or `episodes`."""


@dataclass(frozen=True)
class StoredInputs:
    """A run's inputs as its folder has them."""

    inputs: Inputs
    options: RunOptions
    about: Mapping[str, Any]
    """All of run.json."""
    extends: tuple[str, ...]
    """Runs that it extends, relative to the folder."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """The problem's fingerprint."""
        identity: Mapping[str, Any] = self.about["identity"]
        return identity


def check_about(about: Mapping[str, Any], where: Path) -> None:
    """What run.json and provenance.json say of a run's inputs is what its hash is of."""
    inputs, identity = about.get("inputs"), about.get("identity")
    if not isinstance(inputs, dict) or not isinstance(identity, dict):
        raise ApevalError(f"{where} is damaged: inputs or identity are missing")
    if about.get("inputs_sha256") != inputs_hash(inputs, identity):
        raise ApevalError(f"{where} is damaged: its inputs are not those that were hashed")


def how_to_resume(folder: Path) -> Call:
    """The call that goes on with the run in a folder, complete."""
    try:
        name = str(read_object(folder / INPUTS)["inputs"]["problem"])
    except (ApevalError, KeyError, TypeError):
        name = ""
    if find_entry(name) is not None:
        return Call("resume", str(folder))
    return Call("resume", str(folder), name if is_address(name) else "")


def read_inputs(folder: Path) -> StoredInputs:
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
    check_about(about, where)
    extends = about.get("extends")
    if not isinstance(extends, list) or not all(isinstance(p, str) for p in extends):
        raise ApevalError(f"{where} is damaged: it does not list the earlier runs")
    inputs = build(Inputs, about["inputs"], where)
    options = _options(about["inputs"], inputs.budget, where)
    return StoredInputs(inputs, options, about, tuple(extends))


def _options(data: Mapping[str, Any], budget: Mapping[str, int], where: Path) -> RunOptions:
    missing = [name for name in ALWAYS_STORED if name not in data]
    if missing:
        raise damaged(where, f"{missing[0]} is missing")
    units = {unit: budget.get(unit) for unit in ("steps", "episodes")}
    return build(RunOptions, {**{k: data[k] for k in STORED if k in data}, **units}, where)


def changes(
    asked: StoredInputs, problem: Problem, ask: Callable[[], Reference | None]
) -> list[str]:
    """What is no longer as it was when the run began, and might change its result.

    Args:
        asked: What the folder says.
        problem: The problem that the run is to go on with.
        ask: What the problem does; None where it must not be asked.
    """
    about, found = asked.about, []
    if about.get("source_sha256") != source_hash(asked.inputs.problem, asked.options.method):
        found.append(f"apeval's own code (now {__version__})")
    versions = about.get("versions")
    for name, version in (versions if isinstance(versions, dict) else {}).items():
        if name not in ("apeval", "python") and _version(name) != version:
            found.append(f"{name} {version} (now {_version(name) or 'missing'})")
    return found + differences(asked.identity, identify(problem, ask), ignore=("name",))


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        return None
