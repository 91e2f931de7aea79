"""Parts that push: z_t ~ N(m(x, t), C_t), whatever the mean is made of."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.proposal_part import ContinuousPart
from apeval.problem.types import FloatArray, IntArray

_PRIOR = (30.0, 3.0, 12.0)  # worth of the priors: scale of C, its shape, its change over time
_INFLATE = 0.32
_EIGENVALUES = (0.2, 4.0)


@dataclass(frozen=True, eq=False)
class GaussianPart(ContinuousPart):
    """A mean for every state and time, covariances C (T, d, d), and N(m_0, C_0) for the start."""

    C: FloatArray
    m_0: FloatArray
    C_0: FloatArray
    dof: float = field(default=0.0)

    @cached_property
    def _L(self) -> FloatArray:
        return np.asarray(np.linalg.cholesky(self.C), np.float64)

    @cached_property
    def _whiten(self) -> tuple[FloatArray, FloatArray]:
        L = self._L
        return np.asarray(np.linalg.inv(L), np.float64), np.log(
            np.diagonal(L, axis1=1, axis2=2)
        ).sum(axis=1)

    @abstractmethod
    def mean(self, x: FloatArray, t: IntArray) -> FloatArray:
        """The push, (n, d)."""

    @abstractmethod
    def scaled(self, eta: float) -> GaussianPart:
        """With a part of the push."""

    def standardise(self, rows: DecisionRows) -> tuple[FloatArray, FloatArray]:
        """What the mean leaves unexplained, as N(0, I), (N, d), and log det L, (N,)."""
        inverse, log_det = self._whiten
        e = np.einsum("nij,nj->ni", inverse[rows.t], rows.e - self.mean(rows.x, rows.t))
        return e, log_det[rows.t]

    def push(self, x: FloatArray, t: IntArray, e: FloatArray) -> FloatArray:
        """z from standardised e."""
        z: FloatArray = self.mean(x, t) + np.einsum("nij,nj->ni", self._L[t], e)
        return z

    def row_ratio(self, rows: DecisionRows) -> FloatArray:
        e, log_det = self.standardise(rows)
        ratio: FloatArray = 0.5 * ((rows.e**2).sum(axis=1) - (e * e).sum(axis=1))
        return ratio - log_det

    def push_ratio(self, rows: DecisionRows) -> FloatArray:
        """log q/p of whole episodes, (n,), if all covariances were π_E,gt's."""
        mean = self.mean(rows.x, rows.t)
        total = rows.total((mean * (rows.e - 0.5 * mean)).sum(axis=1))
        if rows.z_0.shape[1] and len(self.m_0):
            total += (rows.z_0 - 0.5 * self.m_0) @ self.m_0
        return total

    def plain(self) -> GaussianPart:
        """The push with the covariances of π_E,gt."""
        d, d_0 = self.C.shape[1], len(self.m_0)
        return replace(self, C=np.tile(np.eye(d), (len(self.C), 1, 1)), C_0=np.eye(d_0))

    def start_ratio(self, z_0: FloatArray) -> FloatArray:
        if z_0.shape[1] == 0 or len(self.m_0) == 0:
            return np.zeros(len(z_0))
        L = np.linalg.cholesky(self.C_0)
        e = np.linalg.solve(L, (z_0 - self.m_0).T).T
        ratio: FloatArray = 0.5 * ((z_0**2).sum(axis=1) - (e * e).sum(axis=1))
        return ratio - float(np.log(np.diag(L)).sum())

    def start(self, u: FloatArray) -> FloatArray:
        z: FloatArray = self.m_0 + ndtri(u) @ np.linalg.cholesky(self.C_0).T
        return z

    def draw(
        self, x: FloatArray, t: IntArray, u: FloatArray, whole: FloatArray | None
    ) -> FloatArray:
        return self.push(x, t, ndtri(u))

    def relaxed(self, eta: float) -> GaussianPart:
        if eta == 1.0:
            return self
        d, d_0 = self.C.shape[1], len(self.m_0)
        return replace(
            self.scaled(eta),
            C=eta * self.C + (1.0 - eta) * np.eye(d),
            m_0=eta * self.m_0,
            C_0=eta * self.C_0 + (1.0 - eta) * np.eye(d_0),
        )


@dataclass(frozen=True)
class Spread:
    """What surrounds a fitted mean: covariances, the start, and the parameters of both."""

    C: FloatArray
    m_0: FloatArray
    C_0: FloatArray
    dof: float


def fit_spread(
    rows: DecisionRows, w: FloatArray, W: FloatArray, residual: FloatArray, times: int
) -> Spread:
    """Of episodes with weights w, decisions with weights W, and what the mean leaves of them.

    Args:
        rows: The decisions.
        w: Weights of episodes, (n,), whose sum is the number that they are worth.
        W: Weights of decisions, (N,).
        residual: Disturbances less their mean, (N, d).
        times: Time bins.

    Returns:
        Covariances by time, and the law of the start.
    """
    d, d_0, worth = rows.e.shape[1], rows.z_0.shape[1], float(W.sum())
    count = np.bincount(rows.t, W, times).astype(np.float64)
    S = np.zeros((times, d, d))
    for i in range(d):
        for j in range(i, d):
            both = np.bincount(rows.t, W * residual[:, i] * residual[:, j], times)
            S[:, i, j] = S[:, j, i] = both
    m_0, C_0 = _fit_start(rows.z_0, w)
    shape = 0.5 * d * (d + 1) * worth / (worth + _PRIOR[1] * times * d * (d - 1))
    return Spread(_covariances(S, count), m_0, C_0, shape + d_0 + 0.5 * d_0 * (d_0 + 1))


def _covariances(S: FloatArray, count: FloatArray) -> FloatArray:
    """C_t from sums of squares: a scale, shrunk to 1; a shape, shrunk to a ball; a change over
    time, shrunk to none. Inflated, because a proposal that is too narrow has heavy weights."""
    T, d, _ = S.shape
    scale_worth, shape_worth, time_worth = _PRIOR
    n, pooled = float(count.sum()), S.sum(axis=0)
    scale = (float(np.trace(pooled)) / d + scale_worth) / (n + scale_worth)
    worth = shape_worth * T * d * (d - 1)
    pooled = (pooled + worth * scale * np.eye(d)) / max(n + worth, 1e-12)
    worth = time_worth * T * d
    C = (S + worth * pooled) / (count + worth)[:, None, None]
    return _bounded(C * (1.0 + _INFLATE * min(1.0, float(np.sqrt(4.0 / (T * d))))))


def _fit_start(z_0: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    d, n = z_0.shape[1], float(w.sum())
    m = (w[:, None] * z_0).sum(axis=0) / (n + 0.5)
    e = z_0 - m
    C = ((w[:, None] * e).T @ e + (2.0 + d) * np.eye(d)) / (n + 2.0 + d)
    return m, _bounded(C[None] * (1.0 + _INFLATE))[0] if d else C


def _bounded(C: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(C)
    values = np.clip(values, *_EIGENVALUES)
    bounded: FloatArray = np.einsum("tij,tj,tkj->tik", vectors, values, vectors)
    return bounded
