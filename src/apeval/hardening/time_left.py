"""How far something is that takes minutes, in words, with the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable

_EVERY = 10.0  # seconds between two lines


class TimeLeft:
    """Tells now and then how much is done.

    Args:
        tell: Is told in words.
        what: What is done, such as "round 1: training".
        total: How much there is to do.
        unit: Of `total`.
        clock: Seconds.
    """

    def __init__(
        self,
        tell: Callable[[str], None],
        what: str,
        total: int,
        unit: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tell, self.what, self.total, self.unit, self.clock = tell, what, total, unit, clock
        self.done = 0
        self._began = self._told = clock()

    def one_more(self) -> None:
        """One is done."""
        self.at(self.done + 1)

    def at(self, done: int, total: int | None = None) -> None:
        """So many are done, of `total` if that has changed."""
        self.done, self.total = done, self.total if total is None else total
        now = self.clock()
        if now - self._told < _EVERY or not 0 < done < self.total:
            return
        self._told = now
        left = (now - self._began) * (self.total - done) / done
        self.tell(f"{self.what}, {done:,} of {self.total:,} {self.unit}, {in_words(left)} left")


def in_words(seconds: float) -> str:
    """A time, roughly.

    >>> in_words(8.2), in_words(95.0), in_words(7000.0)
    ('9 s', '2 min', '1.9 h')
    """
    if seconds < 90.0:
        return f"{int(seconds) + 1} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"
