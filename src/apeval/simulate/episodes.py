"""What a batch of episodes leaves behind: flat rows, one per decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apeval.problem.laws import Law
from apeval.problem.lineage import Lineage, pairs_of
from apeval.problem.types import Array, BoolArray, FloatArray, IntArray
from apeval.simulate.adversary import Adversary, Situation

PER_EPISODE = (
    "ids",
    "component",
    "length",
    "kind",
    "unresolved",
    "ended_by_roulette",
    "margin",
    "s_end",
    "a_0",
)
"""Fields of `Episodes` with a row for each episode; the others have one for each decision."""


@dataclass(frozen=True)
class BranchTrace:
    """What is kept beside the rest of episodes that others may branch off."""

    drawn: IntArray
    """Row → the episode whose random numbers the decision drew with, (N,)."""
    margin: FloatArray
    """Row → the margin in the state after the decision, (N,)."""
    x: Array | None
    """Row → the simulator's state after the decision, (N, d_x); None where it is no array."""
    copied: IntArray
    """Decisions that were copied from another episode instead of being simulated, (n,)."""

    def take(self, rows: BoolArray, keep: BoolArray) -> BranchTrace:
        """The chosen rows of the chosen episodes."""
        x = None if self.x is None else self.x[rows]
        return BranchTrace(self.drawn[rows], self.margin[rows], x, self.copied[keep])


@dataclass(frozen=True)
class Episodes:
    """n episodes with N decisions in all; rows are sorted by episode, then by time."""

    ids: IntArray
    """Episode numbers within the run, (n,): with the run's key they name every random number."""
    component: IntArray
    """Which part of a mixture drew the episode, (n,)."""
    length: IntArray
    """Decisions, (n,); a controlled initial state counts as one."""
    kind: IntArray
    """0: no failure; k: failure of kind k, (n,)."""
    unresolved: BoolArray
    """Cut before its outcome was known, (n,)."""
    ended_by_roulette: BoolArray
    """Ended early by Russian roulette (`Adversary.survival_probability`), (n,): no failure, and
    episodes that were as likely to end but did not stand in for it."""
    margin: FloatArray
    """≤ 0 if and only if failed, ∞ where roulette ended it, (n,); NaN where there is none."""
    s_end: Array
    """The last state, (n, d_s)."""
    a_0: Array
    """Controlled initial disturbances, (n, d_0)."""
    law_0: Law | None
    """Nominal law of a_0; None where the start is not controlled."""
    episode: IntArray
    """Row → position of its episode, (N,)."""
    t: IntArray
    """Row → decision number n within the episode, (N,)."""
    s: Array
    """s_n, (N, d_s)."""
    a_A: Array
    """a_A,n, (N, d_A)."""
    a_E: Array
    """a_E,n, (N, d_E)."""
    law: Law
    """π_E,gt(· | s_n, a_A,n), row by row."""
    trace: BranchTrace | None = None
    """Lineages, margins and states along the way, where episodes branch off each other."""

    @property
    def n(self) -> int:
        """Number of episodes."""
        return len(self.ids)

    @property
    def steps(self) -> int:
        """Decisions that were simulated, in all."""
        copied = 0 if self.trace is None else int(self.trace.copied.sum())
        return int(self.length.sum()) - copied

    @property
    def lineage(self) -> Lineage | None:
        """Whose random numbers each decision drew with; None where they are the episodes' own."""
        if self.trace is None:
            return None
        own = self.ids.tolist()
        return Lineage.of([self.pairs(i) or ((own[i], 0),) for i in range(self.n)])

    def pairs(self, i: int) -> tuple[tuple[int, int], ...]:
        """The i-th episode's lineage.

        Args:
            i: Place of the episode in the batch, from 0.

        Returns:
            (episode, from decision) pairs; empty where it drew with its own numbers alone.
        """
        if self.trace is None:
            return ()
        found = pairs_of(self.trace.drawn[self.rows_of(i)])
        own = int(self.ids[i])
        return () if all(number == own for number, _ in found) else found

    @property
    def failed(self) -> BoolArray:
        """Whether each episode failed, (n,)."""
        return np.asarray(self.kind > 0)

    @property
    def situation(self) -> Situation:
        """What nature saw at every decision."""
        return Situation(self.s, self.a_A, self.t, self.law)

    def sum_rows(self, terms: FloatArray) -> FloatArray:
        """Sum a quantity over each episode's decisions, in order of time.

        Args:
            terms: One number per decision, (N,).

        Returns:
            One number per episode, (n,).
        """
        return np.bincount(self.episode, terms, self.n).astype(np.float64)

    def log_density(self, adversary: Adversary) -> FloatArray:
        """log q(τ): an adversary's density of each episode's disturbances.

        Args:
            adversary: Any, also one that did not draw them.

        Returns:
            The logarithm, (n,).
        """
        return adversary.log_density(self)

    def take(self, keep: BoolArray) -> Episodes:
        """The chosen episodes, with their decisions.

        Args:
            keep: Which of them, (n,) bool.

        Returns:
            As many episodes as are chosen, numbered anew.
        """
        row, number = keep[self.episode], np.cumsum(keep) - 1
        per_row = {k: getattr(self, k)[row] for k in ("t", "s", "a_A", "a_E")}
        per_episode = {k: getattr(self, k)[keep] for k in PER_EPISODE}
        return Episodes(
            episode=number[self.episode[row]],
            law=self.law.take(np.flatnonzero(row)),
            law_0=None if self.law_0 is None else self.law_0.take(np.flatnonzero(keep)),
            trace=None if self.trace is None else self.trace.take(row, keep),
            **per_row,
            **per_episode,
        )

    def rows_of(self, i: int) -> slice:
        """The rows of one episode.

        Args:
            i: Place of the episode in the batch, from 0.

        Returns:
            A slice of the N decisions.
        """
        first, last = np.searchsorted(self.episode, [i, i + 1])
        return slice(int(first), int(last))


def join(batches: Sequence[Episodes]) -> Episodes:
    """Several batches as one.

    Args:
        batches: At least one, all of the same problem.

    Returns:
        All episodes in the order given.
    """
    if len(batches) == 1:
        return batches[0]
    shift = np.cumsum([0] + [b.n for b in batches[:-1]])
    stacked = {
        name: np.concatenate([getattr(b, name) for b in batches])
        for name in (*PER_EPISODE, "t", "s", "a_A", "a_E")
    }
    return Episodes(
        episode=np.concatenate([b.episode + k for b, k in zip(batches, shift, strict=True)]),
        law_0=batches[0].law_0,
        law=Law.stack([b.law for b in batches], [len(b.t) for b in batches]),
        trace=join_traces([b.trace for b in batches]),
        **stacked,
    )


def join_traces(traces: Sequence[BranchTrace | None]) -> BranchTrace | None:
    """Several traces one below the other; None where a batch has none."""
    found = [trace for trace in traces if trace is not None]
    if len(found) < len(traces):
        return None
    states = [trace.x for trace in found if trace.x is not None]
    return BranchTrace(
        np.concatenate([trace.drawn for trace in found]),
        np.concatenate([trace.margin for trace in found]),
        np.concatenate(states) if len(states) == len(found) else None,
        np.concatenate([trace.copied for trace in found]),
    )
