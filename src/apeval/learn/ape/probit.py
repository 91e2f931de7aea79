"""A probit model of failure: P(failure | disturbances) = Φ(a + b·z).

With uncontrolled randomness, episodes that did not fail tell as much as those that did, and a
probit regression over all of them needs no weights: ten failures say where to push, when a fit
to weighted failures still rests on one or two. Each decision has a prior width of its own, chosen
by evidence, so that those that do not matter leave the model.

Under π_E,gt only u = b·z/|b| matters, and u ~ N(0, 1): the best Gaussian for u, and the share that
stays with π_E,gt, follow from a quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.feedback import Feedback
from apeval.learn.ape.log_sum import log_sum
from apeval.learn.ape.proposal_choice import NOMINAL, EpisodeCosts, ProposalChoice
from apeval.problem.types import BoolArray, FloatArray, IntArray

_FEWEST = 3  # failures
_COLUMNS = 60
_FARTHEST = 30.0  # η beyond this is as good as certain
_ROUNDS, _NEWTON = 12, 4
_WIDEST, _NARROWEST = 1.0, 1e-4  # prior variances of a slope; below the last it is left out
_MEANS = np.arange(0.0, 6.01, 0.2)
_SPREADS = (0.6, 0.7, 0.85, 1.0)
_WIDENED = 0.5  # q/p of the widened proposals, about
_POINTS = 1.225 * np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
_GRID = np.linspace(-8.0, 12.0, 801)


@dataclass(frozen=True)
class ProbitModel:
    """Φ⁻¹(P) = a + Σ_t b_t·z_t + b_0·z_0."""

    a: float
    b: FloatArray
    """(T, d)."""
    b_0: FloatArray
    error: FloatArray
    """Covariance of a and |b|, (2, 2)."""
    dof: float
    """Slopes that the data, not the prior, decided."""

    @property
    def steepness(self) -> float:
        """|b|."""
        return float(np.sqrt((self.b**2).sum() + (self.b_0**2).sum()))

    @property
    def concentration(self) -> float:
        """1 where one decision matters, less where several do: decisions are drawn apart, and so
        much of a change of their spread along b is left in u."""
        squares = np.append((self.b**2).sum(axis=1), (self.b_0**2).sum())
        return float((squares**2).sum() / squares.sum() ** 2)

    def probability(self, rows: DecisionRows) -> FloatArray:
        """P(failure | decisions), (n,)."""
        answer = rows.total((self.b[rows.t] * rows.e).sum(axis=1)) + rows.z_0 @ self.b_0
        return np.asarray(ndtr(self.a + answer), np.float64)


def fit_probit(
    rows: DecisionRows, failed: BoolArray, stands_for: FloatArray, times: int
) -> ProbitModel | None:
    """From complete episodes, each of which stands for a number of drawn ones."""
    if failed.sum() < _FEWEST or not 0.0 < stands_for @ failed < stands_for.sum():
        return None
    d = rows.e.shape[1]
    Z = np.zeros((rows.n, times, d))
    np.add.at(Z, (rows.episode, rows.t), rows.e)
    X = np.concatenate([np.ones((rows.n, 1)), Z.reshape(rows.n, -1), rows.z_0], axis=1)
    y = failed.astype(np.float64)
    asked = _foremost(X, y, stands_for)
    found = _relevant(X[:, asked], y, stands_for)
    J = np.zeros((2, len(asked)))
    J[0, 0] = 1.0
    J[1, 1:] = found.theta[1:] / max(float(np.sqrt((found.theta[1:] ** 2).sum())), 1e-12)
    theta = np.zeros(X.shape[1])
    theta[asked] = found.theta
    b = theta[1 : 1 + times * d].reshape(times, d)
    error = J @ found.covariance @ J.T
    return ProbitModel(float(theta[0]), b, theta[1 + times * d :], error, found.dof)


def _foremost(X: FloatArray, y: FloatArray, w: FloatArray) -> IntArray:
    """The first column and, of the others, those whose means differ most between failures and the
    rest: a regression on more of them takes long and learns nothing from so few failures."""
    apart = np.abs(X.T @ (w * y) / (w @ y) - X.T @ (w * (1.0 - y)) / (w @ (1.0 - y)))
    apart[0] = np.inf
    return np.sort(np.argsort(-apart, kind="stable")[: 1 + _COLUMNS])


@dataclass(frozen=True)
class _Regression:
    theta: FloatArray
    covariance: FloatArray
    dof: float


def _relevant(X: FloatArray, y: FloatArray, w: FloatArray) -> _Regression:
    """Probit regression with a prior variance for each column (automatic relevance)."""
    k = X.shape[1]
    theta, variance = np.zeros(k), np.ones(k)
    theta[0] = float(ndtri(np.clip(float(w @ y) / float(w.sum()), 1e-12, 1.0 - 1e-12)))
    variance[0] = 1e6
    kept = np.arange(k)
    for _ in range(_ROUNDS):
        A, prior = X[:, kept], 1.0 / variance[kept]
        for _ in range(_NEWTON):
            g, c = _score(A @ theta[kept], y)
            slope = prior * theta[kept] - A.T @ (w * g)
            curve = (A * (w * c)[:, None]).T @ A + np.diag(prior)
            step = np.linalg.solve(curve, slope)
            theta[kept] -= step / max(1.0, float(np.abs(step).max()))
        covariance = np.zeros((k, k))
        covariance[np.ix_(kept, kept)] = np.linalg.inv(curve)
        decided = np.clip(1.0 - np.diag(covariance)[kept] * prior, 1e-6, 1.0)
        found = theta[kept] ** 2 / decided
        variance[kept[1:]] = np.minimum(found[1:], _WIDEST)
        gone = np.concatenate([[False], variance[kept[1:]] < _NARROWEST])
        theta[kept[gone]] = 0.0
        kept = kept[~gone]
    return _Regression(theta, covariance, float(decided[1:].sum()))


def _score(eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slope and curvature of log P(y) in η."""
    sign, eta = 2.0 * y - 1.0, np.clip(eta, -_FARTHEST, _FARTHEST)
    mills = np.exp(-0.5 * eta**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(sign * eta))
    return sign * mills, mills * (mills + sign * eta)


def explained(
    probit: ProbitModel, rows: DecisionRows, failed: BoolArray, weight: FloatArray
) -> float:
    """The part of the deviance that the model takes away from that of one probability for all, as
    far as as many slopes do not take it away by chance."""
    equal = np.full(rows.n, float(weight @ failed) / float(weight.sum()))
    left = _deviance(probit.probability(rows), failed, weight) + probit.dof
    return 1.0 - left / _deviance(equal, failed, weight)


def _deviance(P: FloatArray, failed: BoolArray, weight: FloatArray) -> float:
    P = np.clip(P, 1e-12, 1.0 - 1e-12)
    return -float(weight @ np.where(failed, np.log(P), np.log1p(-P)))


def push(
    probit: ProbitModel, features: int, costs: EpisodeCosts, defensive: float
) -> tuple[Feedback, ProposalChoice] | None:
    """The best Gaussian along b, with the share of π_E,gt beside it; None without a direction."""
    beta = probit.steepness
    if beta <= 0.0:
        return None
    mean, spread, choice = _best(probit, beta, costs, defensive)
    along, along_0 = probit.b / beta, probit.b_0 / beta
    B = np.zeros((*probit.b.shape, 1 + 2 * features))
    B[:, :, 0] = mean * along
    narrower = spread**2 - 1.0
    C = np.eye(probit.b.shape[1]) + narrower * along[:, :, None] * along[:, None, :]
    C_0 = np.eye(len(probit.b_0)) + narrower * np.outer(along_0, along_0)
    return Feedback(C, mean * along_0, C_0, B=B), choice


def _best(
    probit: ProbitModel, beta: float, costs: EpisodeCosts, defensive: float
) -> tuple[float, float, ProposalChoice]:
    """Mean and spread of u under the best proposal; averaged over how far a and |b| may be off."""
    p = np.exp(-0.5 * _GRID**2)
    p /= p.sum()
    v = max(float((p * ndtr(probit.a + beta * _GRID)).sum()), 1e-300)
    values, vectors = np.linalg.eigh(probit.error)
    off = _POINTS @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    log_P = np.log(p) + log_ndtr(probit.a + off[:, :1] + np.maximum(beta + off[:, 1:], 0.0) * _GRID)
    failures = np.exp(log_P - log_sum(log_P)[:, None]).mean(axis=0)
    found: list[tuple[float, float, ProposalChoice]] = []
    for spread in _SPREADS:
        real = np.sqrt(1.0 + (spread**2 - 1.0) * probit.concentration)
        e = (_GRID - _MEANS[:, None]) / real
        ratio = np.exp(0.5 * (_GRID**2 - e * e)) / real
        for nominal in NOMINAL:
            rest = 1.0 - nominal - defensive
            if rest <= 0.0:
                continue
            moment = (failures / (nominal + _WIDENED * defensive + rest * ratio)).sum(axis=1)
            k = int(np.argmin(moment))
            variance = max(0.0, float(moment[k]) / v - 1.0)
            choice = ProposalChoice(1.0, nominal, variance, costs.of(nominal, defensive))
            found.append((float(_MEANS[k]), spread, choice))
    return min(found, key=lambda candidate: candidate[2].price)
