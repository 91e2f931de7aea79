"""Where an episode branched off others: whose random numbers each of its decisions draws with.

Random numbers are addressed by (seed, episode, decision, purpose). A branched episode has the first
decisions of another one, which it shares, and its own from then on. So it is a list of pairs
(episode, from decision): the reset and the decisions 0 … b₁ − 1 draw with the number of the first
episode, b₁ … b₂ − 1 with that of the second, and so on. It can be played from the start, alone, by
anybody, whatever sampled it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apeval.problem.types import IntArray

_NEVER = np.iinfo(np.int64).max  # a decision that never comes


@dataclass(frozen=True)
class Lineage:
    """The lineages of n episodes, with at most G pairs each.

    >>> one = Lineage.of([[(3, 0), (8, 2)]])
    >>> one.at(np.arange(4))[0].tolist()
    [3, 3, 8, 8]
    """

    episode: IntArray
    """Whose random numbers are drawn, (n, G)."""
    since: IntArray
    """From which decision on, (n, G): 0 first, then increasing; the largest integer where there
    are fewer pairs."""

    @staticmethod
    def own(ids: IntArray) -> Lineage:
        """Episodes that begin at the beginning."""
        number = np.asarray(ids, np.int64)[:, None]
        return Lineage(number, np.zeros_like(number))

    @staticmethod
    def of(pairs: Sequence[Sequence[tuple[int, int]]]) -> Lineage:
        """From each episode's pairs (episode, from decision)."""
        most = max(len(it) for it in pairs)
        episode = np.zeros((len(pairs), most), np.int64)
        since = np.full((len(pairs), most), _NEVER)
        for i, it in enumerate(pairs):
            for g, (number, first) in enumerate(it):
                episode[i, g], since[i, g] = number, first
        return Lineage(episode, since)

    @property
    def root(self) -> IntArray:
        """The episode that each one begins with, (n,): its reset draws with that number."""
        first: IntArray = self.episode[:, 0]
        return first

    def at(self, t: IntArray, rows: IntArray | slice = slice(None)) -> IntArray:
        """The numbers that the episodes in these rows draw with at decisions t, (len(rows), B)."""
        episode, since = self.episode[rows], self.since[rows]
        pair = (since[:, :, None] <= np.asarray(t)).sum(axis=1) - 1
        return np.take_along_axis(episode, pair, axis=1)

    def take(self, rows: IntArray | slice) -> Lineage:
        """The chosen episodes."""
        return Lineage(self.episode[rows], self.since[rows])

    def branched(self, since: IntArray, ids: IntArray) -> Lineage:
        """Episodes `ids` that are these up to decision `since` − 1, and their own from there on."""
        kept = self.since < since[:, None]
        count = kept.sum(axis=1)
        width = int(count.max()) + 1
        episode = np.zeros((len(ids), width), np.int64)
        begins = np.full((len(ids), width), _NEVER)
        w = min(width, self.episode.shape[1])
        episode[:, :w] = np.where(kept[:, :w], self.episode[:, :w], 0)
        begins[:, :w] = np.where(kept[:, :w], self.since[:, :w], _NEVER)
        own = np.arange(len(ids))
        episode[own, count], begins[own, count] = ids, since
        return Lineage(episode, begins)

    @staticmethod
    def join(parts: Sequence[Lineage]) -> Lineage:
        """One below the other."""
        most = max(part.episode.shape[1] for part in parts)
        episode, since = [], []
        for part in parts:
            wider = ((0, 0), (0, most - part.episode.shape[1]))
            episode.append(np.pad(part.episode, wider))
            since.append(np.pad(part.since, wider, constant_values=_NEVER))
        return Lineage(np.concatenate(episode), np.concatenate(since))

    def pairs(self, i: int) -> tuple[tuple[int, int], ...]:
        """The i-th episode's pairs (episode, from decision)."""
        there = self.since[i] < _NEVER
        return tuple(
            (int(number), int(first))
            for number, first in zip(self.episode[i][there], self.since[i][there], strict=True)
        )


def pairs_of(drawn: IntArray) -> tuple[tuple[int, int], ...]:
    """One episode's pairs, from the number that each of its decisions drew with.

    >>> pairs_of(np.array([3, 3, 8]))
    ((3, 0), (8, 2))
    """
    first = np.flatnonzero(np.append(True, drawn[1:] != drawn[:-1])) if len(drawn) else drawn
    return tuple((int(drawn[t]), int(t)) for t in first)
