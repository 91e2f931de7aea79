"""faults.json: every time that a simulator did not come back, with what it takes to replay it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apeval.results.dataclass_json import build
from apeval.results.files import read_json

FAULTS = "faults.json"


@dataclass(frozen=True)
class FaultRecord:
    """Of what led to a fault: the episode's streams, and nature's actions up to it."""

    key: tuple[int, int]
    id: int
    a_0: tuple[float, ...]
    a_E: tuple[tuple[float, ...], ...]
    lineage: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Fault:
    """One fault."""

    episode: int
    """Its number; of a fault that went away, the first of the block's."""
    what: str
    """raised, died or late."""
    message: str
    attempts: int
    outcome: str
    """passed (on another attempt), unresolved or stopped."""
    decision: int | None = None
    """At which decision; None where nobody knows."""
    episodes: int = 1
    """How many episodes the block held."""
    record: FaultRecord | None = None


def read_faults(folder: Path) -> list[dict[str, Any]]:
    """The entries, checked; none where there is no such file."""
    where = folder / FAULTS
    if not where.exists() and not where.is_symlink():
        return []
    data = read_json(where)
    entries = data if isinstance(data, list) else [None]
    for entry in entries:
        build(Fault, entry, where)
    return list(entries)
