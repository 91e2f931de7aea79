"""Groups of failures that lie apart: k-means finds candidates, valleys between them decide."""

from __future__ import annotations

import numpy as np

from apeval.problem.types import BoolArray, FloatArray, IntArray

_CANDIDATES = 8
_DIRECTIONS = 3
_ROUNDS = 30
_FEWEST = 5  # members of a group
_DEPTH = 0.35  # density between two groups, relative to the thinner one's own: less is a valley
_DOUBT = 2.0  # points that might as well have lain between: few points make no valley
_VARIANCE = 1.5  # of a direction, relative to the nominal's 1: less cannot hold two groups


def clusters(x: FloatArray, most: int) -> IntArray:
    """Labels 0 … M−1 (M ≤ `most`) of n points; 0 is the largest group. All of it is a function of
    the points alone.

    Two candidates stay apart only if the points between their centres are few: a long or wide
    group that k-means cut into pieces grows together again.

    >>> x = np.concatenate([np.linspace(-5, -4, 40), np.linspace(4, 5, 20)])[:, None]
    >>> np.bincount(clusters(x, 6)).tolist()
    [40, 20]
    """
    n = len(x)
    if n < 2 * _FEWEST:
        return np.zeros(n, np.int64)
    y = _directions(x)
    label = _k_means(y, min(_CANDIDATES, n // _FEWEST)) if y.shape[1] else np.zeros(n, np.int64)
    while (pair := _next_merge(y, label, most)) is not None:
        label = np.where(label == pair[1], pair[0], label)
    names, label, count = np.unique(label, return_inverse=True, return_counts=True)
    rank = np.empty(len(names), np.int64)
    rank[np.argsort(-count, kind="stable")] = np.arange(len(names))
    return rank[label]


def _directions(x: FloatArray) -> FloatArray:
    """The few directions in which the points spread most, and more than one group would."""
    centred = x - x.mean(axis=0)
    _, size, axes = np.linalg.svd(centred, full_matrices=False)
    wide = size**2 / len(x) > _VARIANCE
    y: FloatArray = centred @ axes[wide][:_DIRECTIONS].T
    return y


def _k_means(y: FloatArray, k: int) -> IntArray:
    """Lloyd's iteration, started from points far apart from each other."""
    centre = y[[int(np.argmax((y * y).sum(axis=1)))]]
    while len(centre) < k:
        centre = np.vstack([centre, y[int(np.argmax(_squares(y, centre).min(axis=1)))]])
    label = np.zeros(len(y), np.int64)
    for _ in range(_ROUNDS):
        label = np.argmin(_squares(y, centre), axis=1)
        moved = np.array(
            [y[label == j].mean(axis=0) if (label == j).any() else c for j, c in enumerate(centre)]
        )
        if np.array_equal(moved, centre):
            break
        centre = moved
    return label


def _squares(y: FloatArray, centre: FloatArray) -> FloatArray:
    d: FloatArray = ((y[:, None, :] - centre) ** 2).sum(axis=2)
    return d


def _next_merge(y: FloatArray, label: IntArray, most: int) -> tuple[int, int] | None:
    """The pair of groups that is least apart, if it must be merged: because no valley divides it,
    a group is too small, or there are too many groups."""
    names, count = np.unique(label, return_counts=True)
    if len(names) == 1:
        return None
    centre = np.array([y[label == j].mean(axis=0) for j in names])
    pairs = [(a, b) for a in range(len(names)) for b in range(a)]
    small = [p for p in pairs if min(count[p[0]], count[p[1]]) < _FEWEST]
    if small:
        a, b = min(small, key=lambda p: float(((centre[p[0]] - centre[p[1]]) ** 2).sum()))
        return int(names[b]), int(names[a])
    depth = {(a, b): _depth(y, label == names[a], label == names[b]) for a, b in pairs}
    a, b = max(depth, key=lambda p: depth[p])
    if depth[a, b] < _DEPTH and len(names) <= most:
        return None
    return int(names[b]), int(names[a])


def _depth(y: FloatArray, one: BoolArray, other: BoolArray) -> float:
    """Density halfway between two groups' centres, relative to the thinner of the densities
    around the centres, on the line through them; about 1 or more where there is no valley."""
    c, e = y[one].mean(axis=0), y[other].mean(axis=0)
    line = e - c
    length = float(np.sqrt(line @ line))
    if length == 0.0:
        return np.inf
    u = (y[one | other] - c) @ line / length**2  # 0 at one centre, 1 at the other
    near = [float((np.abs(u - at) < 0.15).sum()) for at in (0.0, 0.5, 1.0)]
    return (near[1] + _DOUBT) / max(min(near[0], near[2]), 1.0)
