"""q(a | x, t) ∝ π_E,gt(a) · exp(θ_a · φ(x, t)): a tilt of outcomes that answers to the state.

φ holds the state, its saturation and random waves over it, so that one tilt can follow
π_E,gt(a)·v(s')/v(s) (eq. 4), which is a function of state and time alone. Every decision keeps a
part of π_E,gt: where the tilt is wrong, its price is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from apeval.learn.ape.ladder import outcome_ratio
from apeval.learn.ape.log_sum import log_sum
from apeval.learn.ape.part import DiscretePart
from apeval.learn.ape.part_learner import PartLearner
from apeval.learn.ape.regression import cosines, waving_design
from apeval.learn.ape.rows import Rows
from apeval.problem.types import FloatArray, IntArray

_CONSTANT, _SLOPE, _CURVE, _WAVES = 1.5, 1.0, 0.5, 3.0  # prior standard deviations of θ
_STEPS = 25  # of the optimiser
_BASES = 3
_CURVATURE = 0.1  # of −log q in a score, about: q(1 − q)
_KEPT = 0.1  # of π_E,gt in every decision


@dataclass(frozen=True, eq=False)
class Tilt(DiscretePart):
    """θ at every time that is told apart, (T, K, features)."""

    theta: FloatArray
    dof: float = field(default=0.0)

    def probabilities(self, x: FloatArray, t: IntArray, p: FloatArray) -> FloatArray:
        score = np.einsum("nkf,nf->nk", self.theta[t], waving_design(x))
        with np.errstate(divide="ignore"):
            log_q = np.log(p) + score
        q: FloatArray = np.exp(log_q - log_sum(log_q)[:, None])
        return (1.0 - _KEPT) * q + _KEPT * p

    def row_ratio(self, rows: Rows) -> FloatArray:
        return outcome_ratio(self.probabilities(rows.x, rows.t, rows.p), rows)

    def relaxed(self, eta: float) -> Tilt:
        return self if eta == 1.0 else Tilt(eta * self.theta, self.dof)


def fit_tilt(
    rows: Rows, w: FloatArray, times: int, before: FloatArray | None
) -> tuple[Tilt, FloatArray]:
    """Penalised maximum likelihood with episode weights w, from where an earlier fit ended."""
    n, K = rows.p.shape
    bases = min(_BASES, times)
    psi = cosines(times, bases)
    X, f = waving_design(rows.x), rows.x.shape[1]
    width = X.shape[1]
    Phi = (psi[rows.t][:, :, None] * X[:, None, :]).reshape(n, -1)
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
        q = np.exp(log_p + rounded @ u.T)
        norm = q.sum(axis=1)
        fit = float((seen * u).sum()) - float(W @ np.log(norm))
        q *= (W / norm)[:, None]
        slope = u @ prior
        return 0.5 * float((slope * u).sum()) - fit, (slope - seen + q.T @ rounded).ravel()

    start = np.zeros((K, len(decay))) if before is None else before @ L
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    theta = np.asarray(found.x).reshape(K, -1) @ inverse
    at_times = np.einsum("tk,akf->taf", psi, theta.reshape(K, bases, width))
    dof = (K - 1) * (len(L) - float(np.trace(prior)))
    return Tilt(at_times, dof), theta


LEARNER = PartLearner(fit_tilt, sizes=(1,))
