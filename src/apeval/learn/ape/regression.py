"""Bayesian regression of decisions on state and time; how smooth in time, how responsive to the
state and how curved is chosen by evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dtrtrs

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.random_features import random_features
from apeval.learn.ape.spike_and_slab import believed
from apeval.problem.types import FloatArray, IntArray

_BASES = (1, 3, 6)  # cosines in time
_CONSTANT = (0.3, 1.0, 3.0)  # prior standard deviations of a push,
_SLOPE = (0.003, 0.1, 0.5, 2.5)  # of its answer to the state,
_CURVE = (0.003, 0.2, 0.6)  # and of what saturates in that answer
_WAVE = (0.0, 0.5, 1.5)  # and of anything else that is smooth; 0: nothing
_WAVE_BASES = 3  # cosines in time that waves may have
_EVERY_TIME = 12  # up to so many times, each may have a push of its own,
_EVERY_ANSWER = 6  # and up to so many an answer of its own
_LEAST_NOISE = 0.05


@dataclass(frozen=True)
class Smoothness:
    """Cosines in time for the push and for its answer to the state, and prior standard
    deviations of push, answer, saturation and waves."""

    bases: int
    fast: float
    """How little fast changes of the push are held unlikely: 0 or 1."""
    answers: int
    constant: float
    slope: float
    curve: float
    wave: float

    @property
    def waving(self) -> int:
        """Cosines in time for the waves."""
        return min(self.answers, _WAVE_BASES) if self.wave > 0.0 else 0


@dataclass(frozen=True)
class FittedRegression:
    """Coefficients (T, d, 1+2f) or, with waves, (T, d, 1+2f+m), what they leave unexplained, and
    what they cost."""

    B: FloatArray
    residual: FloatArray
    dof: float
    smooth: Smoothness
    evidence: float
    """log of the odds against no push at all."""
    noise: float
    """Variance around each time's own mean."""


def design(x: FloatArray) -> FloatArray:
    """[1, x, tanh 3x], (n, 1+2f)."""
    return np.concatenate([np.ones((len(x), 1)), x, np.tanh(3.0 * x)], axis=1)


def waving_design(x: FloatArray) -> FloatArray:
    """[1, x, tanh 3x, waves], (n, 1+2f+m)."""
    return np.concatenate([design(x), random_features(x)], axis=1)


def design_of(x: FloatArray, width: int) -> FloatArray:
    """The design with so many columns, with waves or without."""
    return design(x) if width == 1 + 2 * x.shape[1] else waving_design(x)


def regress(
    rows: DecisionRows, W: FloatArray, times: int, smooth: Smoothness | None, waving: bool
) -> FittedRegression:
    """With the smoothness given, or the one that the evidence prefers, with waves or without."""
    X = waving_design(rows.x) if waving else design(rows.x)
    f = rows.x.shape[1]
    straight, m = 1 + 2 * f, X.shape[1] - 1 - 2 * f
    noise = _noise_within_times(rows, W, times)
    pushes, answers = _choices(times, _EVERY_TIME), _choices(times, _EVERY_ANSWER)
    psi = cosines(times, max(pushes[-1], answers[-1]))
    at = psi[rows.t]
    most = answers[-1] if smooth is None else smooth.answers
    Phi = np.concatenate(
        [
            at[:, : pushes[-1]],
            _products(at[:, :most], X[:, 1:straight]),
            _products(at[:, : min(most, _WAVE_BASES)], X[:, straight:]),
        ],
        axis=1,
    )
    weighted = Phi * W[:, None]
    normal = _Normal(
        Phi.T @ weighted / noise, weighted.T @ rows.e / noise, times, pushes[-1], most, f, m
    )
    smooth = smooth or _search(normal, pushes, answers)
    mu, dof = normal.solve(smooth)
    d, own = rows.e.shape[1], smooth.bases
    X = X if smooth.waving else X[:, :straight]
    B = np.zeros((times, d, X.shape[1]))
    B[:, :, 0] = psi[:, :own] @ mu[:own]
    to = own + smooth.answers * 2 * f
    B[:, :, 1:straight] = _gains(psi[:, : smooth.answers], mu[own:to])
    if smooth.waving:
        B[:, :, straight:] = _gains(psi[:, : smooth.waving], mu[to:])
    less = _doubtful(B, X, W, rows.t, noise * own / times)
    B[:, :, 0] -= less
    return FittedRegression(
        B, rows.e - Phi[:, normal.columns(smooth)] @ mu + less[rows.t], dof, smooth,
        normal.evidence(smooth), noise,
    )  # fmt: skip


def _products(at: FloatArray, X: FloatArray) -> FloatArray:
    """Every cosine in time with every feature, (n, k·f)."""
    return (at[:, :, None] * X[:, None, :]).reshape(len(X), -1)


def _gains(psi: FloatArray, mu: FloatArray) -> FloatArray:
    """Coefficients of the products as they are at every time, (T, d, f)."""
    bases, d = psi.shape[1], mu.shape[1]
    gains: FloatArray = np.einsum("tk,dkf->tdf", psi, mu.T.reshape(d, bases, len(mu) // bases))
    return gains


def _doubtful(B: FloatArray, X: FloatArray, W: FloatArray, t: IntArray, noise: float) -> FloatArray:
    """The part of each time's mean push, (T, d), that chance explains."""
    times = len(B)
    count = np.maximum(np.bincount(t, W, times), 1e-12)
    means = np.stack([np.bincount(t, W * x, times) for x in X.T], axis=1) / count[:, None]
    push = np.einsum("tdf,tf->td", B, means)
    less: FloatArray = push * (1.0 - believed(push, noise / count[:, None]))
    return less


def _choices(times: int, every: int) -> list[int]:
    own = {times} if times <= every else set()
    return sorted({min(k, times) for k in _BASES} | own)


def cosines(times: int, bases: int) -> FloatArray:
    """Nested: fewer bases are the first columns."""
    psi: FloatArray = np.cos(np.pi * np.arange(bases) * (np.arange(times)[:, None] + 0.5) / times)
    return psi


def _decay(bases: int) -> FloatArray:
    """Fast changes are unlikely."""
    return np.asarray(1.0 / (1.0 + np.arange(bases)), np.float64)


@dataclass(frozen=True)
class _Normal:
    """The normal equations of the largest model, ΦᵀWΦ and ΦᵀWz over the noise: `pushes` columns
    for the push, then 2f for each cosine of the answer, then m for each of the waves. Smaller
    models have fewer of each."""

    G: FloatArray
    R: FloatArray
    times: int
    pushes: int
    answers: int
    f: int
    m: int

    def columns(self, smooth: Smoothness) -> IntArray:
        """Those of a smaller model."""
        first = self.pushes + self.answers * 2 * self.f
        answers = self.pushes + np.arange(smooth.answers * 2 * self.f)
        waving = first + np.arange(smooth.waving * self.m)
        return np.concatenate([np.arange(smooth.bases), answers, waving])

    def posterior(self, smooth: Smoothness) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Prior precisions, posterior precision and right-hand side."""
        keep, f = self.columns(smooth), self.f
        within = np.array(f * [smooth.slope] + f * [smooth.curve])
        push = smooth.constant * _decay(smooth.bases) ** (1.0 - smooth.fast)
        answer = (_decay(smooth.answers)[:, None] * within).ravel()
        wave = np.repeat(smooth.wave * _decay(smooth.waving), self.m)
        precision = 1.0 / np.concatenate([push, answer, wave]) ** 2
        A = self.G[keep[:, None], keep]
        A.flat[:: len(keep) + 1] += precision
        return precision, A, self.R[keep]

    def evidence(self, smooth: Smoothness) -> float:
        """log evidence up to a constant."""
        precision, A, R = self.posterior(smooth)
        L = np.linalg.cholesky(A)
        half, _ = dtrtrs(L, R, lower=True)
        log_det = 2.0 * float(np.log(np.diag(L)).sum())
        cost = R.shape[1] * (float(np.log(precision).sum()) - log_det)
        return float(0.5 * (cost + float((half * half).sum())))

    def solve(self, smooth: Smoothness) -> tuple[FloatArray, float]:
        """Posterior mean and the number of parameters that the data decided."""
        precision, A, R = self.posterior(smooth)
        inverse = np.linalg.inv(A)
        dof = R.shape[1] * (len(A) - float((precision * np.diag(inverse)).sum()))
        mu: FloatArray = inverse @ R
        return mu, dof


def _search(normal: _Normal, pushes: list[int], answers: list[int]) -> Smoothness:
    """Coordinate by coordinate, twice over what decides the rest."""
    best = Smoothness(
        pushes[len(pushes) // 2], 0.0, answers[0], 1.0, _SLOPE[1], _CURVE[0], _WAVE[0]
    )
    score = normal.evidence(best)
    seen = {best}
    sweeps: list[tuple[str, Sequence[float]]] = [
        ("bases", pushes),
        ("fast", (0.0, 1.0)),
        ("slope", _SLOPE),
        ("constant", _CONSTANT),
        ("answers", answers),
        ("curve", _CURVE),
        ("wave", _WAVE if normal.m else ()),
        ("bases", pushes),
        ("slope", _SLOPE),
    ]
    for name, values in sweeps:
        for value in values:
            other: Smoothness = replace(best, **{name: value})  # type: ignore[arg-type]
            if other not in seen and (found := normal.evidence(other)) > score:
                best, score = other, found
            seen.add(other)
    return best


def _noise_within_times(rows: DecisionRows, W: FloatArray, times: int) -> float:
    """Variance around each time's own mean: the same for all candidates, so that they compare."""
    count = np.maximum(np.bincount(rows.t, W, times), 1e-12)
    d, total = rows.e.shape[1], 0.0
    for j in range(d):
        mean = np.bincount(rows.t, W * rows.e[:, j], times) / count
        total += float((W * (rows.e[:, j] - mean[rows.t]) ** 2).sum())
    return float(max(total / (float(W.sum()) * d), _LEAST_NOISE))
