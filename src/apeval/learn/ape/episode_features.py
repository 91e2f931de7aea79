"""How a learner sees episodes: whitened decisions, scaled states, time bins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.whitened import can_whiten, to_z
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray, IntArray
from apeval.simulate.adversary import Situation
from apeval.simulate.episodes import Episodes

_FARTHEST = 4.0  # scaled states beyond this count as this far: feedback never runs away
_FEATURES = 12  # components of the state that feedback may use
MOST_TIMES = 200
"""Time bins at the most."""


@dataclass
class EpisodeFeatures:
    """Scales found in the first episodes; fixed from then on."""

    mean: FloatArray
    scale: FloatArray
    columns: IntArray
    """Which components of the state are features."""
    times: int
    """Decisions numbered from here on are in the last time bin."""
    learns_start: bool
    _last: tuple[Episodes, DecisionRows] | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_last": None}  # episodes do not travel with a proposal

    @staticmethod
    def empty() -> EpisodeFeatures:
        """Before anything was seen."""
        return EpisodeFeatures(np.zeros(0), np.ones(0), np.zeros(0, np.int64), 1, False)

    def features(self, s: Array) -> FloatArray:
        """(n, d_s) to (n, f)."""
        x = (s[:, self.columns] - self.mean) / self.scale
        return np.clip(x, -_FARTHEST, _FARTHEST)

    def time(self, t: IntArray) -> IntArray:
        """The decision's time bin."""
        return np.minimum(t, self.times - 1)

    def rows(self, episodes: Episodes) -> DecisionRows:
        """Whole episodes; remembered, because every part of a mixture asks for the same ones."""
        if self._last is None or self._last[0] is not episodes:
            e, p = decisions(episodes.situation, episodes.a_E)
            z_0 = np.zeros((episodes.n, 0))
            if self.learns_start and episodes.law_0 is not None:
                z_0 = to_z(episodes.law_0, episodes.a_0)
            rows = DecisionRows(
                e, p, self.features(episodes.s), self.time(episodes.t), episodes.episode,
                episodes.n, z_0,
            )  # fmt: skip
            self._last = (episodes, rows)
        return self._last[1]


def decisions(now: Situation, a_E: Array) -> tuple[FloatArray, FloatArray]:
    """(e, p) of `DecisionRows`."""
    if now.law.discrete:
        p = now.law.outcome_probabilities()
        p = np.broadcast_to(p, (len(a_E), p.shape[1]))
        return a_E.astype(np.float64), np.ascontiguousarray(p)
    return to_z(now.law, a_E), np.zeros((len(a_E), 0))


def find_features(problem: Problem, seen: Episodes) -> EpisodeFeatures:
    """Scales and times from the first episodes."""
    s = seen.s.astype(np.float64)
    mean, scale = s.mean(axis=0), s.std(axis=0)
    moves = scale > 1e-9 * (1.0 + np.abs(mean))
    columns = np.flatnonzero(moves)[:_FEATURES]
    times = 1
    if problem.horizon is not None:
        times = int(np.clip(np.quantile(seen.length, 0.95), 1, min(problem.horizon, MOST_TIMES)))
    learns_start = problem.initial is not None and can_whiten(problem.initial)
    return EpisodeFeatures(mean[columns], scale[columns], columns, times, learns_start)
