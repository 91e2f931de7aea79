"""q(a | x, t) ∝ π_E,gt(a) · exp(θ_a · φ(x, t)): a tilt of outcomes that answers to the state."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from apeval.learn.ape.ladder import outcome_ratio
from apeval.learn.ape.log_sum import log_sum
from apeval.learn.ape.part import DiscretePart
from apeval.learn.ape.part_learner import PartLearner
from apeval.learn.ape.regression import design
from apeval.learn.ape.rows import Rows
from apeval.problem.types import FloatArray, IntArray

_CONSTANT, _SLOPE, _CURVE = 1.5, 1.0, 0.5  # prior standard deviations of θ
_STEPS = 40  # of the optimiser
_BASES = 3


@dataclass(frozen=True, eq=False)
class Tilt(DiscretePart):
    """θ at every time that is told apart, (T, K, 1+2f)."""

    theta: FloatArray
    dof: float = field(default=0.0)

    def probabilities(self, x: FloatArray, t: IntArray, p: FloatArray) -> FloatArray:
        score = np.einsum("nkf,nf->nk", self.theta[t], design(x))
        with np.errstate(divide="ignore"):
            log_q = np.log(p) + score
        q: FloatArray = np.exp(log_q - log_sum(log_q)[:, None])
        return q

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
    psi = np.cos(np.pi * np.arange(bases) * (np.arange(times)[:, None] + 0.5) / times)
    X, f = design(rows.x), rows.x.shape[1]
    width = X.shape[1]
    Phi = (psi[rows.t][:, :, None] * X[:, None, :]).reshape(n, -1)
    decay = np.repeat(1.0 / (1.0 + np.arange(bases)), width)
    within = np.tile([_CONSTANT] + f * [_SLOPE] + f * [_CURVE], bases)
    precision = 1.0 / (within * decay) ** 2
    W, came = w[rows.episode], np.eye(K)[rows.e[:, 0].astype(np.int64)]
    with np.errstate(divide="ignore"):
        log_p = np.log(rows.p)

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        theta = flat.reshape(K, -1)
        score = Phi @ theta.T
        q = np.exp(log_p + score)
        norm = q.sum(axis=1)
        fit = float((W * ((came * score).sum(axis=1) - np.log(norm))).sum())
        slope = ((came - q / norm[:, None]) * W[:, None]).T @ Phi
        penalty = 0.5 * float((precision * theta**2).sum())
        return penalty - fit, (precision * theta - slope).ravel()

    start = np.zeros(K * len(decay)) if before is None else before
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    theta = np.asarray(found.x).reshape(K, bases, width)
    at_times = np.einsum("tk,akf->taf", psi, theta)
    strength = float(W.sum()) / K
    dof = (K - 1) * float((strength / (strength + precision)).sum())
    return Tilt(at_times, dof), np.asarray(found.x)


LEARNER = PartLearner(fit_tilt)
