"""The frozen stage's failures, kept while it runs: enough to find modes and to replay them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apeval.learn.whitened import can_whiten
from apeval.problem.laws import Law
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray, IntArray
from apeval.simulate.episodes import Episodes
from apeval.simulate.replay import Record

_MOST, _NUMBERS = 2_000, 4_000_000  # failures, and disturbances in all: what memory is spent on


@dataclass(frozen=True)
class Failure:
    """One failing episode."""

    position: int
    """Its place in the frozen sample."""
    kind: int
    t: IntArray
    z: FloatArray
    """Whitened disturbances, (T, d_E); for outcomes, how far each was from its nominal share,
    (T, K); (T, 0) for a law that cannot be whitened."""
    p: FloatArray
    """Nominal probabilities of the outcomes, (T, K); (T, 0) for continuous disturbances."""
    s_end: Array
    id: int
    a_0: Array
    a_E: Array
    lineage: tuple[tuple[int, int], ...] = ()
    """Where it branched off others, as in `Record`."""

    @property
    def length(self) -> int:
        """Decisions, without the initial one."""
        return len(self.t)


@dataclass
class FailureLog:
    """The first failures of a stage, in order."""

    problem: Problem
    key: Array
    kept: list[Failure] = field(default_factory=list)
    complete_to: int = 0
    """Episodes of the stage among which every failure was kept."""
    _numbers: int = 0
    _full: bool = False

    def add(self, batch: Episodes, position: int) -> None:
        """Keep the failures of the batch that stands at `position` … of the stage."""
        if self._full:
            return
        failing = np.flatnonzero(batch.failed)
        size = np.cumsum(batch.length[failing]) * max(batch.a_E.shape[1], 1)
        room = int(np.searchsorted(size, _NUMBERS - self._numbers))
        fits = min(_MOST - len(self.kept), room)
        kept = failing[: max(fits, int(not self.kept))]
        self._full = len(kept) < len(failing)
        self.complete_to = position + (int(failing[len(kept)]) if self._full else batch.n)
        if len(kept) == 0:
            return
        self._numbers += int(size[len(kept) - 1])
        mine = np.flatnonzero(np.isin(batch.episode, kept))
        z, p = self._whitened(batch.law.take(mine), batch.a_E[mine])
        last = 0
        for i in kept:
            rows = batch.rows_of(int(i))
            first, last = last, last + rows.stop - rows.start
            self.kept.append(
                Failure(
                    position=position + int(i),
                    kind=int(batch.kind[i]),
                    t=batch.t[rows],
                    z=z[first:last],
                    p=p[first:last],
                    s_end=batch.s_end[i],
                    id=int(batch.ids[i]),
                    a_0=batch.a_0[i],
                    a_E=batch.a_E[rows],
                    lineage=batch.pairs(int(i)),
                )
            )

    def _whitened(self, law: Law, a_E: Array) -> tuple[FloatArray, FloatArray]:
        nothing = np.zeros((len(a_E), 0))
        if law.discrete:
            k, p = a_E.reshape(-1).astype(np.int64), law.outcome_probabilities()
            p = np.broadcast_to(p, (len(k), p.shape[1]))
            happened = np.eye(p.shape[1])[k]
            return (happened - p) / np.sqrt(np.maximum(p * (1.0 - p), 1e-6)), p
        if can_whiten(self.problem.nominal):
            return law.to_z(a_E), nothing
        return nothing, nothing

    def first(self, n: int) -> None:
        """Forget failures beyond the first n episodes of the stage."""
        self.kept = [it for it in self.kept if it.position < n]
        self.complete_to = min(self.complete_to, n)

    def record(self, it: Failure) -> dict[str, Any]:
        """The failure's replay record."""
        key = (int(self.key[0]), int(self.key[1]))
        return Record(key, it.id, it.a_0.tolist(), it.a_E.tolist(), it.lineage).as_json()

    def as_json(self, most: int) -> tuple[dict[str, Any], ...]:
        """Replay records of the first failures, with their kinds' names."""
        kinds = self.problem.kinds
        return tuple({"kind": kinds[f.kind - 1], **self.record(f)} for f in self.kept[:most])
