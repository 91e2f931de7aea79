"""Means and spreads by decision number: of the nominal law, and of what was drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.problem.laws import Law
from apeval.problem.types import BoolArray, FloatArray, IntArray

_MOST = 60  # points along an episode; decisions are taken together beyond
FEWEST = 5.0
"""Episodes, in effect: a mean of fewer says little."""
_SITUATIONS = 32  # of each group, in which the nominal is looked at


@dataclass(frozen=True)
class Decisions:
    """Rows of episodes, by decision number."""

    label: IntArray
    """Row → group, (N,)."""
    x: FloatArray
    """Decision number of each group, from 1, (G,)."""
    width: int
    """Decisions taken together."""

    @staticmethod
    def of(t: IntArray) -> Decisions:
        """Groups of the rows with decision numbers t."""
        width = -(-(int(t.max()) + 1) // _MOST)
        groups = int(t.max()) // width + 1
        return Decisions(
            t // width, width * np.arange(groups, dtype=np.float64) + (width + 1) / 2, width
        )

    def when(self, g: int) -> str:
        """A group in words."""
        name = "decision" if self.width == 1 else "decisions near"
        return f"{name} {self.x[g]:.0f}"

    def enough(self, w: FloatArray) -> BoolArray:
        """Groups in which the weighted rows are enough, (G,); all of them where none is."""
        total, squares = (np.bincount(self.label, v, len(self.x)) for v in (w, w * w))
        keep = total**2 >= FEWEST * self.width * np.maximum(squares, 1e-300)
        return np.asarray(keep if keep.any() else np.ones(len(self.x), bool))

    def error(self, w: FloatArray) -> FloatArray:
        """The standard error of a mean of the weighted rows, for values of spread 1, (G,)."""
        total, squares = (np.bincount(self.label, v, len(self.x)) for v in (w, w * w))
        return np.asarray(np.sqrt(squares) / np.maximum(total, 1e-300))

    def mean(self, values: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weighted mean and spread of (N, d) values, each (G, d)."""
        n, d = len(self.x), values.shape[1]
        total = np.bincount(self.label, w, n)[:, None]

        def average(v: FloatArray) -> FloatArray:
            sums = np.stack([np.bincount(self.label, w * v[:, j], n) for j in range(d)], axis=1)
            return np.asarray(sums / total)

        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            mean = average(values)
            return mean, np.sqrt(average((values - mean[self.label]) ** 2))

    def nominal(self, law: Law, d: int) -> tuple[FloatArray, FloatArray]:
        """Mean and spread of the nominal over some of the situations of each group, (G, d)."""
        means, spreads = [], []
        for g in range(len(self.x)):
            rows = np.flatnonzero(self.label == g)
            rows = rows[:: max(1, len(rows) // _SITUATIONS)][:_SITUATIONS]
            mean, sd = law.take(rows).moments(len(rows), d, g)
            means.append(mean.mean(axis=0))
            spreads.append(np.sqrt((sd**2).mean(axis=0) + mean.var(axis=0)))
        return np.array(means), np.array(spreads)
