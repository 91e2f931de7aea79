"""A part that begins later: π_E,gt up to a time drawn for the episode, the part from there on.

A fit to failures that all came early leaves nothing for those that come late: it pushes at once,
never sees a late one, and so never learns of them. Begun at any time, it meets them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.log_sum import log_sum
from apeval.learn.ape.proposal_part import ContinuousPart
from apeval.problem.types import FloatArray, IntArray

_DELAYS = 5  # at most


@dataclass(frozen=True, eq=False)
class DelayedPart(ContinuousPart):
    """The part after one of several delays between 0 and T, all alike, as if the episode began
    then."""

    part: ContinuousPart
    times: int
    persistent: ClassVar[bool] = True  # type: ignore[misc]

    @property
    def delays(self) -> IntArray:
        """Decisions that may pass before the part begins."""
        number = min(self.times - 1, _DELAYS)
        return (1 + np.arange(number)) * self.times // (1 + number)

    def row_ratio(self, rows: DecisionRows) -> FloatArray:
        raise TypeError("a delayed part has a density of whole episodes only")

    def log_ratio(self, rows: DecisionRows) -> FloatArray:
        """With the delay summed out."""
        columns = [self._after(rows, int(delay)) for delay in self.delays]
        summed = log_sum(np.stack(columns, axis=1)) - float(np.log(len(columns)))
        return summed + self.start_ratio(rows.z_0)

    def _after(self, rows: DecisionRows, delay: int) -> FloatArray:
        """log q/p of whole episodes after this delay."""
        begun = rows.t >= delay
        if not begun.any():
            return np.zeros(rows.n)
        late = DecisionRows(
            rows.e[begun], rows.p[begun], rows.x[begun], rows.t[begun] - delay,
            rows.episode[begun], rows.n, rows.z_0,
        )  # fmt: skip
        return late.total(self.part.row_ratio(late))

    def start_ratio(self, z_0: FloatArray) -> FloatArray:
        return self.part.start_ratio(z_0)

    def start(self, u: FloatArray) -> FloatArray:
        return self.part.start(u)

    def draw(
        self, x: FloatArray, t: IntArray, u: FloatArray, whole: FloatArray | None
    ) -> FloatArray:
        if whole is None:
            raise TypeError("a delayed part needs the episode's own random numbers")
        delays = self.delays
        mine = delays[np.minimum((whole[:, 0] * len(delays)).astype(int), len(delays) - 1)]
        begun = t >= mine
        z: FloatArray = ndtri(u)
        z[begun] = self.part.draw(x[begun], (t - mine)[begun], u[begun], None)
        return z

    def relaxed(self, eta: float) -> DelayedPart:
        part = self.part.relaxed(eta)
        assert isinstance(part, ContinuousPart)
        return DelayedPart(part, self.times)
