"""v_ψ by dynamic programming: fitted backwards, time after time (Eq. scalable_TD_target)."""

from __future__ import annotations

import numpy as np

from apeval.problem.types import BoolArray, FloatArray, IntArray
from apeval_paper.methods.ape_scalable.logistic_gp import LogisticGP
from apeval_paper.methods.ape_scalable.memory import Remembered

_ROWS = 50  # transitions of a time bin at the least
_BINS = 32
_SWEEPS = 3  # over a bin that leads to itself


class BackwardValues:
    """One `LogisticGP` per time bin. From the last bin to the first, targets ρ·(r + v(s')) are made
    with the v of the bins after it and regressed with the weights W of the decisions before: then
    Σ W·v(s) = Σ W·ρ·(r + v(s')) at every time, so that no error of v is carried back."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.v_0 = float("nan")
        self._edges: IntArray = np.zeros(1, np.int64)
        self._models: list[LogisticGP] = []

    def fit(self, x: FloatArray, rows: Remembered) -> FloatArray:
        """Fit to remembered transitions with inputs x, (N, d); returns log(r + v(s')), (N,)."""
        self._edges = time_bins(rows.t)
        group, N = self.bins(rows.t), len(rows)
        self._models = [LogisticGP(self.budget) for _ in self._edges]
        following = np.minimum(np.arange(N) + 1, N - 1)
        log_v = np.full(N, -np.inf)
        with np.errstate(divide="ignore"):
            log_r = np.log(rows.r)
        gain = log_r.copy()
        rho, W = np.exp(rows.own_log_rho), np.exp(rows.own_log_W - rows.own_log_W.max())
        for g in range(len(self._models) - 1, -1, -1):
            mine = group == g
            learn: BoolArray = mine & rows.known
            itself = bool((group[following][mine & rows.open] == g).any())
            for _ in range(_SWEEPS if itself else 1):
                gain[mine] = np.where(rows.open, log_v[following], log_r)[mine]
                model = self._models[g]
                if learn.any():
                    model.fit(x[learn], (rho * np.exp(gain))[learn], W[learn])
                log_v[mine] = model.log_v(x[mine])
        first = rows.known & (rows.t == 0)
        if first.any():
            self.v_0 = float(np.average((rho * np.exp(gain))[first], weights=W[first]))
        return gain

    def log_v(self, x: FloatArray, t: IntArray) -> FloatArray:
        """log v_ψ(s), (n,); −∞ where no failure was ever seen to follow."""
        found, group = np.full(len(x), -np.inf), self.bins(t)
        for g, model in enumerate(self._models):
            mine = group == g
            if mine.any():
                found[mine] = model.log_v(x[mine])
        return found

    def bins(self, t: IntArray) -> IntArray:
        """The time bin of each decision number."""
        return np.searchsorted(self._edges, t, side="right") - 1


def time_bins(t: IntArray) -> IntArray:
    """First decision of each bin: single decisions where there are rows enough.

    >>> time_bins(np.repeat([0, 1, 2, 3], [100, 80, 30, 25])).tolist()
    [0, 1, 2]
    """
    count, edges, held = np.bincount(t), [0], 0
    least = max(_ROWS, len(t) // _BINS)
    for k, n in enumerate(count):
        left = count[k:].sum()
        if held >= least and left >= least:
            edges.append(k)
            held = 0
        held += int(n)
    return np.array(edges, np.int64)
