"""A potential u(x, t) whose slope, through what disturbances move, pushes: m = J(x)ᵀ ∇u(x⁺, t+1).

π_E* ∝ π_E,gt · v(s') with v = exp u is, to first order, a Gaussian with this mean. So what few
failures have to teach is one scalar function of state and time, instead of an answer of every
channel; channels that do not move the state are left alone, however many there are. The mean is
linear in the coefficients of u: the likelihood of failing paths is one linear regression.

Time is that of the bins: where episodes are longer than the last bin says, all that is beyond it
counts as the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.gaussian_part import GaussianPart
from apeval.learn.ape.local_model import WAVES, LocalModel, frequencies, pairs
from apeval.problem.types import FloatArray, IntArray

_KNOTS = 5  # of u in time, at equal distances of the logarithm of the time to go
_FREE = (0.02, 1.0)  # share of the prior that does not hold knots together
_PENALTIES = 10.0 ** np.arange(-4.0, 3.1, 0.5)
_LONGEST = 4.0  # standard deviations that a push may have
_NUMBERS = 4_000_000  # numbers at a time, so that memory is bounded


def hats(times: int) -> FloatArray:
    """Piecewise linear functions of the logarithm of the time to go, (times + 1, knots)."""
    left = np.log1p(times - np.arange(times + 1.0))
    knots = np.linspace(0.0, left[0], _KNOTS)
    found: FloatArray = np.maximum(0.0, 1.0 - np.abs(left[:, None] - knots) / (knots[1] - knots[0]))
    return found


def _blocks(n: int, width: int) -> list[slice]:
    """Rows with so many numbers each, a block at a time."""
    size = max(1, _NUMBERS // max(width, 1))
    return [slice(first, first + size) for first in range(0, n, size)]


@dataclass(frozen=True, eq=False)
class Potential:
    """u(x, t) = hat(t) · Θ · features(x) and the model through which it pushes."""

    model: LocalModel
    theta: FloatArray
    """(times + 1, features)."""

    def mean(self, x: FloatArray, t: IntArray) -> FloatArray:
        """Jᵀ ∇u, (n, d), no longer than `_LONGEST`."""
        ahead, sine = self.model.answers(x)
        push = np.empty((len(x), len(self.model.B)))
        for at in _blocks(len(x), self.model.B[:, :, 0].size):
            push[at] = self.model.along(x[at], self._slope(ahead[at], sine[at], t[at]))
        length = np.sqrt((push * push).sum(axis=1, keepdims=True))
        return np.asarray(push * np.minimum(1.0, _LONGEST / np.maximum(length, 1e-12)))

    def _slope(self, ahead: FloatArray, sine: FloatArray, t: IntArray) -> FloatArray:
        """∇u, (n, f)."""
        f = ahead.shape[1]
        i, j = pairs(f)
        theta = self.theta[np.minimum(t + 1, len(self.theta) - 1)]
        slope: FloatArray = theta[:, :f].copy()
        for k, (a, b) in enumerate(zip(i, j, strict=True), f):
            slope[:, a] += theta[:, k] * ahead[:, b]
            slope[:, b] += theta[:, k] * ahead[:, a]
        slope -= (theta[:, f + len(i) :] * sine) @ frequencies(f)[0].T
        return slope


@dataclass(frozen=True, eq=False, kw_only=True)
class Steered(GaussianPart):
    """A part η of the push that the potential gives."""

    potential: Potential
    eta: float = 1.0
    asks_again: ClassVar[bool] = True

    def mean(self, x: FloatArray, t: IntArray) -> FloatArray:
        return self.eta * self.potential.mean(x, t)

    def scaled(self, eta: float) -> Steered:
        return replace(self, eta=eta * self.eta)


@dataclass(frozen=True)
class FittedPotential:
    """A potential, the log of the odds for it against no push at all, and the number of parameters
    that the data decided."""

    potential: Potential
    evidence: float
    dof: float


def _gradients(model: LocalModel, x: FloatArray) -> FloatArray:
    """Jᵀ of every feature's slope, (n, d, features)."""
    ahead, J = model.ahead(x), model.moved(x)
    i, j = pairs(x.shape[1])
    frequency, phase = frequencies(x.shape[1])
    square = J[:, :, i] * ahead[:, None, j] + J[:, :, j] * ahead[:, None, i]
    wave = -np.sin(ahead @ frequency + phase)[:, None, :] * (J @ frequency)
    return np.concatenate([J, square, wave], axis=2)


def fit_potential(
    model: LocalModel, rows: DecisionRows, W: FloatArray, times: int, noise: float
) -> FittedPotential:
    """The potential under which decisions are likeliest, by evidence.

    Args:
        model: How the state answers to disturbances.
        rows: The decisions.
        W: Their weights, (N,).
        times: Time bins.
        noise: Variance of what a push leaves unexplained.

    Returns:
        The potential, empty where the evidence asks for nothing.
    """
    hat = hats(times)
    G, g = _normal_equations(model, rows, W, hat)
    K, F, _, _ = G.shape
    G, g = G.reshape(K * F, K * F), g.reshape(K * F)
    scale = np.sqrt(np.tile(np.diag(G).reshape(K, F).sum(axis=0), K)) + 1e-9
    G, g = G / scale[:, None] / scale / noise, g / scale / noise
    step = np.diff(np.eye(K), axis=0)
    rough = np.kron(step.T @ step, np.eye(F))
    plain = np.flatnonzero(np.tile(np.arange(F) < F - WAVES, K))
    best, theta, dof = -np.inf, np.zeros(K * F), 0.0
    for keep in (plain, np.arange(K * F)):
        for free in _FREE:
            prior = free * np.eye(K * F) + (1.0 - free) * rough
            L = np.linalg.inv(np.linalg.cholesky(prior[np.ix_(keep, keep)]))
            e, E = np.linalg.eigh(L @ G[np.ix_(keep, keep)] @ L.T)
            e, v = np.maximum(e, 0.0), E.T @ (L @ g[keep])
            for penalty in _PENALTIES:
                evidence = 0.5 * float((v * v / (e + penalty)).sum())
                evidence -= 0.5 * float(np.log1p(e / penalty).sum())
                if evidence > best:
                    best, theta = evidence, np.zeros(K * F)
                    theta[keep] = L.T @ E @ (v / (e + penalty))
                    dof = float((e / (e + penalty)).sum())
    return FittedPotential(Potential(model, hat @ (theta / scale).reshape(K, F)), best, dof)


def _normal_equations(
    model: LocalModel, rows: DecisionRows, W: FloatArray, hat: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Σ W DᵀD and Σ W Dᵀz for every pair of knots."""
    K = hat.shape[1]
    f = rows.x.shape[1]
    F = f + f * (f + 1) // 2 + WAVES
    G, g = np.zeros((K, F, K, F)), np.zeros((K, F))
    some = np.flatnonzero(1e-9 * W.max() < W)
    order = some[np.argsort(rows.t[some], kind="stable")]
    interval = np.argmax(hat[rows.t[order] + 1] > 0.0, axis=1)
    for k in np.unique(interval):
        mine = order[interval == k]
        for block in _blocks(len(mine), rows.e.shape[1] * F):
            at = mine[block]
            D = _gradients(model, rows.x[at]).reshape(-1, F)
            z, w = rows.e[at].ravel(), np.repeat(W[at], rows.e.shape[1])
            h = np.repeat(hat[rows.t[at] + 1], rows.e.shape[1], axis=0)
            for a in range(k, min(k + 2, K)):
                wa = w * h[:, a]
                if not wa.any():
                    continue
                g[a] += D.T @ (wa * z)
                for b in range(a, min(k + 2, K)):
                    M = D.T @ (D * (wa * h[:, b])[:, None])
                    G[a, :, b] += M
                    if b > a:
                        G[b, :, a] += M
    return G, g
