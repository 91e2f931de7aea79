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

_MOST = 6
_SEGMENTS = 6  # parts of an episode in which disturbances are added up
_STANDS_OUT = 0.5  # mean push, in standard deviations, that is worth a word
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
    stands out."""
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
        typical, push = _typical(members, w)
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


def _typical(members: Sequence[Failure], w: FloatArray) -> tuple[str, Mapping[str, float] | None]:
    """What the weighted mean of the disturbances shows."""
    if not members[0].z.shape[1]:
        return "", None
    if members[0].p.shape[1]:
        return _typical_outcome(members, w), None
    T = max(f.length for f in members)
    total, weight = np.zeros((T, members[0].z.shape[1])), np.zeros((T, 1))
    for f, w_f in zip(members, w, strict=True):
        total[: f.length] += w_f * f.z
        weight[: f.length] += w_f
    mean = total / np.maximum(weight, 1e-300)
    present = weight[:, 0] > 0.2 * weight[0, 0]  # decisions that few episodes reach say little
    mean = mean[present]
    t, c = np.unravel_index(int(np.argmax(np.abs(mean))), mean.shape)
    summed = mean.sum(axis=0) / np.sqrt(len(mean))
    s = int(np.argmax(np.abs(summed)))
    if max(abs(mean[t, c]), abs(summed[s])) < _STANDS_OUT:
        return "no disturbance stands out", None
    if abs(mean[t, c]) >= 0.7 * abs(summed[s]):
        push = {"decision": int(t) + 1, "component": int(c) + 1, "size": float(mean[t, c])}
        return f"decision {t + 1} pushed by {mean[t, c]:+.1f} σ{_in(c, mean)}", push
    push = {"decision": 0, "component": s + 1, "size": float(summed[s])}
    return (
        f"pushed steadily, by {mean[:, s].mean():+.2f} σ in each of {len(mean)} decisions "
        f"({summed[s]:+.1f} σ in sum){_in(s, mean)}",
        push,
    )


def _in(component: Any, mean: FloatArray) -> str:
    return f" in component {int(component) + 1}" if mean.shape[1] > 1 else ""


def _typical_outcome(members: Sequence[Failure], w: FloatArray) -> str:
    happened = nominal = np.zeros(members[0].p.shape[1])
    decisions = 0.0
    for f, w_f in zip(members, w, strict=True):
        outcome = f.a_E.reshape(-1).astype(np.int64)
        happened = happened + w_f * np.bincount(outcome, minlength=f.p.shape[1])
        nominal = nominal + w_f * f.p.sum(axis=0)
        decisions += w_f * f.length
    often, usual = happened / decisions, nominal / decisions
    k = int(np.argmax((often - usual) / np.sqrt(np.maximum(usual * (1.0 - usual), 1e-12))))
    return f"outcome {k} in {often[k]:.0%} of decisions (nominally {usual[k]:.0%})"
