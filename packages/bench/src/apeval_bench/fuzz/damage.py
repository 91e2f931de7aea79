"""Ways to damage a run folder, as accidents and attackers do."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from apeval.results.manifest import HASHED, MANIFEST, OPTIONAL
from apeval_bench.fuzz.tables import disturb_parquet, disturb_tensors, payload
from apeval_bench.fuzz.values import TEXTS, disturb
from apeval_bench.fuzz.watch import is_plain

Damage = Callable[[Random, Path], None]
_DEEP = "[" * 100_000
_SWOLLEN = 2**30


def damage(rng: Random, folder: Path) -> None:
    """Damage it once or twice; mostly the hashes are then made to fit again, as someone would who
    wants the damage to be read."""
    for _ in range(rng.choice((1, 1, 2))):
        rng.choices(*zip(*_WAYS, strict=True))[0](rng, folder)
    if rng.random() < 0.9:
        seal(folder)


def seal(folder: Path) -> None:
    """Write the hashes of the files as they are into the manifest."""
    if not _can_be_read(folder / MANIFEST):
        return
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        there = [n for n in (*HASHED, *OPTIONAL) if _can_be_read(folder / n)]
        hashes = {n: _hash(folder / n) for n in there}
        manifest["sha256"] = {**manifest["sha256"], **hashes}
        (folder / MANIFEST).write_text(json.dumps(manifest), "utf-8")
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return  # the manifest itself is damaged


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _files(folder: Path, ending: str = "") -> list[Path]:
    return sorted(p for p in folder.rglob(f"*{ending}") if _can_be_read(p))


def _can_be_read(path: Path) -> bool:
    return is_plain(path) and path.stat().st_size < _SWOLLEN


def _some(rng: Random, folder: Path, ending: str = "") -> Path | None:
    files = _files(folder, ending)
    return rng.choice(files) if files else None


def change_json(rng: Random, folder: Path) -> None:
    """Another value somewhere in a JSON file."""
    path = _some(rng, folder, ".json")
    if path is None:
        return
    try:
        data = disturb(rng, json.loads(path.read_text("utf-8")))
    except (ValueError, RecursionError):
        return  # damaged before
    path.write_text(json.dumps(data), "utf-8")


def write_text(rng: Random, folder: Path) -> None:
    """Text that no JSON writer would write."""
    path = _some(rng, folder, ".json")
    if path is None:
        return
    kept = path.read_text("utf-8", "replace")
    texts = (
        _DEEP, '{"a":' * 50_000, "", "null", "NaN", "[1e999]", '{"x": 1' + "0" * 9_999 + "}",
        kept.replace(": 0", ": NaN"), kept.replace("1", "9" * 400, 1), kept + kept, f"\ufeff{kept}",
        kept.replace('"', "'"), f'{{"schema_version": 1, {kept[1:]}',
    )  # fmt: skip
    path.write_text(rng.choice(texts), "utf-8")


def change_bytes(rng: Random, folder: Path) -> None:
    """Bytes changed, cut out or doubled."""
    path = _some(rng, folder)
    data = bytearray(path.read_bytes()) if path is not None else bytearray()
    if path is None or not data:
        return
    for _ in range(rng.randint(1, 4)):
        at, size = rng.randrange(len(data) or 1), rng.randint(1, 20)
        new = (rng.randbytes(size), b"", bytes(data[at : at + size]) * 2, b"\xff" * size)
        data[at : at + size] = rng.choice(new)
    path.write_bytes(bytes(data))


def cut(rng: Random, folder: Path) -> None:
    """A file that ends too soon, or is empty, or of noise."""
    path = _some(rng, folder)
    if path is not None:
        data = path.read_bytes()
        head = data[: rng.randrange(len(data) + 1)]
        path.write_bytes(rng.choice((head, head, b"", rng.randbytes(64), data + data[:50])))


def swell(rng: Random, folder: Path) -> None:
    """A file that says it is huge, and takes no room on the disk."""
    path = _some(rng, folder)
    if path is not None:
        with contextlib.suppress(OSError):  # more than this file system can say
            os.truncate(path, rng.choice((_SWOLLEN, 2**36, 2**42)))


def swap(rng: Random, folder: Path) -> None:
    """A file's content in another's place."""
    one, other = _some(rng, folder), _some(rng, folder)
    if one is not None and other is not None:
        a, b = one.read_bytes(), other.read_bytes()
        one.write_bytes(b)
        if rng.random() < 0.5:
            other.write_bytes(a)


def replace(rng: Random, folder: Path) -> None:
    """Something else in a file's place: nothing, a folder, a link, a pipe, a device."""
    path = rng.choice([folder / "episodes", *_files(folder)])
    outside = folder.parent / "outside"
    kept = path.read_bytes() if is_plain(path) else b""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    kind = rng.choice(("gone", "gone", "folder", "link", "far", "loop", "pipe", "zero", "closed"))
    if kind == "folder":
        path.mkdir()
    elif kind == "link":  # to what the file was
        (outside / path.name).write_bytes(kept)
        path.symlink_to(outside / path.name)
    elif kind in ("far", "loop", "zero"):
        targets = {"far": outside, "loop": path, "zero": Path("/dev/zero")}
        path.symlink_to(targets[kind])
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "closed":
        path.write_bytes(kept)
        path.chmod(0)


def add(rng: Random, folder: Path) -> None:
    """Files that do not belong there: names that are paths, code that would leave a trace."""
    trace = folder.parent / "outside" / "hit"
    code = f"open({str(trace)!r}, 'w').close()\n"
    names = (
        "problem.py", "__init__.py", "apeval.py", "numpy.py", "sitecustomize.py", "a" * 200,
        "result.json.part", "name\n2", ".hidden", "extended.json", "model.pkl", "000000.npy",
        "episodes/000001.episodes.parquet", "episodes/999999.episodes.parquet",
        "episodes/000000.decisions.parquet.part", "episodes/x.parquet", "checkpoint.json",
    )  # fmt: skip
    path = folder / rng.choice(names)
    if not path.parent.is_dir() or path.parent.is_symlink():
        return
    content = rng.choice((code.encode(), payload(trace), b"{}", b'{"earlier": ["../run"]}'))
    if not path.is_symlink() and not path.is_dir():
        path.write_bytes(content)


def pickle(rng: Random, folder: Path) -> None:
    """A pickle that would leave a trace, where a file is expected."""
    path = _some(rng, folder)
    if path is not None:
        trace = folder.parent / "outside" / "hit"
        path.write_bytes(payload(trace))


def point_elsewhere(rng: Random, folder: Path) -> None:
    """Names and addresses in the files that lead out of the folder, or to code."""
    path = folder / rng.choice(("result.json", "provenance.json", "extended.json", "run.json"))
    try:
        data = json.loads(path.read_text("utf-8")) if path.exists() else {}
        data = data if isinstance(data, dict) else {}
    except (ValueError, OSError, RecursionError):
        return
    (folder / "problem.py").write_text(
        f"open({str(folder.parent / 'outside' / 'hit')!r}, 'w').close()\n", "utf-8"
    )
    names = (*TEXTS, f"{folder}/problem.py:problem", f"{folder}/problem.py", "run/problem.py:x")
    where = [data, data["inputs"]] if isinstance(data.get("inputs"), dict) else [data]
    for key in ("problem", "view", "method", "command", "name", "earlier", "extends"):
        if rng.random() < 0.4:
            value = rng.choice(names)
            rng.choice(where)[key] = [value] if key in ("earlier", "extends") else value
    if is_plain(path) or not path.exists():
        path.write_text(json.dumps(data), "utf-8")


def change_parquet(rng: Random, folder: Path) -> None:
    """Other columns, types, values or descriptions in a Parquet file."""
    path = _some(rng, folder, ".parquet")
    if path is not None:
        disturb_parquet(rng, path)


def change_tensors(rng: Random, folder: Path) -> None:
    """Another header or other sizes in the safetensors file."""
    path = _some(rng, folder, ".safetensors")
    if path is not None:
        disturb_tensors(rng, path)


_WAYS: tuple[tuple[Damage, int], ...] = (
    (change_json, 34),
    (change_parquet, 24),
    (change_bytes, 9),
    (write_text, 6),
    (change_tensors, 5),
    (cut, 4),
    (swell, 2),
    (swap, 4),
    (replace, 6),
    (add, 4),
    (pickle, 2),
    (point_elsewhere, 6),
)
