"""What nature does in a failure mode, in words: only what chance does not explain.

A mode's mean disturbance is looked at in every component of every decision, and summed over them.
The largest of so many numbers is large by chance alone, above all where a mode has few failures. A
push is named only where it is farther from 0 than the largest of as many would be with probability
1 − confidence (Bonferroni), its error being that of a weighted mean of independent episodes, those
that branched off each other taken as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from apeval.estimate.quantiles import normal_upper_quantile
from apeval.estimate.sample import Sample
from apeval.problem.types import BoolArray, FloatArray, IntArray
from apeval.run.failure_log import Failure

_WORTH_A_WORD = 0.5  # mean push, in standard deviations: less is small, however sure
_REACHED = 0.2  # of the mode's weight: decisions that fewer episodes reach say little
NOTHING = "no disturbance stands out"
NO_OUTCOME = "no outcome stands out"


def families_of(sample: Sample, hit: BoolArray) -> IntArray:
    """A number for each chosen episode, the same for those that branched off one root."""
    own = np.arange(int(hit.sum()))
    if sample.genealogy is None:
        return own
    it = sample.genealogy.take(np.flatnonzero(hit))
    label = np.stack([it.population, np.where(it.population < 0, own, it.family)], axis=1)
    return np.asarray(np.unique(label, axis=0, return_inverse=True)[1]).reshape(-1)


def typical_of(
    members: Sequence[Failure], w: FloatArray, family: IntArray, confidence: float
) -> tuple[str, Mapping[str, float] | None]:
    """What the weighted mean of the disturbances shows.

    Args:
        members: The mode's failures.
        w: Their weights, (n,), not all 0.
        family: Which belong together, (n,).
        confidence: With which no chance is named, over all that is looked at.

    Returns:
        The words, and the push as `Mode` has it.
    """
    if not members[0].z.shape[1]:
        return "", None
    w = w / w.max()  # whose squares are numbers still
    groups = [np.flatnonzero(family == name) for name in np.unique(family)]
    if members[0].p.shape[1]:
        return _outcome(members, w, groups, confidence), None
    mean, error = _means(members, w, groups)
    size = np.sqrt(len(mean))
    summed = mean.sum(axis=0) / size
    summed_error = _summed_error(members, w, groups, mean) / size
    limit = _limit(mean.size + len(summed), confidence)
    single = np.where(np.abs(mean) > limit * error, np.abs(mean), 0.0)
    steady = np.where(np.abs(summed) > limit * summed_error, np.abs(summed), 0.0)
    t, c = np.unravel_index(int(np.argmax(single)), mean.shape)
    s = int(np.argmax(steady))
    if max(single[t, c], steady[s]) < _WORTH_A_WORD:
        return NOTHING, None
    if single[t, c] >= 0.7 * steady[s]:
        push = {"decision": int(t) + 1, "component": int(c) + 1, "size": float(mean[t, c])}
        return f"decision {t + 1} pushed by {mean[t, c]:+.1f} σ{_in(c, mean)}", push
    push = {"decision": 0, "component": s + 1, "size": float(summed[s])}
    return (
        f"pushed steadily, by {mean[:, s].mean():+.2f} σ in each of {len(mean)} decisions "
        f"({summed[s]:+.1f} σ in sum){_in(s, mean)}",
        push,
    )


def _limit(looks: int, confidence: float) -> float:
    """Standard errors that the largest of so many means exceeds by chance with probability
    1 − confidence at the most."""
    return normal_upper_quantile((1.0 - confidence) / (2.0 * looks))


def _means(
    members: Sequence[Failure], w: FloatArray, groups: Sequence[IntArray]
) -> tuple[FloatArray, FloatArray]:
    """The mean disturbance at each decision and its standard error, (T, d) both. The error is
    never below that of disturbances as the nominal has them: few failures may lie close together
    by chance."""
    T = max(f.length for f in members)
    total, weight = np.zeros((T, members[0].z.shape[1])), np.zeros((T, 1))
    for f, w_f in zip(members, w, strict=True):
        total[: f.length] += w_f * f.z
        weight[: f.length] += w_f
    mean = total / np.maximum(weight, 1e-300)
    squares, spread = np.zeros_like(weight), np.zeros_like(total)
    for group in groups:
        apart, here = np.zeros_like(total), np.zeros_like(weight)
        for i in group:
            L = members[i].length
            apart[:L] += w[i] * (members[i].z - mean[:L])
            here[:L] += w[i]
        spread += apart**2
        squares += here**2
    error = np.sqrt(np.maximum(spread, squares)) / np.maximum(weight, 1e-300)
    present = weight[:, 0] > _REACHED * weight[0, 0]
    return mean[present], error[present]


def _summed_error(
    members: Sequence[Failure], w: FloatArray, groups: Sequence[IntArray], mean: FloatArray
) -> FloatArray:
    """The standard error of the means' sum over all decisions, (d,)."""
    T = len(mean)
    spread, squares = np.zeros(mean.shape[1]), 0.0
    for group in groups:
        apart = sum(
            w[i] * (members[i].z[:T] - mean[: members[i].length]).sum(axis=0) for i in group
        )
        spread += apart**2
        squares += float(w[group].sum()) ** 2 * T
    return np.asarray(np.sqrt(np.maximum(spread, squares)) / w.sum())


def _in(component: Any, mean: FloatArray) -> str:
    return f" in component {int(component) + 1}" if mean.shape[1] > 1 else ""


def _outcome(
    members: Sequence[Failure], w: FloatArray, groups: Sequence[IntArray], confidence: float
) -> str:
    """The outcome that comes more often than nominally, if one does."""
    K = members[0].p.shape[1]
    counts = [np.bincount(f.a_E.reshape(-1).astype(np.int64), minlength=K) for f in members]
    happened = sum(w_f * count for w_f, count in zip(w, counts, strict=True))
    nominal = sum(w_f * f.p.sum(axis=0) for w_f, f in zip(w, members, strict=True))
    decisions = float(sum(w_f * f.length for w_f, f in zip(w, members, strict=True)))
    often, usual = happened / decisions, nominal / decisions
    spread, chance = np.zeros(K), np.zeros(K)
    for group in groups:
        apart = sum(
            w[i] * (counts[i] - members[i].p.sum(axis=0) - members[i].length * (often - usual))
            for i in group
        )
        spread += apart**2
        variances = [(members[i].p * (1.0 - members[i].p)).sum(axis=0) for i in group]
        chance += sum(w[i] * np.sqrt(v) for i, v in zip(group, variances, strict=True)) ** 2
    error = np.sqrt(np.maximum(spread, chance)) / decisions
    excess = (often - usual) / np.sqrt(np.maximum(usual * (1.0 - usual), 1e-12))
    sure = often - usual > _limit(K, confidence) * error
    if not sure.any():
        return NO_OUTCOME
    k = int(np.argmax(np.where(sure, excess, -np.inf)))
    return f"outcome {k} in {often[k]:.0%} of decisions (nominally {usual[k]:.0%})"
