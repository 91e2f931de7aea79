"""Where a run comes from: command, versions, platform, seed, hashes, times."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from apeval.environments import find_entry
from apeval.learn.method import find_method
from apeval.plugins import folders
from apeval.run.run_options import SimulationKeywords
from apeval.simulate.identity.source_files import hashes
from apeval.version import __version__

SCHEMA_VERSION = 2
ANSWER = "result"
"""The entry that holds the result once more."""
_PACKAGES = ("numpy", "scipy", "numba", "pyarrow")
_IF_LOADED = ("torch", "zuko", "gymnasium", "highway_env", "minigrid", "mujoco",
              "stable_baselines3")  # fmt: skip


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def provenance(
    command: Sequence[str] | None,
    inputs: Mapping[str, Any],
    identity: Mapping[str, Any],
    files: Sequence[Path],
    started: str,
) -> dict[str, Any]:
    """Plain data, known when a run begins; machine paths are left out as far as it can see
    them."""
    return {
        "schema_version": SCHEMA_VERSION,
        "command": None if command is None else " ".join(_quoted(part) for part in command),
        "inputs": dict(inputs),
        "inputs_sha256": inputs_hash(inputs, identity),
        "identity": dict(identity),
        "files": hashes(files),
        "source_sha256": source_hash(str(inputs.get("problem", "")), inputs.get("method")),
        "versions": _versions(),
        "platform": {
            "system": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
        },
        "started": started,
    }


def counted(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that a run's numbers depend on: all but what may differ when it goes on."""
    return {k: v for k, v in inputs.items() if k not in SimulationKeywords.__annotations__}


def inputs_hash(inputs: Mapping[str, Any], identity: Mapping[str, Any]) -> str:
    """SHA-256 over what a run's numbers depend on: its inputs but for what is done with faults,
    and the problem's identity."""
    told = [counted(inputs), identity]
    text = json.dumps(told, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def source_hash(problem: str, method: str | None) -> str:
    """SHA-256 over the code of apeval and of the method: names and contents of all Python files of
    the core, of another package of apeval's where the problem comes from there, and of the package
    that the method comes from. A problem's own files are part of its identity.

    Args:
        problem: Name or address of the problem.
        method: Name of the method; None where it is not known.
    """
    entry = find_entry(problem)
    home = (problem if entry is None else entry.factory.__module__).partition(":")[0]
    parts = [folders()[name] for name in ("apeval", home.partition(".")[0]) if name in folders()]
    if method is not None:
        package = sys.modules[find_method(method).start.__module__.partition(".")[0]]
        if package.__file__ is not None:
            file = Path(package.__file__)
            parts.append(file.parent if file.name == "__init__.py" else file)
    digest = hashlib.sha256()
    for part in dict.fromkeys(parts):
        for file in [part] if part.is_file() else sorted(part.rglob("*.py")):
            digest.update(file.relative_to(part.parent).as_posix().encode() + b"\0")
            digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    names = [*_PACKAGES, *(name for name in _IF_LOADED if name in sys.modules)]
    found = {"apeval": __version__, "python": platform.python_version()}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name.replace("_", "-"))
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _quoted(part: str) -> str:
    """One word of the command: absolute paths by their last part, blanks in quotes."""
    head, sign, tail = part.partition("=")
    path = Path(tail if sign else head)
    if path.is_absolute():
        part = f"{head}={path.name}" if sign else path.name
    return f"'{part}'" if not part or any(c in part for c in " '\"$`\\*?;&|<>()") else part
