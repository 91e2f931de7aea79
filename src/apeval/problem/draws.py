"""Random numbers addressed by (seed, episode, decision, purpose), not by order of use.

Every episode owns its streams, so a result depends neither on how episodes are grouped
into batches nor on which worker ran them, and any episode can be replayed alone.
Philox4x32-10 (Salmon et al., 2011) is a pure function of a counter and a key, hence
vectorises over episodes; NumPy's own Philox is one sequential object per stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from apeval.problem.lineage import Lineage
from apeval.problem.types import FloatArray, IntArray

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW32, _32, _6, _26 = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(6), np.uint64(26)
_HALF, _TO_UNIT = 0.5, 2.0**-52

#: What a stream is for. Each purpose has its own numbers in the same episode.
DYNAMICS, AGENT, NATURE, MIXTURE, ROULETTE, BRANCH = 0, 1, 2, 3, 4, 5


def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Ten rounds of Philox4x32 on uint64 arrays (or scalars, compiled) that hold 32-bit words."""
    for _ in range(10):
        p0 = _M0 * c0
        p1 = _M1 * c2
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ k0, p1 & _LOW32, (p0 >> _32) ^ c3 ^ k1, p0 & _LOW32
        k0 = (k0 + _W0) & _LOW32
        k1 = (k1 + _W1) & _LOW32
    return c0, c1, c2, c3


def to_unit(high: Any, low: Any) -> Any:
    """Two 32-bit words to a double in the open interval (0, 1), 52 bits deep."""
    return (((high >> _6) << _26) + (low >> _6) + _HALF) * _TO_UNIT


def make_key(seed: int, *path: int) -> IntArray:
    """The Philox key of a run: two 32-bit words from a seed and a path of stage numbers.

    Args:
        seed: Of the run.
        *path: Numbers of stages below it.

    Returns:
        Shape (2,).
    """
    words = np.random.SeedSequence(entropy=seed, spawn_key=path).generate_state(2, np.uint32)
    return words.astype(np.uint64)


def _uniforms(
    key: IntArray, ids: IntArray, t: IntArray, purpose: int, first: int, blocks: int
) -> FloatArray:
    """Uniforms of n episodes at B decisions, (n, B, 2·blocks): each block of the counter is two.
    The episodes' numbers are (n,), or (n, B) where they differ from decision to decision."""
    n, B = len(ids), len(t)
    shape = (n, B, blocks)
    number = np.asarray(ids, np.uint64).reshape(n, -1, 1)
    episode = np.broadcast_to(number, shape).ravel()
    time = np.broadcast_to((np.asarray(t) + 1).astype(np.uint64)[None, :, None], shape).ravel()
    block = np.broadcast_to(np.arange(first, first + blocks, dtype=np.uint64), shape).ravel()
    c3 = (episode >> _32) + np.uint64(purpose << 24)
    w0, w1, w2, w3 = philox(block, time, episode & _LOW32, c3, key[0], key[1])
    pairs = np.stack([to_unit(w0, w1), to_unit(w2, w3)], axis=1)
    return pairs.reshape(n, B, 2 * blocks)


def _read_only(values: IntArray) -> IntArray:
    if not values.flags.writeable:
        return values
    view = values.view()
    view.flags.writeable = False
    return view


class Tape:
    """Numbers of several decisions drawn at once, for episodes that run in lockstep: the same
    numbers as decision by decision, at a fraction of the calls."""

    _AHEAD = 16

    def __init__(
        self,
        key: IntArray,
        ids: IntArray,
        last: int,
        lineage: Lineage | None = None,
        since: IntArray | None = None,
    ) -> None:
        """`since`: the first decision of each episode, where they do not all begin at 0."""
        self.key, self.ids, self.last, self.lineage = _read_only(key), ids, last, lineage
        self.since = since
        self._drawn: dict[tuple[int, int, int], tuple[int, IntArray, FloatArray]] = {}

    def at(self, t: int, rows: IntArray) -> Draws:
        """The episodes in these rows, at decision t."""
        return Draws(self.key, self.ids[rows], t, (self, rows))

    def start(self) -> Draws:
        """All episodes, while they are being reset."""
        numbers = None if self.lineage is None else self.lineage.root
        return Draws(self.key, self.ids, numbers=numbers)

    def numbers(self, t: IntArray, rows: IntArray) -> IntArray:
        """Whose random numbers the episodes in these rows draw at decisions t, (len(rows), 1) where
        they are their own, else (len(rows), len(t))."""
        return self.ids[rows][:, None] if self.lineage is None else self.lineage.at(t, rows)

    def read(self, t: int, rows: IntArray, purpose: int, first: int, blocks: int) -> FloatArray:
        """Uniforms of the episodes in these rows at decision t, (len(rows), 2·blocks)."""
        address = (purpose, first, blocks)
        start, where, drawn = self._drawn.get(address, (t, rows[:0], np.empty((0, 0, 0))))
        if not start <= t < start + drawn.shape[1]:
            ahead = np.arange(t, min(t + self._AHEAD, max(self.last, t + 1)))
            start, where = t, np.full(len(self.ids), -1)
            mine = rows
            if self.since is not None:
                joining = np.flatnonzero((self.since > t) & (self.since <= ahead[-1]))
                mine = np.concatenate([rows, joining])
            where[mine] = np.arange(len(mine))
            drawn = _uniforms(self.key, self.numbers(ahead, mine), ahead, purpose, first, blocks)
            self._drawn[address] = (start, where, drawn)
        read: FloatArray = drawn[where[rows], t - start]
        return read


class Draws:
    """The random numbers of a batch of episodes at one decision.

    A simulator uses `uniform`, `normal`, `seeds` and `generators`: randomness that nobody
    controls. Calls in one decision continue the stream, so two calls give fresh numbers.

    >>> draws = Draws(make_key(0), np.array([7, 8]))
    >>> alone = Draws(make_key(0), np.array([8]))
    >>> bool(draws.uniform(3)[1, 2] == alone.uniform(3)[0, 2])
    True
    """

    def __init__(
        self,
        key: IntArray,
        ids: IntArray,
        t: int = -1,
        tape: tuple[Tape, IntArray] | None = None,
        numbers: IntArray | None = None,
    ) -> None:
        self.key = _read_only(key)
        self.ids = _read_only(ids)  # user code can read them
        self._numbers = self.ids if numbers is None else numbers  # they address the streams
        self.t = t  # the decision's number n; -1 while the episode is being reset
        self._tape = tape
        self._used: dict[int, int] = {}

    @property
    def n(self) -> int:
        """How many episodes the batch holds."""
        return len(self.ids)

    def at(self, t: int) -> Draws:
        """The same episodes at decision t.

        Args:
            t: The decision, from 0.

        Returns:
            Draws that begin anew, for this decision.
        """
        return Draws(self.key, self.ids, t)

    def stream(self, purpose: int, k: int) -> FloatArray:
        """The next k uniforms of each episode for one purpose, shape (n, k).

        Args:
            purpose: What they are for; purposes share no number.
            k: How many per episode.

        Returns:
            Shape (n, k).
        """
        first, blocks = self._used.get(purpose, 0), (k + 1) // 2
        self._used[purpose] = first + blocks
        if self._tape is None:
            t = np.array([self.t])
            unit = _uniforms(self.key, self._numbers, t, purpose, first, blocks)[:, 0]
        else:
            tape, rows = self._tape
            unit = tape.read(self.t, rows, purpose, first, blocks)
        return np.ascontiguousarray(unit[:, :k])

    def uniform(self, k: int = 1) -> FloatArray:
        """k uniforms on (0, 1) per episode, shape (n, k), for the simulator's own chance.

        Args:
            k: How many per episode.

        Returns:
            Shape (n, k).
        """
        return self.stream(DYNAMICS, k)

    def normal(self, k: int = 1) -> FloatArray:
        """k standard normals per episode, shape (n, k), for the simulator's own chance.

        Args:
            k: How many per episode.

        Returns:
            Shape (n, k).
        """
        z: FloatArray = ndtri(self.uniform(k))
        return z

    def seeds(self) -> list[int]:
        """One 52-bit seed per episode, for a simulator that keeps a generator of its own."""
        return [int(u * 2.0**52) for u in self.uniform(1)[:, 0]]

    def generators(self) -> list[np.random.Generator]:
        """One NumPy generator per episode (slower than `uniform`, for code that needs one)."""
        return [np.random.default_rng(seed) for seed in self.seeds()]
