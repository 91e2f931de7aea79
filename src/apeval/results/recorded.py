"""Episodes that a run simulated before it was interrupted, by their numbers."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

import numpy as np

from apeval.errors import ApevalError
from apeval.results import journal
from apeval.simulate.episodes import Episodes


class Recorded:
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


def usable(folder: Path, most: int | None) -> tuple[int, str | None]:
    """How many batches of an interrupted run can be used, and what is wrong with the next one. Of
    batches from number `most` on nothing is used."""
    present = journal.numbers(folder)
    for number in present[:most]:
        try:
            journal.read_batch(folder, number)
        except ApevalError as error:
            if "problem's own code" in str(error):
                raise  # nothing is wrong with it
            return number, str(error)
    return len(present[:most]), None
