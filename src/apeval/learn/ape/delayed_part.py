"""A part that begins later: π_E,gt up to a time drawn for the episode, the part from there on.

A fit to failures that all came early leaves nothing for those that come late: it pushes at once,
never sees a late one, and so never learns of them. Begun at any time, it meets them all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.log_sum import log_sum
from apeval.learn.ape.proposal_part import ContinuousPart, DiscretePart, ProposalPart
from apeval.problem.laws import pick
from apeval.problem.types import Array, FloatArray, IntArray

_DELAYS = 5  # at most


@dataclass(frozen=True, eq=False)
class _Delayed(ProposalPart):
    """The part after one of several delays between 0 and T, all alike, as if the episode began
    then."""

    part: ProposalPart
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
        if self.part.asks_again:
            late = replace(rows, t=np.maximum(rows.t - delay, 0))
            return rows.total(np.where(begun, self.part.row_ratio(late), 0.0))
        late = DecisionRows(
            rows.e[begun], rows.p[begun], rows.x[begun], rows.t[begun] - delay,
            rows.episode[begun], rows.n, rows.z_0,
        )  # fmt: skip
        return late.total(self.part.row_ratio(late))

    def start_ratio(self, z_0: FloatArray) -> FloatArray:
        return self.part.start_ratio(z_0)

    def start(self, u: FloatArray) -> FloatArray:
        return self.part.start(u)

    def _mine(self, whole: FloatArray | None) -> IntArray:
        """Each episode's own delay."""
        if whole is None:
            raise TypeError("a delayed part needs the episode's own random numbers")
        delays = self.delays
        mine: IntArray = delays[
            np.minimum((whole[:, 0] * len(delays)).astype(int), len(delays) - 1)
        ]
        return mine


@dataclass(frozen=True, eq=False)
class DelayedPush(_Delayed, ContinuousPart):
    """Of disturbances."""

    part: ContinuousPart

    def draw(
        self, x: FloatArray, t: IntArray, u: FloatArray, whole: FloatArray | None
    ) -> FloatArray:
        mine = self._mine(whole)
        begun = t >= mine
        z: FloatArray = ndtri(u)
        z[begun] = self.part.draw(x[begun], (t - mine)[begun], u[begun], None)
        return z

    def relaxed(self, eta: float) -> DelayedPush:
        part = self.part.relaxed(eta)
        assert isinstance(part, ContinuousPart)
        return DelayedPush(part, self.times)


@dataclass(frozen=True, eq=False)
class DelayedTilt(_Delayed, DiscretePart):
    """Of outcomes."""

    part: DiscretePart

    def probabilities(self, x: FloatArray, t: IntArray, p: FloatArray) -> FloatArray:
        raise TypeError("a delayed part has probabilities of whole episodes only")

    def decide(
        self, x: FloatArray, t: IntArray, p: FloatArray, u: FloatArray, whole: FloatArray | None
    ) -> Array:
        mine = self._mine(whole)
        begun = t >= mine
        q = p.copy()
        q[begun] = self.part.probabilities(x[begun], (t - mine)[begun], p[begun])
        return pick(q, u)

    def relaxed(self, eta: float) -> DelayedTilt:
        part = self.part.relaxed(eta)
        assert isinstance(part, DiscretePart)
        return DelayedTilt(part, self.times)


def begun_later(part: ProposalPart, times: int) -> ProposalPart:
    """The part after a delay."""
    if isinstance(part, DiscretePart):
        return DelayedTilt(part, times)
    assert isinstance(part, ContinuousPart)
    return DelayedPush(part, times)
