"""The hashes in a run folder, found by trying, and made to fit again after an edit.

Whoever edits a folder can compute every hash that depends on nothing but what stands in it. Which
ones there are is not taken from apeval's code, but for two that are of several things together:
each text of 64 hexadecimal digits in a JSON file is compared with the SHA-256 of every file, and of
every object and list as JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from apeval.errors import ApevalError
from apeval.results import journal
from apeval.results.provenance import inputs_hash

Where = tuple[str | int, ...]
_HASH = re.compile(r"[0-9a-f]{64}")
_ROUNDS = 6  # a file that holds the hash of a file that holds a hash …
_WRITTEN: tuple[Callable[[Any], str], ...] = (
    lambda it: json.dumps(it, sort_keys=True),
    lambda it: json.dumps(it),
    lambda it: json.dumps(it, sort_keys=True, separators=(",", ":")),
    lambda it: json.dumps(it, separators=(",", ":")),
    lambda it: json.dumps(it, sort_keys=True, ensure_ascii=False),
    lambda it: json.dumps(it, indent=1),
)
"""Ways to write an object before it is hashed."""
UNTOLD = "cannot be told"
"""The verdict on an edit of what stands in one place only, in a folder whose hashes were all made
anew."""


@dataclass(frozen=True)
class Seal:
    """A hash in a JSON file, and what it is the hash of."""

    file: str
    where: Where
    of: str
    """The file that it speaks of."""
    part: Where | None = None
    """A part of that file; None: its bytes."""
    written: int = 0


def find_seals(folder: Path) -> list[Seal]:
    """Every hash in a folder that can be computed from what is there."""
    objects = {name: _objects(read(folder / name), name) for name in _json_files(folder)}
    known: dict[str, _Of] = {}
    for found in objects.values():
        known = {**found, **known}
    for name in files(folder):
        known[_sha256((folder / name).read_bytes())] = (name, None, 0)
    return [
        Seal(name, where, *{**known, **own}[value])  # an object that two files hold: its own
        for name, own in objects.items()
        for where, value in walk(read(folder / name))
        if isinstance(value, str) and _HASH.fullmatch(value) and value in known
    ]


_Of = tuple[str, Where | None, int]


def _objects(data: Any, name: str) -> dict[str, _Of]:
    """Every object and list in a file, by its hashes."""
    return {
        _sha256(written(value).encode()): (name, where, k)
        for where, value in walk(data)
        if isinstance(value, dict | list)
        for k, written in enumerate(_WRITTEN)
    }


def seal(folder: Path, seals: list[Seal]) -> None:
    """Write the hashes of what is there now. One whose file or place the edit has taken away is
    left as it was."""
    with contextlib.suppress(ApevalError, OSError, ValueError, KeyError, TypeError, LookupError):
        bind(folder)  # fails where the edit took away what is hashed
    for _ in range(_ROUNDS):
        renewed = [_renew(folder, it) for it in seals]
        if not any(renewed):
            return


def bind(folder: Path) -> None:
    """The hashes that are no file's and no object's: those of the inputs with the problem's
    identity, and the chain of batches."""
    for name in ("run.json", "provenance.json"):
        if (folder / name).exists():
            data = read(folder / name)
            data["inputs_sha256"] = inputs_hash(data["inputs"], data["identity"])
            write(folder / name, data)
    bound, last = read(folder / "run.json")["inputs_sha256"], journal.EMPTY
    for number in journal.numbers(folder / journal.JOURNAL):
        for path in journal.paths(folder / journal.JOURNAL, number):
            table = pq.read_table(path)
            about = json.loads(table.schema.metadata[b"apeval"])
            if (about["inputs"], about["previous"]) != (bound, last):
                text = json.dumps({**about, "inputs": bound, "previous": last})
                pq.write_table(table.replace_schema_metadata({b"apeval": text}), path)
        last = journal.digest(folder / journal.JOURNAL, number)
    manifest = read(folder / "manifest.json")
    if manifest["journal"] != last:
        write(folder / "manifest.json", {**manifest, "journal": last})


def _renew(folder: Path, it: Seal) -> bool:
    try:
        data = read(folder / it.file)
        inside, key = place(data, it.where)
        content = (folder / it.of).read_bytes()
        if it.part is not None:
            content = _WRITTEN[it.written](at(read(folder / it.of), it.part)).encode()
        new, old = _sha256(content), inside[key]
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return False
    if old == new:
        return False
    inside[key] = new
    write(folder / it.file, data)
    return True


def files(folder: Path) -> list[str]:
    """Every file below a folder, by its path in it."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def _json_files(folder: Path) -> list[str]:
    return [name for name in files(folder) if name.endswith(".json")]


def read(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_text("utf-8"))


def write(path: Path, data: Any) -> None:
    """A JSON file, in the layout of a run folder's."""
    path.write_text(json.dumps(data, indent=1), "utf-8")


def walk(data: Any, here: Where = ()) -> Iterator[tuple[Where, Any]]:
    """Every value in nested lists and objects with its place, itself first."""
    yield here, data
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from walk(value, (*here, key))


def at(data: Any, where: Where) -> Any:
    """The value at a place."""
    for key in where:
        data = data[key]
    return data


def place(data: Any, where: Where) -> tuple[Any, Any]:
    """The container of a place, and the place's key in it."""
    return at(data, where[:-1]), where[-1]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
