"""v at one time: a logistic regression on a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import brentq
from scipy.special import expit, log_expit

from apeval.problem.types import FloatArray
from apeval_paper.methods.ape_scalable.representatives import choose

_LEVEL = 10.0  # prior standard deviation of log v's level: hardly any belief
_SLOPES = (1.0, 2.0, 4.0, 8.0, 16.0)  # of its slopes, of which the evidence chooses
_CHOSEN_FROM = 1_500  # data that representatives are chosen from
_JITTER = 1e-8
_NEWTON = 50
_CONVERGED = 1e-8
_MOST = 0.999  # of the mean of v
_SURE = 30.0  # η of a v that is 1


@dataclass(frozen=True)
class Kernel:
    """k(x, x') = level² + slope² x·x' + (slope/4)² ((x·x')² + exp(−‖x − x'‖²/(2d))).

    The polynomial part carries a trend on from where failures are seen to where none are; the
    squared exponential, the paper's kernel, bends it.
    """

    slope: float

    def __call__(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """k(a, b) for all pairs."""
        inner, d = A @ B.T, A.shape[1]
        square = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2.0 * inner
        bell = np.exp(-0.5 * np.maximum(square, 0.0) / d)
        bent = (0.25 * self.slope) ** 2 * (inner**2 + bell)
        k: FloatArray = _LEVEL**2 + self.slope**2 * inner + bent
        return k


class LogisticGP:
    """v(x) = 1/(1 + exp(−η(x))), η = level + f(x), f a Gaussian process on representatives, the
    data of largest predictive variance. Where v is small, η is its logarithm.

    It is fitted by quasi-likelihood, as in a logistic regression whose targets have mean v but may
    be any numbers ≥ 0: a target 0 needs no logarithm, v stays between 0 and 1, and the fit is
    right in the mean, Σ weight · (target − v) = 0. The prior's slope is the one of largest
    evidence (Laplace's approximation).
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.level = -np.inf
        self.slope = 0.0
        """The prior's slope; 0 while v = 0."""

    def fit(self, x: FloatArray, target: FloatArray, weight: FloatArray) -> bool:
        """Fit to targets (n,) at x (n, d) with weights (n,). False where no target is positive:
        then v = 0."""
        total = float(weight @ target)
        self.level = -np.inf
        if not total > 0.0:
            return False
        share = weight * target / total
        effective = 1.0 / float(share @ share)  # how many of the targets count
        mean = min(total / float(weight.sum()), _MOST)
        offset, best = float(np.log(mean / (1.0 - mean))), -np.inf
        for slope in _SLOPES:
            features = Features(x, Kernel(slope), self.budget)
            beta, evidence = _maximise(
                features(x), offset, effective / total * weight, effective * share
            )
            if evidence > best:
                best, self.slope, self._features, self._beta = evidence, slope, features, beta
        self.level = _balanced(self._features(x) @ self._beta, weight / weight.sum(), mean)
        return True

    def log_v(self, x: FloatArray) -> FloatArray:
        """log v(x), (n,)."""
        if not np.isfinite(self.level):
            return np.full(len(x), -np.inf)
        return np.asarray(log_expit(self.level + self._features(x) @ self._beta))


class Features:
    """Φ with k ≈ Φ Φ', exact on the representatives."""

    def __init__(self, x: FloatArray, kernel: Kernel, budget: int) -> None:
        some = x[:: max(1, len(x) // _CHOSEN_FROM)]
        self.kernel = kernel
        self.X = some[choose(kernel(some, some), budget)]
        K = kernel(self.X, self.X)
        self._L = np.linalg.cholesky(K + _JITTER * np.trace(K) / len(K) * np.eye(len(K)))

    def __call__(self, x: FloatArray) -> FloatArray:
        """(n, m)."""
        k = self.kernel(self.X, x)
        Phi: FloatArray = solve_triangular(self._L, k, lower=True, check_finite=False).T
        return Phi


def _maximise(
    Phi: FloatArray, offset: float, exposure: FloatArray, counts: FloatArray
) -> tuple[FloatArray, float]:
    """max_β Σ counts·η − exposure·log(1 + e^η) − ½‖β‖², η = offset + Φβ, by Newton's method, and
    the logarithm of the evidence, up to a constant."""
    beta, best = np.zeros(Phi.shape[1]), -np.inf
    step, log_det = np.zeros_like(beta), 0.0
    for _ in range(_NEWTON):
        size = 1.0
        while True:  # halve the step until it does not lose
            trial = beta + size * step
            eta = offset + Phi @ trial
            value = float(counts @ eta - exposure @ np.logaddexp(0.0, eta) - 0.5 * trial @ trial)
            if value >= best or size < 1e-6:
                break
            size *= 0.5
        if value <= best:
            break
        gained, beta, best = value - best, trial, value
        v = expit(eta)
        H = (Phi * (exposure * v * (1.0 - v))[:, None]).T @ Phi + np.eye(len(beta))
        factor = cho_factor(H)
        log_det = 2.0 * float(np.log(np.diag(factor[0])).sum())
        if gained < _CONVERGED * max(1.0, abs(best)):
            break
        step = cho_solve(factor, Phi.T @ (counts - exposure * v) - beta)
    return beta, best - 0.5 * log_det


def _balanced(f: FloatArray, share: FloatArray, mean: float) -> float:
    """The level at which Σ share · v is this mean: the prior has a part in β, and none in it."""
    low, high = float(np.log(mean) - f.max()) - 1.0, -float(f.min()) + _SURE
    return float(brentq(lambda level: float(share @ expit(level + f)) - mean, low, high))
