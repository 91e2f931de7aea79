"""Algorithm 2: v_ψ with two time scales, on raw or on log values."""

from __future__ import annotations

import numpy as np

from apeval.problem.types import FloatArray, IntArray
from apeval_paper.methods.ape_scalable.config import ApeScalableConfig
from apeval_paper.methods.ape_scalable.gp import GaussianProcess
from apeval_paper.methods.ape_scalable.history import Transitions, join
from apeval_paper.methods.ape_scalable.network import Network
from apeval_paper.methods.ape_scalable.representatives import average, choose, nearest

_WINDOW = 6_000  # transitions whose targets are recomputed; older ones are forgotten
_LONGEST = 64  # decisions with a level of their own
_SWEEPS = 10  # of TD over the buffer per update, on log values
_STEP = 3.0  # of log v at the most, per sweep
_SPREAD = 3.0  # prior standard deviation of log v
_EXACT = 0.05  # smallest squared variation of a target: even a good π_E leaves some
_LEAST_WEIGHT = 1e-6
_TINY = 1e-300


class ValueModel:
    """v_ψ and its data. Data are appended at every step; every n_ψ steps the TD targets of the
    whole buffer are recomputed with the present v_ψ and the stored ρ, and ψ is updated.

    On log values v(s) = c_t · exp m(s), with the model in the place of m: a regression with a
    logarithmic link, for a target 0 has no logarithm. Each sweep regresses m + log(Σ target / Σ v)
    (linear below 0) with noise φ_t / Σ v, the sums over what a datum stands for: iteratively
    reweighted least squares for targets of variance φ_t · v. The level c_t makes TD balance at
    each decision, Σ v(s_i) = Σ ρ_i [r_i + v(s'_i)].
    """

    def __init__(self, config: ApeScalableConfig, d: int, horizon: int, seed: int) -> None:
        self.config, self.log, self.horizon = config, config.value_space == "log", horizon
        scales = np.ones(d)
        if horizon:
            scales[-1] = float(horizon) ** 2  # one decision is one length scale
        w, sigma = (_SPREAD, 1.0) if self.log else (1.0, 0.1)
        self.gp = GaussianProcess(scales, w, sigma, fixed_size=self.log)
        self.network = Network(d, seed) if config.value == "network" else None
        self.data: Transitions | None = None
        self._inside: IntArray = np.empty(0, np.int64)  # rows of D that are in D_GP
        self._level = np.ones(min(max(horizon, 1), _LONGEST) + 1)
        self._dispersion = np.ones(len(self._level))
        self.asked = self.outside = 0
        self.diverged = ""
        """Why v_ψ is no longer updated; empty while it is."""
        self._due = config.n_psi

    def __call__(self, x: FloatArray, t: IntArray) -> FloatArray:
        """v_ψ(s), a probability: predictions outside [0, 1] are moved to its ends, and counted."""
        v = self.unclipped(x, t)
        self.asked += v.size
        self.outside += int(((v < 0.0) | (v > 1.0)).sum())
        return np.clip(v, 0.0, 1.0)

    def unclipped(self, x: FloatArray, t: IntArray) -> FloatArray:
        """What the model predicts, which need not be a probability."""
        return self._decode(self._mean(x), t)

    def observe(self, new: Transitions) -> None:
        """Append data, and update ψ when n_ψ steps have passed (Algorithm 2). A model that is no
        longer finite is left as it is, and `diverged` says why."""
        if self.diverged:
            return
        try:
            self._observe(new)
        except FloatingPointError as trouble:
            self.diverged = str(trouble)

    def _observe(self, new: Transitions) -> None:
        self.data = new if self.data is None else join(self.data, new)
        if self.network is None:
            rows = np.arange(len(self.data) - len(new), len(self.data))
            if self.config.representatives == "early-stop":
                rows = rows[: max(0, self.config.gp_budget - len(self._inside))]
            if len(rows):
                chosen = self.data.take(rows)
                self.gp.append(chosen.x, *self._single(chosen))
                self._inside = np.concatenate([self._inside, rows])
        self._due -= len(new)
        if self._due <= 0:
            self._due = self.config.n_psi
            self.update()

    def targets(self, rows: Transitions) -> FloatArray:
        """Eq. scalable_TD_target: ρ · (r + v_ψ(s'))."""
        v_next = np.where(rows.open, self(rows.x_next, rows.t_next), 0.0)
        target: FloatArray = rows.rho * (rows.r + v_next)
        return target

    def update(self) -> None:
        """New targets for the whole buffer, and gradient steps on ψ."""
        if self.data is None:
            return
        self._forget()
        if self.network is not None:
            self._train(self.network, self.data)
        elif self.config.representatives == "early-stop":
            self._retarget(self.data)
        else:
            self._represent(self.data)
        if self.network is None:
            self.gp.descend(self.config.gp_steps, self.config.alpha_v, self.config.l1)
            if self.log:  # a new ψ is another m
                self._balance(self.data, self._mean(self.data.x), self._mean(self.data.x_next))

    # -- the three ways to hold the data ---------------------------------------------------------

    def _train(self, network: Network, data: Transitions) -> None:
        for _ in range(_SWEEPS if self.log else 1):
            self._balance(data, self._mean(data.x), self._mean(data.x_next))
            network.train(data.x, *self._single(data))
        self._balance(data, self._mean(data.x), self._mean(data.x_next))

    def _retarget(self, data: Transitions) -> None:
        """The first data, as printed, with new targets."""
        rows = data.take(self._inside)
        for _ in range(_SWEEPS if self.log else 1):
            self._balance(data, self._mean(data.x), self._mean(data.x_next))
            self.gp.set_data(rows.x, *self._single(rows), self._doubt(rows))

    def _represent(self, data: Transitions) -> None:
        """Representatives of all data, each with the mean target of those nearest to it."""
        gp, kept = self.gp, self._inside
        mean, mean_next = gp.mean(data.x), gp.mean(data.x_next)
        doubt = self._doubt(data)
        if len(kept) > self.config.gp_budget:
            kept = kept[choose(gp.kernel(data.x[kept], data.x[kept]), self.config.gp_budget)]
        self._inside, n = kept, len(kept)
        X = data.x[kept]
        near, near_next = gp.kernel(data.x, X), gp.kernel(data.x_next, X)
        owner = nearest(near)
        owner[kept] = np.arange(n)
        extra = average(owner, doubt, n)[0]
        for _ in range(_SWEEPS if self.log else 1):
            self._balance(data, mean, mean_next)
            target = self._targets_from(data, mean_next)
            gp.set_data(X, *self._response(data, mean, target, owner, n), extra)
            mean, mean_next = near @ gp.weights(), near_next @ gp.weights()

    # -- log values ------------------------------------------------------------------------------

    def _decode(self, mean: FloatArray, t: IntArray) -> FloatArray:
        """v from what the model predicts."""
        if not self.log:
            return mean
        v: FloatArray = self._level[self._group(t)] * np.exp(np.clip(mean, -50.0, 50.0))
        return v

    def _single(self, rows: Transitions) -> tuple[FloatArray, FloatArray]:
        """Response and weight row by row."""
        each = np.arange(len(rows))
        return self._response(rows, self._mean(rows.x), self.targets(rows), each, len(rows))

    def _response(
        self, rows: Transitions, mean: FloatArray, target: FloatArray, owner: IntArray, n: int
    ) -> tuple[FloatArray, FloatArray]:
        """What the model regresses for each of n owners of rows, and with which weight."""
        if not self.log:
            return average(owner, target, n)
        v = self._decode(mean, rows.t)
        all_v, all_targets = np.bincount(owner, v, n), np.bincount(owner, target, n)
        excess = all_targets / np.maximum(all_v, _TINY) - 1.0
        step = np.where(excess > 0.0, np.log1p(np.maximum(excess, 0.0)), excess)
        weight = np.bincount(owner, v / self._dispersion[self._group(rows.t)], n)
        y: FloatArray = average(owner, mean, n)[0] + np.minimum(step, _STEP)
        return y, np.maximum(weight, _LEAST_WEIGHT)

    def _targets_from(self, rows: Transitions, mean_next: FloatArray) -> FloatArray:
        """Eq. scalable_TD_target from predictions that are at hand."""
        v_next = np.clip(self._decode(mean_next, rows.t_next), 0.0, 1.0)
        target: FloatArray = rows.rho * (rows.r + np.where(rows.open, v_next, 0.0))
        return target

    def _balance(self, data: Transitions, mean: FloatArray, mean_next: FloatArray) -> None:
        """c_t and φ_t of every decision, from the last to the first."""
        if not self.log:
            return
        shape, group = np.exp(np.clip(mean, -50.0, 50.0)), self._group(data.t)
        for g in range(len(self._level) - 1, -1, -1):
            mine = group == g
            if mine.any():
                target = self._targets_from(data.take(mine), mean_next[mine])
                level = self._level[g] = max(float(target.sum() / shape[mine].sum()), _TINY)
                v = level * shape[mine]
                phi = float(np.square(target - v).sum() / v.sum())
                self._dispersion[g] = max(phi, _EXACT * float(v.mean()), _TINY)

    def _doubt(self, rows: Transitions) -> FloatArray:
        """Noise that v_ψ's own predictive variance at s' adds to a target."""
        if not self.config.uncertainty:
            return np.zeros(len(rows))
        factor = np.ones(len(rows)) if self.log else rows.rho**2
        return np.where(rows.open, factor * self.gp.variance(rows.x_next), 0.0)

    def _mean(self, x: FloatArray) -> FloatArray:
        return self.gp.mean(x) if self.network is None else self.network.mean(x)

    def _group(self, t: IntArray) -> IntArray:
        """Decisions share one level where time is not in the state."""
        if not self.horizon:
            return np.zeros(len(t), np.int64)
        return np.minimum(t, len(self._level) - 1)

    def _forget(self) -> None:
        """Drop the oldest rows beyond the window, but none that is in D_GP."""
        if self.data is None or len(self.data) <= _WINDOW:
            return
        keep = np.arange(len(self.data)) >= len(self.data) - _WINDOW
        keep[self._inside] = True
        self._inside = np.cumsum(keep)[self._inside] - 1
        self.data = self.data.take(keep)
