"""Episodes of the run once more, alone: are they what they were?

An episode is a function of the problem, the seed and its proposal. Where one that was simulated,
or recorded before an interruption, comes out otherwise when it is simulated again, the problem
keeps something between episodes, depends on its company, the clock or chance that has no address,
or the record is of another run. Then no weight is worth anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr, ndtri

from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray, IntArray
from apeval.simulate.adversary import Nominal, Situation, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.task import Task, Trouble, attempt

SECONDS, SHARE = 0.5, 0.01
"""What repeating may take: so many seconds, or this part of the run's time where that is more."""
_LEAST, _MOST = 2, 64  # episodes
_DECISIONS = 10  # of an episode from before the run
_PUSHES = (0.0, 0.0, 1.5, -1.5, 3.0, -3.0)  # standard deviations: failures and ends are met as well
_ROUNDING = 1e-5  # relative: a network in single precision gives 1e-7 at the first difference

Again = Callable[[Task], Episodes | Trouble]
"""Simulates a block."""


@dataclass(frozen=True)
class Kept:
    """An episode as it came back, and the block of one that repeats it."""

    task: Task
    episode: Episodes


@dataclass(frozen=True)
class _Pushed(Nominal):
    """π_E,gt with all its normal scores moved by so many standard deviations."""

    by: float

    def sample(self, now: Situation, u: FloatArray) -> Array:
        return now.law.sample(np.clip(ndtr(ndtri(u) + self.by), 1e-15, 1.0 - 1e-15))


def beginning(problem: Problem, key: IntArray) -> list[Kept]:
    """A few decisions of the problem as it is before a run, nominal and pushed, to be repeated
    after it."""
    found = []
    for k, by in enumerate(_PUSHES):
        task = Task(only(_Pushed(by) if by else Nominal()), k, k, 1, _DECISIONS)
        answer = attempt(problem, key, task)
        found += [Kept(task, answer)] if isinstance(answer, Episodes) else []
    return found


@dataclass
class Audit:
    """Keeps episodes from all parts of a run, failures and others, and repeats them."""

    first: list[Kept] = field(default_factory=list)
    """From before the run."""
    kept: list[Kept] = field(default_factory=list)
    _blocks: int = 0
    _stride: int = 1
    _decisions: int = 0

    def seen(self, task: Task, block: Episodes) -> None:
        """Keep a failure and another episode of a block; as a run grows, of every second block, of
        every fourth, …"""
        if self._blocks % self._stride == 0:
            self.kept += [_single(task, block, i) for i in _chosen(block)]
        self._blocks += 1
        self._decisions += block.steps
        if len(self.kept) > _MOST:
            self.kept = [it for k, it in enumerate(self.kept) if k % 4 < 2]
            self._stride *= 2

    def repeat(self, again: Again, seconds: float, most: int = _MOST) -> str | None:
        """Simulate kept episodes once more.

        Args:
            again: Simulates a block of one episode; a `Trouble` says nothing of repeatability.
            seconds: How long it may take, about; those from before the run, two others, and as
                many as make a hundredth of the run's decisions are repeated in any case: what is
                found must not depend on how busy the machine is.
            most: How many are repeated at the most.

        Returns:
            What came out otherwise, in words; None where nothing did.
        """
        ends = time.monotonic() + seconds
        least, repeated = len(self.first) + _LEAST, 0
        for number, it in enumerate([*self.first, *self._in_turn()[:most]]):
            few = number < least or repeated < SHARE * self._decisions
            if not few and time.monotonic() > ends:
                break
            repeated += it.episode.steps
            answer = again(it.task)
            if isinstance(answer, Trouble):
                continue
            differs = difference(it.episode, answer)
            if differs is not None:
                return f"episode {int(it.episode.ids[0])}: {differs}"
        return None

    def _in_turn(self) -> list[Kept]:
        """The last one, the first one, then those far from both, then those between."""
        n = len(self.kept)
        order = sorted(range(n), key=lambda k: (k not in (0, n - 1), _level(n - 1 - k), -k))
        return [self.kept[k] for k in order]


def _level(k: int) -> int:
    """How often a number can be halved; 0 first of all."""
    return -64 if k == 0 else -((k & -k).bit_length())


def _chosen(block: Episodes) -> list[int]:
    """The last failure, and the last other episode that came to its own end."""
    resolved = ~block.unresolved
    rows = [np.flatnonzero(wanted & resolved) for wanted in (block.failed, ~block.failed)]
    return [int(found[-1]) for found in rows if len(found)]


def _single(task: Task, block: Episodes, i: int) -> Kept:
    mine = np.zeros(block.n, bool)
    mine[i] = True
    return Kept(task.single(int(block.ids[i]) - task.first), block.take(mine))


def difference(one: Episodes, other: Episodes) -> str | None:
    """The first difference between two records of an episode, in causal order; None where there
    is none, or where it begins with rounding, which matrix products do by the size of the batch."""
    if not _equal(one.a_0, other.a_0):
        return None if _near(one.a_0, other.a_0) else "its start was drawn otherwise"
    rows = min(len(one.t), len(other.t))
    for t in range(rows):
        for name, what in (("s", "the state"), ("a_A", "the agent's action"),
                           ("a_E", "the disturbance")):  # fmt: skip
            a, b = getattr(one, name)[t], getattr(other, name)[t]
            if not _equal(a, b):
                near = _near(a, b, _sizes(one, name))
                return None if near else f"{what} at decision {t + 1} is another"
        a, b = (it.law.take(np.array([t])).log_prob(it.a_E[t : t + 1]) for it in (one, other))
        if not _equal(a, b):
            return None if _near(a, b) else f"the nominal density at decision {t + 1} is another"
    if len(one.t) != len(other.t):
        return f"it takes {len(other.t)} decisions, not {len(one.t)}"
    for name, what in _ENDS.items():
        a, b = getattr(one, name), getattr(other, name)
        if not _equal(a, b):
            near = _near(a, b, _sizes(one, "s")) if name == "s_end" else _near(a, b)
            return None if near else what
    return None


_ENDS = {
    "s_end": "its last state is another",
    "kind": "it ends otherwise",
    "ended_by_roulette": "it ends otherwise",
    "margin": "its margin is another",
}


def _equal(a: Array, b: Array) -> bool:
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f"))


def _sizes(it: Episodes, name: str) -> FloatArray:
    """How large each component gets in the episode: what rounding is small against. A component
    that is small beside another one, or zero just now, has a size of its own."""
    values = getattr(it, name)
    values = np.concatenate([values, it.s_end]) if name == "s" else values
    size: FloatArray = np.abs(values.astype(np.float64)).max(axis=0, initial=0.0)
    return size


def _near(a: Array, b: Array, size: FloatArray | None = None) -> bool:
    if a.shape != b.shape or a.dtype.kind != "f" or b.dtype.kind != "f":
        return False
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return False
    finite = np.isfinite(a)
    against = np.broadcast_to(np.abs(a) if size is None else size, a.shape)[finite]
    return bool(np.all(np.abs(a[finite] - b[finite]) <= _ROUNDING * np.maximum(against, 1e-12)))
