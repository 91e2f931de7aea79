"""q(a | x, t) = (1 − κ) · q_θ(a) + κ · π_E,gt(a), with q_θ(a) ∝ π_E,gt(a) · exp(θ_a · φ(x, t)): a
tilt of outcomes that answers to the state.

φ holds the state, its saturation and random waves over it, so that a tilt can follow
π_E* ∝ π_E,gt(a) · (r + v(s')) where that bends. What every decision keeps of π_E,gt, κ, bounds the
price of a decision that the tilt gets wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.log_sum import log_sum
from apeval.learn.ape.part_learner import PartLearner
from apeval.learn.ape.proposal_part import DiscretePart
from apeval.learn.ape.regression import cosines, design, design_of, waving_design
from apeval.learn.ape.widened_proposals import outcome_ratio
from apeval.problem.types import FloatArray, IntArray

_CONSTANT, _SLOPE, _CURVE, _WAVES = 1.5, 1.0, 0.5, 3.0  # prior standard deviations of θ
_STEPS = 25  # of the optimiser
_BASES = 3
_CURVATURE = 0.1  # of −log q in a score, about: q(1 − q)
_KEPT, _LEAST_KEPT = 0.1, 0.05  # κ, and where nothing is held back
_UPRIGHT = 0.85  # η down to which θ stays as it is


@dataclass(frozen=True, eq=False)
class Tilt(DiscretePart):
    """θ of every cosine in time, (bases, K, features), over `times` bins."""

    theta: FloatArray
    times: int
    dof: float = field(default=0.0)
    kept: float = field(default=_LEAST_KEPT)

    def probabilities(self, x: FloatArray, t: IntArray, p: FloatArray) -> FloatArray:
        bases, _, width = self.theta.shape
        X = design_of(x, width)
        psi = cosines(self.times, bases)[t]
        with np.errstate(divide="ignore"):
            log_q = np.log(p)
        for k in range(bases):
            log_q += psi[:, k, None] * (X @ self.theta[k].T)
        q: FloatArray = np.exp(log_q - log_sum(log_q)[:, None])
        return (1.0 - self.kept) * q + self.kept * p

    def row_ratio(self, rows: DecisionRows) -> FloatArray:
        return outcome_ratio(self.probabilities(rows.x, rows.t, rows.p), rows)

    def relaxed(self, eta: float) -> Tilt:
        """First every decision keeps more of π_E,gt, then the tilt itself gives way."""
        if eta == 1.0:
            return self
        less = 1.0 if eta >= _UPRIGHT else eta
        return Tilt(less * self.theta, self.times, self.dof, _KEPT)


def fit_tilt(
    rows: DecisionRows, w: FloatArray, times: int, before: FloatArray | None
) -> tuple[Tilt, FloatArray]:
    """Without waves: penalised maximum likelihood with episode weights w, from where an earlier
    fit ended."""
    return _fit(rows, w, times, before, False)


def let_wave(rows: DecisionRows, w: FloatArray, times: int, before: object) -> Tilt:
    """With waves, from no tilt at all."""
    return _fit(rows, w, times, None, True)[0]


def _fit(
    rows: DecisionRows, w: FloatArray, times: int, before: FloatArray | None, waving: bool
) -> tuple[Tilt, FloatArray]:
    rows, w = rows.take(w > 0.0), w[w > 0.0]
    n, K = rows.p.shape
    bases = min(_BASES, times)
    X, f = waving_design(rows.x) if waving else design(rows.x), rows.x.shape[1]
    width = X.shape[1]
    Phi = (cosines(times, bases)[rows.t][:, :, None] * X[:, None, :]).reshape(n, -1)
    decay = np.repeat(1.0 / (1.0 + np.arange(bases)), width)
    rest = width - 1 - 2 * f
    within = np.tile([_CONSTANT] + f * [_SLOPE] + f * [_CURVE] + rest * [_WAVES], bases)
    precision = 1.0 / (within * decay) ** 2
    W, came = w[rows.episode], np.eye(K)[rows.e[:, 0].astype(np.int64)]
    with np.errstate(divide="ignore"):
        log_p = np.log(rows.p)

    # in u = Lᵀθ the loss is nearly round: the optimiser takes tens of steps, not hundreds
    L = cholesky((Phi * (_CURVATURE * W)[:, None]).T @ Phi + np.diag(precision), lower=True)
    inverse = solve_triangular(L, np.eye(len(L)), lower=True)
    rounded = Phi @ inverse.T
    prior = (inverse * precision) @ inverse.T
    seen = (came * W[:, None]).T @ rounded

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        u = flat.reshape(K, -1)
        score = log_p + rounded @ u.T
        top = score.max(axis=1)
        q = np.exp(score - top[:, None])
        norm = q.sum(axis=1)
        fit = float((seen * u).sum()) - float(W @ (np.log(norm) + top))
        q *= (W / norm)[:, None]
        slope = u @ prior
        return 0.5 * float((slope * u).sum()) - fit, (slope - seen + q.T @ rounded).ravel()

    start = np.zeros((K, len(decay))) if before is None else before @ L
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    theta = np.asarray(found.x).reshape(K, -1) @ inverse
    dof = (K - 1) * (len(L) - float(np.trace(prior)))
    at_bases = np.ascontiguousarray(theta.reshape(K, bases, width).transpose(1, 0, 2))
    return Tilt(at_bases, times, dof), theta


LEARNER = PartLearner(fit_tilt, let_wave)
