"""The state of a batch: episodes in their slots of one vector environment, or of several."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.adapt.vector_block import VectorBlock, VectorOutcome, VectorPlan
from apeval.adapt.vector_sim import SEEDS, VectorAnswer
from apeval.problem.draws import AGENT, Draws
from apeval.problem.types import Array, FloatArray, IntArray


class _Lease:
    """A hold on a block, whose vector environment is free again when nobody holds it."""

    __slots__ = ("__weakref__", "block", "broken")

    def __init__(self, block: VectorBlock, fleet: VectorFleet) -> None:
        self.block, self.broken = block, [False]
        weakref.finalize(self, fleet.give_back, block, self.broken)


@dataclass(slots=True)  # not frozen, which costs microseconds each time
class SeatedGroup:
    """Episodes in one vector environment."""

    lease: _Lease
    slots: IntArray
    """Where each of them sits, (k,)."""
    outcome: VectorOutcome
    """What became of them, a row per episode; the answer has a row per slot."""

    @property
    def block(self) -> VectorBlock:
        return self.lease.block

    def observed(self) -> Any:
        """What the environments said last, a row per episode."""
        return self.block.seats(self.slots).own_rows(self.outcome.answer.obs)

    def take(self, rows: Any) -> SeatedGroup:
        """Some of the episodes."""
        it = self.outcome
        some = VectorOutcome(it.kind[rows], it.margin[rows], it.answer, it.noise[rows], it.memory)
        return SeatedGroup(self.lease, self.slots[rows], some)


class Seated:
    """The state x: n episodes under way. A step moves the environments themselves, so an older x
    cannot be continued.

    Args:
        groups: Episodes by the vector environment that they run in.
        rows: Which of the n episodes each group holds; all of them, in order, where there is one.
        a_0: What they were started with, (n, d_0).
    """

    __slots__ = ("_seen", "a_0", "groups", "rows")

    def __init__(
        self, groups: Sequence[SeatedGroup], rows: Sequence[IntArray], a_0: FloatArray
    ) -> None:
        self.groups, self.rows, self.a_0 = groups, rows, a_0
        self._seen: dict[str, Array] = {}

    def view(self, name: str, look: Callable[[Seated], Array]) -> Array:
        """What a view shows of this state, an array of the caller's own. It is asked after a
        decision and before the next; nothing moves in between, so it looks once."""
        if name not in self._seen:
            self._seen[name] = look(self)
        return self._seen[name].copy()

    def __len__(self) -> int:
        return len(self.a_0)

    def __getitem__(self, chosen: Any) -> Seated:
        """The chosen episodes, by a boolean mask, indices or a slice."""
        wanted = np.arange(len(self))[chosen]
        if len(self.groups) == 1:
            return Seated([self.groups[0].take(wanted)], [np.arange(len(wanted))], self.a_0[wanted])
        where = np.full(len(self), -1)
        where[wanted] = np.arange(len(wanted))
        groups, rows = [], []
        for group, mine in zip(self.groups, self.rows, strict=True):
            kept = np.flatnonzero(where[mine] >= 0)
            if len(kept):
                groups.append(group.take(kept))
                rows.append(where[mine[kept]])
        return Seated(groups, rows, self.a_0[wanted])

    def each(self, read: Callable[[SeatedGroup], Array]) -> Array:
        """A function of every group, (k, …), as one array (n, …)."""
        if len(self.groups) == 1:
            return read(self.groups[0])
        found: Array | None = None
        for group, mine in zip(self.groups, self.rows, strict=True):
            part = np.asarray(read(group))
            found = np.empty((len(self), *part.shape[1:]), part.dtype) if found is None else found
            found[mine] = part
        return np.empty(0) if found is None else found


class VectorFleet:
    """All vector environments of a problem: those in use, and those waiting."""

    def __init__(self, plan: VectorPlan) -> None:
        self.plan = plan
        self._free: list[VectorBlock] = []
        # runs when the last lease and the problem are gone, at the latest when Python exits
        weakref.finalize(self, _close_all, self._free)

    def __reduce__(self) -> Any:  # another process makes environments of its own
        return VectorFleet, (self.plan,)

    def give_back(self, block: VectorBlock, broken: list[bool]) -> None:
        """The vector environment may be used again, unless it is spent."""
        if broken[0] or block.sim.fresh:
            _close(block)
        else:
            self._free.append(block)

    def _lease(self, seeds: list[int]) -> _Lease:
        if self._free:
            return _Lease(self._free.pop(), self)
        return _Lease(VectorBlock(self.plan, self.plan.make(seeds)), self)

    def reset(self, draws: Draws, a_0: Array | None = None) -> Seated:
        """n new episodes, each with a seed of its own, in the slot of its own number."""
        seeds = draws.seeds()
        if self.plan.make.by_seeds:
            seeds = [seed % SEEDS for seed in seeds]
        groups, rows = [], []
        for mine in seated(draws.ids, self.plan.make.num_envs):
            slots = (draws.ids[mine] % self.plan.make.num_envs).astype(np.int64)
            own_seeds = [seeds[k] for k in mine]
            lease = self._lease(self._everywhere(own_seeds, slots))
            with _Watched(lease):
                lease.block.begin(slots, own_seeds, None if a_0 is None else a_0[mine])
            groups.append(SeatedGroup(lease, slots, _before(lease.block, slots)))
            rows.append(mine)
        start = np.empty((draws.n, 0)) if a_0 is None else np.asarray(a_0, np.float64)
        return Seated(groups, rows, start)

    def _everywhere(self, seeds: list[int], slots: IntArray) -> list[int]:
        spread = [seeds[0]] * self.plan.make.num_envs
        for slot, seed in zip(slots.tolist(), seeds, strict=True):
            spread[slot] = seed
        return spread

    def step(self, x: Seated, a_A: Array, a_E: Array, draws: Draws) -> Seated:
        """f_E in each vector environment."""
        drawn = _PolicyUniforms(draws, self.plan.policy.chance)
        groups = []
        alone = len(x.groups) == 1
        for group, mine in zip(x.groups, x.rows, strict=True):
            uniforms = _Reader(drawn, mine)
            own_A, own_E = (a_A, a_E) if alone else (a_A[mine], a_E[mine])
            with _Watched(group.lease):
                outcome = group.block.decide(group.slots, own_A, own_E, uniforms)
            groups.append(SeatedGroup(group.lease, group.slots, outcome))
        return Seated(groups, x.rows, x.a_0)

    def act(self, x: Seated, draws: Draws) -> Array:
        """The policy, where it acts before nature."""
        chance = self.plan.policy.chance
        u = _PolicyUniforms(draws, chance)[0] if chance else None
        actions: list[Any] = []
        for group, mine in zip(x.groups, x.rows, strict=True):
            with _Watched(group.lease):
                actions.append(group.block.act(group.slots, None if u is None else u[mine]))
        if len(actions) == 1:
            return np.array(actions[0].reshape(len(actions[0]), -1))
        found = np.concatenate([a.reshape(len(a), -1) for a in actions])
        order = np.argsort(np.concatenate([*x.rows]), kind="stable")
        return found[order]


def seated(ids: IntArray, n: int) -> list[IntArray]:
    """Which episodes share a vector environment with n slots: no two in the same slot.

    >>> [rows.tolist() for rows in seated(np.array([3, 11, 4]), 8)]
    [[0, 2], [1]]
    """
    slots = np.asarray(ids, np.int64) % n
    turn = np.zeros(len(slots), np.int64)
    met: dict[int, int] = {}
    for row, slot in enumerate(slots.tolist()):
        turn[row] = met.get(slot, 0)
        met[slot] = int(turn[row]) + 1
    return [np.flatnonzero(turn == k) for k in range(int(turn.max(initial=-1)) + 1)]


class _PolicyUniforms:
    """Random numbers of the policy, the k-th action's for every episode: drawn in order."""

    def __init__(self, draws: Draws, chance: int) -> None:
        self.draws, self.chance = draws, chance
        self._drawn: list[FloatArray] = []
        self._none = np.empty((draws.n, 0))

    def __getitem__(self, k: int) -> FloatArray:
        if not self.chance:
            return self._none
        while len(self._drawn) <= k:
            self._drawn.append(self.draws.stream(AGENT, self.chance))
        return self._drawn[k]


class _Reader:
    """The numbers of one group's next action."""

    def __init__(self, drawn: _PolicyUniforms, rows: IntArray) -> None:
        self.drawn, self.rows, self.at = drawn, rows, -1

    def __call__(self) -> FloatArray:
        self.at += 1
        return self.drawn[self.at][self.rows]


class _Watched:
    """A vector environment that raised is not used again."""

    __slots__ = ("lease",)

    def __init__(self, lease: _Lease) -> None:
        self.lease = lease

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if kind is not None:
            self.lease.broken[0] = True


def _before(block: VectorBlock, slots: IntArray) -> VectorOutcome:
    """Before the first decision."""
    nobody = np.zeros(block.n, bool)
    answer = VectorAnswer(block.on.observation, np.zeros(block.n), nobody, nobody, block.info)
    k = len(slots)
    kind, margin, noise = np.zeros(k, np.int64), np.full(k, np.inf), block.last_noise(slots)
    return VectorOutcome(kind, margin, answer, noise, block.memory)


def _close(block: VectorBlock) -> None:
    with contextlib.suppress(Exception):  # nobody is left who could mend it
        block.sim.close()


def _close_all(free: list[VectorBlock]) -> None:
    while free:
        _close(free.pop())
