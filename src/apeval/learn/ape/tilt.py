"""q(a | x, t) ∝ π_E,gt(a) · exp(θ_a · φ(x, t)): a tilt of outcomes that answers to the state."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from apeval.learn.ape.ladder import outcome_ratio
from apeval.learn.ape.part import DiscretePart
from apeval.learn.ape.rows import Rows
from apeval.problem.types import FloatArray, IntArray

_CONSTANT, _SLOPE = 1.5, 1.0  # prior standard deviations of θ
_BASES = 3


@dataclass(frozen=True, eq=False)
class Tilt(DiscretePart):
    """θ at every time that is told apart, (T, K, 1+f)."""

    theta: FloatArray
    dof: float = field(default=0.0)

    def probabilities(self, x: FloatArray, t: IntArray, p: FloatArray) -> FloatArray:
        theta = self.theta[t]
        score = theta[:, :, 0] + np.einsum("nkf,nf->nk", theta[:, :, 1:], x)
        with np.errstate(divide="ignore"):
            log_q = np.log(p) + score
        q: FloatArray = np.exp(log_q - np.asarray(logsumexp(log_q, axis=1))[:, None])
        return q

    def row_ratio(self, rows: Rows) -> FloatArray:
        return outcome_ratio(self.probabilities(rows.x, rows.t, rows.p), rows)

    def relaxed(self, eta: float) -> Tilt:
        return self if eta == 1.0 else Tilt(eta * self.theta, self.dof)


def fit_tilt(rows: Rows, w: FloatArray, times: int, smooth: None) -> tuple[Tilt, None]:
    """Penalised maximum likelihood with episode weights w."""
    n, K = rows.p.shape
    bases = min(_BASES, times)
    psi = np.cos(np.pi * np.arange(bases) * (np.arange(times)[:, None] + 0.5) / times)
    X = np.concatenate([np.ones((n, 1)), rows.x], axis=1)
    width = X.shape[1]
    Phi = (psi[rows.t][:, :, None] * X[:, None, :]).reshape(n, -1)
    decay = np.repeat(1.0 / (1.0 + np.arange(bases)), width)
    first = np.arange(bases * width) % width == 0
    precision = 1.0 / (np.where(first, _CONSTANT, _SLOPE) * decay) ** 2
    W, came = w[rows.episode], np.eye(K)[rows.e[:, 0].astype(np.int64)]
    with np.errstate(divide="ignore"):
        log_p = np.log(rows.p)

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        theta = flat.reshape(K, -1)
        log_q = log_p + Phi @ theta.T
        norm = np.asarray(logsumexp(log_q, axis=1))
        fit = float((W * ((came * (Phi @ theta.T)).sum(axis=1) - norm)).sum())
        slope = ((came - np.exp(log_q - norm[:, None])) * W[:, None]).T @ Phi
        penalty = 0.5 * float((precision * theta**2).sum())
        return penalty - fit, (precision * theta - slope).ravel()

    found = minimize(
        loss, np.zeros(K * len(decay)), jac=True, method="L-BFGS-B", options={"maxiter": 60}
    )
    theta = np.asarray(found.x).reshape(K, bases, width)
    at_times = np.einsum("tk,akf->taf", psi, theta)
    strength = float(W.sum()) / K
    dof = (K - 1) * float((strength / (strength + precision)).sum())
    return Tilt(at_times, dof), None
