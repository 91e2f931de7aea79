"""Bayesian regression of decisions on state and time; how smooth in time, how responsive to the
state and how curved is chosen by evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from apeval.learn.ape.rows import Rows
from apeval.problem.types import FloatArray

_BASES = (1, 3, 6)  # cosines in time
_CONSTANT = (0.3, 1.0, 3.0)  # prior standard deviations of a push,
_SLOPE = (0.003, 0.1, 0.5, 2.5)  # of its answer to the state,
_CURVE = (0.003, 0.2, 0.6)  # and of what saturates in that answer
_EVERY_TIME = 6  # up to so many times, each may have coefficients of its own
_LEAST_NOISE = 0.05


@dataclass(frozen=True)
class Smooth:
    """Cosines in time, and prior standard deviations of push, feedback and saturation."""

    bases: int
    constant: float
    slope: float
    curve: float


@dataclass(frozen=True)
class Fitted:
    """Coefficients (T, d, 1+2f), what they leave unexplained, and what they cost."""

    B: FloatArray
    residual: FloatArray
    dof: float
    smooth: Smooth


def design(x: FloatArray) -> FloatArray:
    """[1, x, tanh 3x], (n, 1+2f)."""
    return np.concatenate([np.ones((len(x), 1)), x, np.tanh(3.0 * x)], axis=1)


def regress(rows: Rows, W: FloatArray, times: int, smooth: Smooth | None) -> Fitted:
    """With the smoothness given, or the one that the evidence prefers."""
    X = design(rows.x)
    noise = _noise_within_times(rows, W, times)
    most = max(_choices(times)) if smooth is None else smooth.bases
    psi = _cosines(times, most)
    Phi = (psi[rows.t][:, :, None] * X[:, None, :]).reshape(len(X), -1)
    weighted = Phi * W[:, None]
    normal = _Normal(Phi.T @ weighted / noise, weighted.T @ rows.e / noise, X.shape[1])
    smooth = smooth or _search(normal, times)
    mu, dof = normal.solve(smooth)
    theta = mu.T.reshape(rows.e.shape[1], smooth.bases, X.shape[1])
    B: FloatArray = np.einsum("tk,dkf->tdf", psi[:, : smooth.bases], theta)
    return Fitted(B, rows.e - Phi[:, : len(mu)] @ mu, dof, smooth)


def _choices(times: int) -> list[int]:
    every = {times} if times <= _EVERY_TIME else set()
    return sorted({min(k, times) for k in _BASES} | every)


def _cosines(times: int, bases: int) -> FloatArray:
    """Nested: fewer bases are the first columns."""
    psi: FloatArray = np.cos(np.pi * np.arange(bases) * (np.arange(times)[:, None] + 0.5) / times)
    return psi


@dataclass(frozen=True)
class _Normal:
    """The normal equations of the largest model, ΦᵀWΦ and ΦᵀWz over the noise; a smaller one has
    the upper left part."""

    G: FloatArray
    R: FloatArray
    width: int

    def posterior(self, smooth: Smooth) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Prior precisions, posterior precision and right-hand side."""
        size, f = smooth.bases * self.width, (self.width - 1) // 2
        within = np.array([smooth.constant] + f * [smooth.slope] + f * [smooth.curve])
        decay = 1.0 / (1.0 + np.arange(smooth.bases))
        precision = 1.0 / (decay[:, None] * within).ravel() ** 2
        return precision, self.G[:size, :size] + np.diag(precision), self.R[:size]

    def evidence(self, smooth: Smooth) -> float:
        """log evidence up to a constant."""
        precision, A, R = self.posterior(smooth)
        L = np.linalg.cholesky(A)
        half = np.linalg.solve(L, R)
        log_det = 2.0 * float(np.log(np.diag(L)).sum())
        cost = R.shape[1] * (float(np.log(precision).sum()) - log_det)
        return float(0.5 * (cost + float((half * half).sum())))

    def solve(self, smooth: Smooth) -> tuple[FloatArray, float]:
        """Posterior mean and the number of parameters that the data decided."""
        precision, A, R = self.posterior(smooth)
        inverse = np.linalg.inv(A)
        dof = R.shape[1] * (len(A) - float((precision * np.diag(inverse)).sum()))
        mu: FloatArray = inverse @ R
        return mu, dof


def _search(normal: _Normal, times: int) -> Smooth:
    """Coordinate by coordinate, twice over the feedback: it decides what else is worth while."""
    bases = _choices(times)
    best = Smooth(bases[len(bases) // 2], 1.0, 0.1, _CURVE[0])
    score = normal.evidence(best)
    sweeps: list[tuple[str, tuple[float, ...]]] = [
        ("slope", _SLOPE),
        ("constant", _CONSTANT),
        ("bases", tuple(bases)),
        ("curve", _CURVE),
        ("slope", _SLOPE),
    ]
    for name, values in sweeps:
        for value in values:
            other: Smooth = replace(best, **{name: value})  # type: ignore[arg-type]
            if other != best and (found := normal.evidence(other)) > score:
                best, score = other, found
    return best


def _noise_within_times(rows: Rows, W: FloatArray, times: int) -> float:
    """Variance around each time's own mean: the same for all candidates, so that they compare."""
    count = np.maximum(np.bincount(rows.t, W, times), 1e-12)
    d, total = rows.e.shape[1], 0.0
    for j in range(d):
        mean = np.bincount(rows.t, W * rows.e[:, j], times) / count
        total += float((W * (rows.e[:, j] - mean[rows.t]) ** 2).sum())
    return float(max(total / (float(W.sum()) * d), _LEAST_NOISE))
