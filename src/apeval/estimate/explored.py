"""What learning saw of the failures, set against what the frozen stage produces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.estimate.sample import Sample
from apeval.problem.types import FloatArray, IntArray

_SHARE = 0.05  # of the explored probability: less is noise
_EXPECTED = 3.0  # episodes in the frozen stage: fewer may well be none
_ALIKE = 1e-9  # difference of log p/q
_FEWEST = 3  # explored failures: one or two are an accident


@dataclass(frozen=True)
class Explored:
    """The failures found while learning."""

    kind: IntArray
    log_weight: FloatArray
    """log of p/q, with q the law (or mixture of laws) that learning drew them from, (k,)."""
    log_frozen: FloatArray
    """log of p/q, with q the frozen proposal, (k,)."""
    episodes: int
    """Episodes that learning drew, failing or not."""

    @property
    def weight(self) -> FloatArray:
        """Each failure's part of the estimate."""
        w: FloatArray = np.exp(self.log_weight) / self.episodes
        return w

    @property
    def estimate(self) -> float:
        """Learning's own estimate: rough, and biased low where it adapted to what it saw."""
        return float(self.weight.sum())

    @property
    def standard_error(self) -> float:
        """Of `estimate`, as if the episodes were independent."""
        return float(np.sqrt((self.weight**2).sum()))


@dataclass(frozen=True)
class Missed:
    """Explored failures that the frozen proposal hardly produces."""

    failures: int
    share: float
    """Of the probability that learning saw."""
    expected: float
    """How many of their like the frozen stage had to expect."""


def missed(explored: Explored, sample: Sample) -> Missed | None:
    """The part of the explored failures that the frozen stage could easily pass over.

    A set H of failures with probability Σ_H w is drawn in n frozen episodes about
    n·Σ_H w·(q/p) times. H grows from the failures that the proposal underrates most; those that
    it rates alike, as π_E,gt does all, come in together.
    """
    w = explored.weight
    if len(w) < _FEWEST or not w.sum() > 0.0:
        return None
    order = np.argsort(-explored.log_frozen)
    share = np.cumsum(w[order]) / w.sum()
    drawn = np.exp(explored.log_weight - explored.log_frozen) / explored.episodes
    expected = sample.n * np.cumsum(drawn[order])
    count = np.arange(1, len(w) + 1)
    last_alike = np.append(np.diff(explored.log_frozen[order]) < -_ALIKE, True)
    hardly = (share >= _SHARE) & (expected < _EXPECTED) & (count >= _FEWEST)
    found = np.flatnonzero(hardly & last_alike)
    if len(found) == 0:
        return None
    last = int(found[-1])
    return Missed(last + 1, float(share[last]), float(expected[last]))


def unseen_kinds(explored: Explored, sample: Sample) -> list[int]:
    """Kinds of failure that learning met several times and the frozen stage never."""
    w = explored.weight
    return [
        int(kind)
        for kind in np.unique(explored.kind)
        if not (sample.kind == kind).any()
        and (explored.kind == kind).sum() >= _FEWEST
        and w[explored.kind == kind].sum() >= _SHARE * w.sum()
    ]
