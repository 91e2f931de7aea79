"""Samples whose episodes branch off each other: which belong together, and what that does to the
variance.

A population starts with N independent episodes, its roots. In a round the K' of M survivors that
stand in for the killed are drawn from them uniformly, N' = M + K' go on, and every weight is
multiplied by M/N'. Two of the N' that descend from different survivors are as good as independent,
and there are fewer of these pairs than of all by the factor 1 − K'/N'². So, with D the product of
1/(1 − 1/N) and of all 1/(1 − K'/N'²), the sum over pairs of *different roots'* descendants,

    D · Σ_{a ≠ b} F_a F_b,   F_a = the weights of the failures in the family of root a,

has the expectation v², as (Σ F_a)² has v² + Var, and their difference is an unbiased estimate of
the variance from a single population (Lee and Whiteley, 2018, for particle filters; Du and Guyader,
2021, for adaptive levels). Without any round it is that of Monte Carlo, p(1 − p)/(N − 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from apeval.problem.types import Array, BoolArray, FloatArray, IntArray

ALONE = -1
"""The population and the family of an episode that nothing branched off."""


@dataclass(frozen=True)
class Genealogy:
    """The descent of n episodes."""

    population: IntArray
    """Which population each is of, (n,); −1: of none."""
    family: IntArray
    """The number of the root that it descends from, (n,), unique within its population."""
    root: BoolArray
    """Whether it is a root, drawn whole from the nominal, (n,)."""
    log_pairs: FloatArray
    """log D when it left its population, (n,)."""
    copied: IntArray
    """Decisions that were copied and not simulated, (n,)."""

    def take(self, rows: Array | slice) -> Genealogy:
        """The chosen episodes."""
        return Genealogy(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @staticmethod
    def alone(n: int) -> Genealogy:
        """Independent episodes."""
        none = np.full(n, ALONE)
        return Genealogy(none, none, np.zeros(n, bool), np.zeros(n), np.zeros(n, np.int64))

    @staticmethod
    def join(parts: Sequence[Genealogy]) -> Genealogy:
        """One below the other; populations keep apart."""
        names = [f.name for f in fields(Genealogy)]
        columns = {name: [getattr(part, name) for part in parts] for name in names}
        shift = 0
        for k, part in enumerate(parts):
            own = part.population
            columns["population"][k] = np.where(own == ALONE, ALONE, own + shift)
            shift += int(own.max(initial=ALONE)) + 1
        return Genealogy(**{name: np.concatenate(it) for name, it in columns.items()})

    def families(self, parts: FloatArray) -> tuple[IntArray, FloatArray]:
        """The population of each family, and the sum of its parts; only families that have any."""
        held = parts != 0.0
        label = np.stack([self.population[held], self.family[held]], axis=1)
        names, row = np.unique(label, axis=0, return_inverse=True)
        sums = np.bincount(row.reshape(-1), parts[held], len(names)).astype(np.float64)
        return names[:, 0], sums

    def variance(self, parts: FloatArray) -> float:
        """The variance of Σ parts (≥ 0, 0 for episodes of no population), never below that of an
        ideal score: splitting on v itself has Σ K'/N'² of the square."""
        total = 0.0
        population, size = self.families(parts)
        roots = np.bincount(self.population[self.root])
        for r in np.unique(population):
            mine = self.population == r
            mass = float(parts[mine].sum())
            log_pairs = float(parts[mine] @ self.log_pairs[mine]) / mass
            D = float(np.exp(log_pairs))
            squares = float((size[population == r] ** 2).sum())
            ideal = max(D - 1.0 - 1.0 / roots[r], 0.0) * mass**2
            total += max(D * squares - (D - 1.0) * mass**2, ideal)
        return total
