"""Failure modes: kept failures that belong together, how likely, and what is typical of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.estimate.clusters import clusters
from apeval.estimate.interval import bounds, stratified
from apeval.estimate.sample import Sample
from apeval.estimate.share import share_of
from apeval.problem.types import FloatArray, IntArray
from apeval.run.failure_log import Failure, FailureLog
from apeval.run.typical_push import families_of, typical_of

_MOST = 6
_SEGMENTS = 6  # parts of an episode in which disturbances are added up
_END_STATE = 2.0**0.5  # spread given to end states: enough for `clusters` to look for groups


@dataclass(frozen=True)
class Mode:
    """A way to fail."""

    kind: str
    """The kind of failure."""
    failures: int
    """Failures of the frozen stage that belong to it, among those kept."""
    share: float
    """Its part of the failure probability."""
    share_interval: tuple[float, float]
    """Of `share`."""
    probability: float
    """Of failing in this mode."""
    interval: tuple[float, float]
    """Of `probability`."""
    typical: str
    """What nature does in it, in words."""
    push: Mapping[str, float] | None
    """The strongest mean disturbance: `decision` (from 1; 0: all of them together), `component`
    (from 1), `size` in nominal standard deviations; None for outcomes, and where no disturbance
    stands out from what chance makes of so many."""
    most_likely: Mapping[str, Any]
    """Replay record of its failure with the largest nominal density."""


def find_modes(log: FailureLog, sample: Sample, confidence: float) -> tuple[Mode, ...]:
    """The modes among the kept failures, the likeliest first."""
    if not log.kept:
        return ()
    part = sample.first(log.complete_to)
    label = _labels(log)
    position = np.array([f.position for f in log.kept])
    modes = []
    for j in range(int(label.max()) + 1):
        members = [f for f, mine in zip(log.kept, label == j, strict=True) if mine]
        hit = np.zeros(part.n, bool)
        hit[position[label == j]] = True
        w = part.weights[hit]
        if not (w > 0.0).any():
            continue
        share, share_interval = share_of(part, hit, confidence)
        typical, push = typical_of(members, w, families_of(part, hit), confidence)
        modes.append(
            Mode(
                kind=log.problem.kinds[members[0].kind - 1],
                failures=len(members),
                share=share,
                share_interval=share_interval,
                probability=stratified(part, part.weights * hit)[0],
                interval=bounds(part, hit, confidence),
                typical=typical,
                push=push,
                most_likely=log.record(members[_likeliest(members, part)]),
            )
        )
    return tuple(sorted(modes, key=lambda mode: -mode.share))


def _labels(log: FailureLog) -> IntArray:
    """Kinds of failure are separate; within a kind, groups that lie apart."""
    kind = np.array([f.kind for f in log.kept])
    names = np.unique(kind)
    label = np.zeros(len(kind), np.int64)
    count = 0
    for name in names:
        mine = np.flatnonzero(kind == name)
        x = _features([log.kept[i] for i in mine], log.problem.horizon)
        found = clusters(x, max(1, _MOST // len(names)))
        label[mine] = count + found
        count += int(found.max()) + 1
    return label


def _features(members: Sequence[Failure], horizon: int | None) -> FloatArray:
    """Disturbances summed over parts of the episode, with nominal variance 1. The end state only
    where there are no whitened disturbances: it jumps with the decision at which an episode ends,
    and would make a mode of every such decision."""
    if not members[0].z.shape[1]:
        return _standardised(np.array([np.asarray(f.s_end, np.float64) for f in members]))
    sums = []
    for f in members:
        T = horizon or f.length
        B = min(_SEGMENTS, T) if horizon else _SEGMENTS
        total = np.zeros((B, f.z.shape[1]))
        np.add.at(total, np.minimum(f.t * B // T, B - 1), f.z)
        sums.append((total / np.sqrt(max(T / B, 1.0))).ravel())
    return np.array(sums)


def _standardised(ends: FloatArray) -> FloatArray:
    spread = ends.std(axis=0)
    varies = spread > 0.0
    return np.asarray((ends - ends.mean(axis=0))[:, varies] / spread[varies] * _END_STATE)


def _likeliest(members: Sequence[Failure], sample: Sample) -> int:
    """The largest nominal density, in whitened coordinates where there are such: there episodes
    of different lengths can be compared."""
    density = [
        float(sample.log_p[f.position]) if f.p.shape[1] or not f.z.shape[1]
        else -0.5 * float((f.z**2).sum())
        for f in members
    ]  # fmt: skip
    return int(np.argmax(density))
