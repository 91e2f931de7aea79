"""Episodes that a run simulated before it was interrupted, by their numbers."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from apeval.errors import ApevalError
from apeval.results import journal
from apeval.results.manifest import Manifest
from apeval.simulate.episodes import Episodes


class JournalReader:
    """The journal of an unfinished run. A block was always written whole, so it is found in one
    batch or not at all."""

    def __init__(self, folder: Path, batches: int) -> None:
        self.folder = folder
        self._spans = [journal.span(folder, number) for number in range(batches)]
        self._firsts = [first for first, _ in self._spans]
        if any(a + n > b for (a, n), b in zip(self._spans, self._firsts[1:], strict=False)):
            raise ApevalError(f"{folder} is damaged: it holds episodes twice")
        self._open: tuple[int, Episodes] | None = None
        self._read = 0

    @property
    def episodes(self) -> int:
        """How many there are."""
        return sum(n for _, n in self._spans)

    @property
    def unread(self) -> bool:
        """Whether some have not been asked for."""
        return bool(self._spans) and self._read < sum(self._spans[-1])

    def has(self, episode: int) -> bool:
        """Whether the episode was recorded."""
        return self._batch_of(episode, 1) is not None

    def find(self, first: int, n: int) -> Episodes | None:
        """Episodes `first` …, n of them."""
        number = self._batch_of(first, n)
        if number is None:
            return None
        if self._open is None or self._open[0] != number:
            self._open = (number, journal.read_batch(self.folder, number))
        batch = self._open[1]
        self._read = max(self._read, first + n)
        mine = (batch.ids >= first) & (batch.ids < first + n)
        if int(mine.sum()) != n:
            raise ApevalError(f"{self.folder} is damaged: episodes are missing in batch {number}")
        return batch if mine.all() else batch.take(np.asarray(mine))

    def _batch_of(self, first: int, n: int) -> int | None:
        number = bisect_right(self._firsts, first) - 1
        if number < 0:
            return None
        start, size = self._spans[number]
        return number if first + n <= start + size else None


@dataclass(frozen=True)
class Usable:
    """What an interrupted run leaves to go on with."""

    batches: int = 0
    head: str = journal.EMPTY
    """The digest of the last of them."""
    damage: str | None = None
    """What is wrong with the next one."""


def usable(folder: Path, inputs: str, state: Manifest) -> Usable:
    """Batches of an interrupted run that can be used: those of its course that the manifest knows,
    up to the first whose digest is not the one that the next batch, or the manifest, has of it."""
    if not folder.is_dir():
        return Usable()
    found = Usable()
    most = state.batches if state.course is None else min(state.course, state.batches)
    for number in journal.numbers(folder)[:most]:
        try:
            journal.check_bond(folder, number, journal.Bond(inputs, found.head))
            journal.read_sound(folder, number)
            head = journal.digest(folder, number)
            last = number + 1 == state.batches
            if head != (state.journal if last else journal.previous(folder, number + 1)):
                raise ApevalError(f"batch {number} of {folder} has changed since it was stored")
        except journal.ForeignError:
            raise
        except ApevalError as error:
            if "problem's own code" in str(error):
                raise  # nothing is wrong with it
            return replace(found, damage=str(error))
        found = Usable(number + 1, head)
    return found
