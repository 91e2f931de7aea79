"""One change to one file of a run folder, by name: a field of a JSON file, a value of a table, a
number of a tensor, a file that is gone or another run's.

The values are plausible ones: what a reader would take for a run's own. Damage that cannot be read
is the business of `apeval bench fuzz`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from apeval_bench.attack.seals import Where, at, files, place, read, walk, write
from apeval_bench.attack.tables import parquet_edits, tensor_edits

_MINOR = {
    "result.json": {
        "schema_version", "view", "settings", "budget", "value", "value_function", "steps",
        "episodes", "failures", "failure_rate", "warnings", "seconds", "truth", "block",
        "diagnostics", "on_fault", "monte_carlo_episodes", "detection_limit",
    },
    "provenance.json": {
        "schema_version", "command", "files", "source_sha256", "versions", "platform", "started",
        "ended", "inputs_sha256",
    },
    "run.json": {
        "schema_version", "command", "files", "source_sha256", "versions", "platform", "started",
        "inputs_sha256",
    },
    "extended.json": {"truth", "warnings", "ess", "detection_limit", "extended"},
}  # fmt: skip
"""Fields that are neither the number nor what it is the number of: a reader who is shown another
value is told something wrong beside it. Such cases are counted, not failed."""
_ALONE = ("component", "ended_by_roulette", "s_0", "s_end_0", "a_A_0")
"""Columns of the journal that have no second copy anywhere, as the docs of the run folder say: no
estimate rests on them, and `replay` holds them against the simulator."""
_LEARNING_ALONE = ("margin", "unresolved")
"""Columns whose second copy is in the sample, in which episodes of learning that do not count are
not. Where only these are shown otherwise, the case is counted as one that cannot be told."""
_FEW = 3  # entries of a long list that are edited: the first, the middle one, the last
_MEANT: dict[str, tuple[Any, ...]] = {
    "problem": ("first-step", "walk"),
    "method": ("mc", "ape-tabular"),
    "on_fault": ("unresolved",),
    "seed": (1, 2),
    "confidence": (0.5, 0.99),
    "trusted": (True, False),
}
"""Values that a name stands for; others follow from the type."""


@dataclass(frozen=True)
class Edit:
    """A change to a run folder."""

    name: str
    do: Callable[[Path], None]
    minor: bool = False
    untold: bool = False
    """Whether nothing else in the folder could contradict it, as far as learning's episodes go."""


def edits(folder: Path, other: Path) -> list[Edit]:
    """Every edit of a folder; `other` holds another run of the problem."""
    found: list[Edit] = []
    batches = [name for name in files(folder) if name.startswith("episodes/")]
    few = {*batches[:2], *batches[len(batches) // 4 * 2 :][:2], *batches[-2:]}
    for name in files(folder):
        if name in batches and name not in few:
            continue
        if name.endswith(".json"):
            found += _fields(folder, name)
        elif name.endswith(".parquet"):
            found += _inside(name, parquet_edits(folder / name))
        elif name.endswith(".safetensors"):
            found += _inside(name, tensor_edits(folder / name))
        found += _whole(name, other)
    return [*found, *_batches(folder)]


def _inside(name: str, found: Iterator[tuple[str, Callable[[Path], None]]]) -> Iterator[Edit]:
    return (
        Edit(
            f"{name}:{what}",
            _table(name, do),
            name.startswith("episodes/") and what.split(":")[0] in _ALONE,
            name.startswith("episodes/") and what.split(":")[0] in _LEARNING_ALONE,
        )
        for what, do in found
    )


def _table(name: str, do: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda folder: do(folder / name)


def _fields(folder: Path, name: str) -> Iterator[Edit]:
    data = read(folder / name)
    for where, value in walk(data):
        if not where or not all(_is_edited(data, where, k) for k in range(len(where))):
            continue
        minor = where[0] in _MINOR.get(name, set())
        words = ".".join(map(str, where))
        for label, new in _others(where, value):
            yield Edit(f"{name}:{words}:{label}", _set(name, where, new), minor)
        if isinstance(where[-1], str):
            yield Edit(f"{name}:{words}:gone", _drop(name, where), minor)


def _is_edited(data: Any, where: Where, k: int) -> bool:
    """Whether a step on the way to a value is a name, or one of a list's few."""
    inside, key = at(data, where[:k]), where[k]
    if not isinstance(inside, list) or len(inside) <= _FEW:
        return True
    return key in (0, len(inside) // 2, len(inside) - 1)


def _others(where: Where, value: Any) -> Iterator[tuple[str, Any]]:
    """Other values for a place, each with a word for it."""
    meant = [it for it in _MEANT.get(str(where[-1]), ()) if it != value]
    if meant:
        yield from ((f"={it}", it) for it in meant)
    elif isinstance(value, bool):
        yield f"={not value}", not value
    elif isinstance(value, int):
        yield "+1", value + 1
        yield "x3", value * 3 if value else 7
    elif isinstance(value, float):
        yield "x1.5", value * 1.5 if value else 0.25
        yield "x0.2", value * 0.2 if value else -0.25
    elif isinstance(value, str):
        hexadecimal = len(value) == 64 and set(value) <= set("0123456789abcdef")
        yield "other", value[1:] + value[0] if hexadecimal else f"{value} b"
    elif value is None:
        yield "=0.5", 0.5
    elif isinstance(value, list) and value:
        yield "shorter", value[:-1]
        yield "doubled", value + value[-1:]
    elif isinstance(value, dict) and value:
        yield "empty", {}
    else:
        yield "=1", [1] if isinstance(value, list) else {"x": 1}


def _set(name: str, where: Where, new: Any) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        data = read(folder / name)
        inside, key = place(data, where)
        inside[key] = new
        write(folder / name, data)

    return do


def _drop(name: str, where: Where) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        data = read(folder / name)
        inside, key = place(data, where)
        del inside[key]
        write(folder / name, data)

    return do


def _whole(name: str, other: Path) -> Iterator[Edit]:
    """The file gone, or another run's in its place."""
    yield Edit(f"{name}:gone", lambda folder: (folder / name).unlink())
    if (other / name).exists() and name != "manifest.json":
        yield Edit(f"{name}:of another run", lambda folder: _copy(other / name, folder / name))


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)


def _batches(folder: Path) -> Iterator[Edit]:
    """Batches of the journal swapped, doubled, or gone with the rest renumbered."""
    stems = sorted({name.split(".")[0] for name in files(folder) if name.startswith("episodes/")})
    kinds = ("decisions", "episodes")
    for one, two in pairwise(stems):

        def swap(run: Path, one: str = one, two: str = two, kinds: tuple[str, ...] = kinds) -> None:
            for kind in kinds:
                first, second = (run / f"{stem}.{kind}.parquet" for stem in (one, two))
                kept = first.read_bytes()
                first.write_bytes(second.read_bytes())
                second.write_bytes(kept)

        def double(run: Path, one: str = one, two: str = two) -> None:
            for kind in kinds:
                _copy(run / f"{one}.{kind}.parquet", run / f"{two}.{kind}.parquet")

        yield Edit(f"{one}:swapped with the next", swap)
        yield Edit(f"{one}:in place of the next", double)
        for kind in kinds:

            def half(run: Path, swap: Any = swap, kind: str = kind) -> None:
                swap(run, kinds=(kind,))

            yield Edit(f"{one}:{kind} swapped with the next", half)
    for k, stem in enumerate(stems):

        def skip(run: Path, k: int = k, stem: str = stem) -> None:
            for kind in kinds:
                (run / f"{stem}.{kind}.parquet").unlink()
                for later, before in zip(stems[k + 1 :], stems[k:], strict=False):
                    (run / f"{later}.{kind}.parquet").rename(run / f"{before}.{kind}.parquet")

        yield Edit(f"{stem}:gone and the rest renumbered", skip)
