"""The journal of a run: every simulated batch, appended as it returns.

Batch number k is a pair of Parquet files, `000k.decisions.parquet` with a row per decision and
`000k.episodes.parquet` with a row per episode. The second is written last: a batch counts when it
is there, and an interruption leaves at most a first file without the second.

Every batch names the digest of the one before it, and that of the run's inputs: a batch that was
changed, left out or taken from another run breaks the chain, whose end the manifest holds.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.problem.types import Array
from apeval.results.columns import read_about, read_table, write_table
from apeval.results.files import regular, whole
from apeval.results.laws import flatten, rebuild
from apeval.simulate.adversary import Nominal
from apeval.simulate.episodes import PER_EPISODE, BranchTrace, Episodes

JOURNAL = "episodes"
SCHEMA_VERSION = 3
BRANCHING_VERSION = 4
"""Of batches whose episodes may branch off each other: they have the columns of a trace, which an
apeval without branches would leave out."""
EMPTY = ""
"""The digest before the first batch."""
DENSITY = "log_p"
"""The nominal log-density of each episode, which its decisions must have."""
_DRAWN, _MARGIN, _STATE, _COPIED = "drawn", "margin_after", "x", "copied"  # of a trace
_PER_DECISION = ("episode", "t", "s", "a_A", "a_E")
_NAME = re.compile(r"(\d{6,9})\.(episodes|decisions)\.parquet")
_YES_NO = ("unresolved", "ended_by_roulette")
_WHOLE = ("ids", "component", "length", "kind", "episode", "t", _DRAWN, _COPIED)


class ForeignError(ApevalError):
    """A batch of another run."""


@dataclass(frozen=True)
class Bond:
    """What a batch is tied to."""

    inputs: str
    """SHA-256 of the run's inputs."""
    previous: str = EMPTY
    """The digest of the batch before it."""


def paths(folder: Path, number: int) -> tuple[Path, Path]:
    """The files of a batch: decisions, episodes."""
    return (
        folder / f"{number:06d}.decisions.parquet",
        folder / f"{number:06d}.episodes.parquet",
    )


def write_batch(folder: Path, number: int, batch: Episodes, position: int, bond: Bond) -> str:
    """Append a batch that stands at `position` … of its stage; returns its digest."""
    law, law_columns = flatten(batch.law, len(batch.t), "law")
    law_0, law_0_columns = (
        (None, {}) if batch.law_0 is None else flatten(batch.law_0, batch.n, "law_0")
    )
    about = {
        "schema_version": SCHEMA_VERSION if batch.trace is None else BRANCHING_VERSION,
        "number": number,
        "position": position,
        "first_id": int(batch.ids[0]),
        "inputs": bond.inputs,
        "previous": bond.previous,
    }
    decisions, episodes = paths(folder, number)
    rows = {name: getattr(batch, name) for name in _PER_DECISION}
    each = {name: getattr(batch, name) for name in PER_EPISODE}
    if batch.trace is not None:
        rows |= {_DRAWN: batch.trace.drawn, _MARGIN: batch.trace.margin}
        rows |= {} if batch.trace.x is None else {_STATE: batch.trace.x}
        each[_COPIED] = batch.trace.copied
    write_table(decisions, {**rows, **law_columns}, {**about, "law": law})
    each[DENSITY] = _densities(batch)
    write_table(episodes, {**each, **law_0_columns}, {**about, "law_0": law_0})
    return digest(folder, number)


def digest(folder: Path, number: int) -> str:
    """SHA-256 over both files of a batch."""
    both = hashlib.sha256()
    for path in paths(folder, number):
        regular(path)
        try:
            both.update(hashlib.sha256(path.read_bytes()).digest())
        except OSError as error:
            raise ApevalError(f"cannot read {path}: {error.strerror or error}") from None
    return both.hexdigest()


def previous(folder: Path, number: int) -> str:
    """The digest that a batch has of the one before it."""
    return str(read_about(paths(folder, number)[1]).get("previous"))


def check_bond(folder: Path, number: int, bond: Bond) -> None:
    """Refuse a batch that is not the one which followed there."""
    for path in paths(folder, number):
        about = read_about(path)
        if about.get("inputs") != bond.inputs:
            raise ForeignError(
                f"the recorded episodes do not belong to this run: {path} is of one with other "
                "inputs, or of another problem"
            )
        if about.get("previous") != bond.previous:
            raise ApevalError(f"{path} is damaged: it does not follow the batch before it")


def read_batch(folder: Path, number: int) -> Episodes:
    """The inverse of `write_batch`, with every bit as it was."""
    return _read(folder, number)[0]


def read_sound(folder: Path, number: int) -> Episodes:
    """A batch whose decisions have the densities, and whose failures the margins, that it says."""
    batch, log_p = _read(folder, number)
    path = paths(folder, number)[1]
    first, _ = span(folder, number)
    if not np.array_equal(batch.ids, first + np.arange(batch.n)):
        raise ApevalError(f"{path} is damaged: episodes are not numbered from {first} on")
    found = _densities(batch)
    if bool(np.isnan(found).any()):
        raise ApevalError(f"{path} is damaged: laws do not fit decisions, or give no densities")
    if not np.allclose(found, log_p, rtol=1e-9, atol=1e-9):
        raise ApevalError(f"{path} is damaged: decisions do not have the density that was recorded")
    missed = np.isfinite(batch.margin) & ((batch.margin <= 0.0) != batch.failed)
    if bool(missed.any()):
        raise ApevalError(f"{path} is damaged: failures and margins contradict each other")
    if bool((batch.unresolved & (batch.failed | batch.ended_by_roulette)).any()):
        raise ApevalError(f"{path} is damaged: an unresolved episode has an outcome")
    return batch


def _densities(batch: Episodes) -> Array:
    """log p(τ) of each episode; not a number where a law has none for its decisions."""
    nothing = np.full(batch.n, np.nan)
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(batch.log_density(Nominal()))
    except Exception:  # a user's class may fail in any way
        return nothing
    return found if found.shape == (batch.n,) and found.dtype.kind == "f" else nothing


def _read(folder: Path, number: int) -> tuple[Episodes, Array]:
    decisions, episodes = paths(folder, number)
    rows, about_rows = read_table(decisions)
    each, about = read_table(episodes)
    for path, it in ((decisions, about_rows), (episodes, about)):
        _check_version(path, it, number)
    _check_fields(decisions, rows, _PER_DECISION, ("s", "a_A", "a_E"))
    _check_fields(episodes, each, (*PER_EPISODE, DENSITY), ("s_end", "a_0"))
    law_0 = about.get("law_0")
    batch = Episodes(
        **{name: each[name] for name in PER_EPISODE},
        **{name: rows[name] for name in _PER_DECISION},
        law=rebuild(about_rows.get("law"), rows, decisions),
        law_0=None if law_0 is None else rebuild(law_0, each, episodes),
        trace=_trace(decisions, rows, episodes, each, about),
    )
    _check_batch(episodes, batch)
    return batch, each[DENSITY]


def _trace(
    decisions: Path, rows: dict[str, Array], episodes: Path, each: dict[str, Array], about: Any
) -> BranchTrace | None:
    """What was kept for branches, where episodes branch."""
    if about.get("schema_version") != BRANCHING_VERSION:
        return None
    state = (_STATE,) if _STATE in rows else ()
    _check_fields(decisions, rows, (_DRAWN, _MARGIN, *state), state)
    _check_fields(episodes, each, (_COPIED,), ())
    drawn, copied = rows[_DRAWN], each[_COPIED]
    last = np.append(drawn, 0).max() if len(drawn) else 0
    inside = drawn.min(initial=0) >= 0 and last <= each["ids"].max(initial=0)
    if not inside or np.any(copied < 0) or np.any(copied > each["length"]):
        raise ApevalError(f"{episodes} is damaged: episodes branch off where they cannot")
    return BranchTrace(drawn, rows[_MARGIN], rows.get(_STATE), copied)


def numbers(folder: Path) -> list[int]:
    """Complete batches, which must be 0, 1, … without a gap."""
    if folder.is_symlink() or not folder.is_dir():
        raise ApevalError(f"there is no folder {folder}")
    found = sorted(
        int(match[1])
        for entry in folder.iterdir()
        if (match := _NAME.fullmatch(entry.name)) and match[2] == "episodes"
    )
    if found != list(range(len(found))):
        missing = next((k for k, n in enumerate(found) if k != n), 0)
        raise ApevalError(f"{folder} is damaged: batch {missing} is missing or doubled")
    return found


def span(folder: Path, number: int) -> tuple[int, int]:
    """The number of a batch's first episode and how many it holds, without reading them."""
    _, episodes = paths(folder, number)
    about = read_about(episodes)
    _check_version(episodes, about, number)
    return whole(about, "first_id", episodes), whole(about, "rows", episodes, 1)


def read_batches(folder: Path, inputs: str, batches: int, head: str) -> Iterator[Episodes]:
    """All batches in order; the last one's digest must be `head`."""
    if (found := len(numbers(folder))) != batches:
        raise ApevalError(f"{folder} is damaged: it holds {found} batches of {batches}")
    last = EMPTY
    for number in range(batches):
        check_bond(folder, number, Bond(inputs, last))
        last = digest(folder, number)
        if last != (head if number + 1 == batches else previous(folder, number + 1)):
            raise ApevalError(f"{folder} is damaged: batch {number} has changed since then")
        yield read_sound(folder, number)


def cut_after(folder: Path, batches: int) -> None:
    """Keep the first batches; drop the later ones, the last one first, and drafts."""
    refuse_link(folder)
    for entry in sorted(folder.iterdir(), reverse=True):
        match = _NAME.fullmatch(entry.name.removesuffix(".part"))
        if match and (int(match[1]) >= batches or entry.name.endswith(".part")):
            entry.unlink()


def refuse_link(folder: Path) -> None:
    """Nothing is written to where a link points."""
    if folder.is_symlink():
        raise ApevalError(f"{folder} is a link: refused, choose another folder")


def clear(folder: Path) -> None:
    """Remove the batches of an earlier run, and nothing else."""
    refuse_link(folder)
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        if _NAME.fullmatch(entry.name.removesuffix(".part")):
            entry.unlink()


def _check_version(path: Path, about: dict[str, Any], number: int) -> None:
    version = about.get("schema_version")
    if version not in (SCHEMA_VERSION, BRANCHING_VERSION):
        raise ApevalError(
            f"{path} has the schema version {version!r}; this apeval reads {SCHEMA_VERSION}"
        )
    if about.get("number") != number:
        raise ApevalError(f"{path} is damaged: it says that it is batch {about.get('number')!r}")


def _check_fields(
    path: Path, arrays: dict[str, Array], names: tuple[str, ...], wide: tuple[str, ...]
) -> None:
    for name in names:
        kinds = "iu" if name in _WHOLE else "b" if name in _YES_NO else "biuf"
        fits = name in arrays and arrays[name].ndim == (2 if name in wide else 1)
        if not fits or arrays[name].dtype.kind not in kinds:
            raise ApevalError(f"{path} is damaged: {name} is missing or of the wrong type")


def _check_batch(path: Path, batch: Episodes) -> None:
    """Rows belong to episodes, in order, and lengths agree."""
    first = 0 if batch.law_0 is None else 1
    rows = batch.episode
    in_order = bool(np.all(rows[1:] >= rows[:-1])) and bool(np.all(batch.ids[1:] > batch.ids[:-1]))
    inside = len(rows) == 0 or (int(rows[0]) >= 0 and int(rows[-1]) < batch.n)
    if not (batch.n > 0 and in_order and inside and int(batch.ids[0]) >= 0):
        raise ApevalError(f"{path} is damaged: its episodes and decisions are not in order")
    if not np.array_equal(np.bincount(rows, minlength=batch.n) + first, batch.length):
        raise ApevalError(f"{path} is damaged: lengths of episodes and their decisions disagree")
    begin = np.searchsorted(rows, np.arange(batch.n))
    if not np.array_equal(batch.t, np.arange(len(rows)) - begin[rows]):
        raise ApevalError(f"{path} is damaged: decisions are not numbered from 0 on")
    if batch.s.shape[1] != batch.s_end.shape[1] or int(batch.kind.min()) < 0:
        raise ApevalError(f"{path} is damaged: states or kinds of failure are impossible")
