"""What is known of an episode that never came back: every decision up to the fault."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from apeval.problem.laws import Law
from apeval.problem.types import Array, FloatArray, IntArray
from apeval.simulate.adversary import Situation
from apeval.simulate.episodes import BranchTrace, Episodes
from apeval.simulate.replay import Record
from apeval.simulate.task import Task, Trouble


@dataclass
class PartialEpisode:
    """A watch on one episode alone."""

    a_0: Array | None = None
    law_0: Law | None = None
    seen: list[tuple[Situation, Array]] = field(default_factory=list)
    margin: float = np.inf

    def started(self, a_0: Array, law_0: Law | None) -> None:
        self.a_0, self.law_0 = a_0, law_0

    def decided(self, now: Situation, a_E: Array, margin: FloatArray) -> None:
        self.seen.append((now, a_E))
        self.margin = float(margin[0])

    def record(self, task: Task, key: IntArray) -> Record:
        """The episode's record, as far as it went."""
        a_0 = [] if self.a_0 is None else self.a_0[0].tolist()
        a_E = [a[0].tolist() for _, a in self.seen]
        pairs = () if task.branches is None else task.branches.lineage.pairs(0)
        return Record((int(key[0]), int(key[1])), task.first, a_0, a_E, pairs)

    def unresolved(self, task: Task, like: Episodes) -> Episodes:
        """The episode with the decisions that were made; its outcome stays unknown. Arrays have
        the types and widths of `like`, an episode that came back."""
        nobody = like.take(np.zeros(like.n, bool))
        rows, first = len(self.seen), 0 if like.law_0 is None else 1
        situations = [now for now, _ in self.seen]
        return Episodes(
            ids=np.array([task.first], like.ids.dtype),
            component=task.proposal.assign(np.array([task.position])),
            length=np.array([rows + first]),
            kind=np.zeros(1, np.int64),
            unresolved=np.ones(1, bool),
            ended_by_roulette=np.zeros(1, bool),
            margin=np.array([self._margin(like)]),
            s_end=situations[-1].s if situations else np.zeros_like(like.s_end[:1]),
            a_0=nobody.a_0 if self.a_0 is None else self.a_0.astype(like.a_0.dtype),
            law_0=like.law_0 if self.law_0 is None else self.law_0,
            episode=np.zeros(rows, np.int64),
            t=np.arange(rows, dtype=np.int64),
            s=np.concatenate([nobody.s, *(now.s for now in situations)]),
            a_A=np.concatenate([nobody.a_A, *(now.a_A for now in situations)]),
            a_E=np.concatenate([nobody.a_E, *(a for _, a in self.seen)]),
            law=Law.stack([now.law for now in situations], [1] * rows) if rows else nobody.law,
            trace=None if like.trace is None else self._trace(task, like.trace),
        )

    def _trace(self, task: Task, like: BranchTrace) -> BranchTrace:
        """Nothing branches off it: as far as it is known, it came no nearer to failure."""
        rows, drawn = len(self.seen), np.full(len(self.seen), task.first)
        copied = np.zeros(1, np.int64)
        if task.branches is not None:
            drawn = task.branches.lineage.at(np.arange(rows))[0]
            copied = np.minimum(task.branches.copied, rows)
        x = None if like.x is None else np.zeros((rows, like.x.shape[1]), like.x.dtype)
        return BranchTrace(drawn, np.full(rows, np.inf), x, copied)

    def _margin(self, like: Episodes) -> float:
        """The smallest one seen; before the first, as far as any episode was."""
        if np.isnan(like.margin).any():
            return float("nan")
        if np.isfinite(self.margin):
            return max(self.margin, float(np.nextafter(0.0, 1.0)))
        far = like.margin[np.isfinite(like.margin)]
        return max(1.0, float(far.max(initial=1.0)))


@dataclass(frozen=True)
class FaultyEpisode:
    """An episode that does not come back, alone either."""

    task: Task
    trouble: Trouble
    partial: PartialEpisode
