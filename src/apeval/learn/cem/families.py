"""What `cem` fits: an independent density for each decision, blind to the state."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from apeval.learn.whitened import log_phi, to_action, to_z
from apeval.problem.laws import CategoricalLaw, Law, pick
from apeval.problem.types import Array, FloatArray, IntArray
from apeval.simulate.adversary import Adversary, Situation
from apeval.simulate.episodes import Episodes


class Family(Adversary):
    """A parametric adversary that weighted maximum likelihood can fit."""

    @abstractmethod
    def fitted(self, episodes: Episodes, weights: FloatArray, smoothing: float) -> Family:
        """The weighted maximum-likelihood fit (weights ≥ 0 per episode, sum 1), smoothed with
        the present parameters: α·new + (1 − α)·old."""


@dataclass(frozen=True)
class GaussianSteps(Family):
    """z_t ~ N(μ_t, diag σ_t²) in whitened coordinates; decisions beyond the last row share it. A
    controlled start has a row of its own (no columns: it stays nominal)."""

    mu: FloatArray
    sigma: FloatArray
    smallest: float
    mu_0: FloatArray
    sigma_0: FloatArray

    @staticmethod
    def nominal(steps: int, dim: int, dim_0: int, smallest: float) -> GaussianSteps:
        """μ = 0, σ = 1."""
        return GaussianSteps(
            np.zeros((steps, dim)), np.ones((steps, dim)), smallest, np.zeros(dim_0), np.ones(dim_0)
        )

    def sample(self, now: Situation, u: FloatArray) -> Array:
        row = _row(now.t, self.mu)
        return to_action(now.law, self.mu[row] + self.sigma[row] * ndtri(u))

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        row = _row(now.t, self.mu)
        return _log_prob(now.law, a_E, self.mu[row], self.sigma[row])

    def sample_initial(self, law: Law, u: FloatArray) -> Array:
        if not len(self.mu_0):
            return law.sample(u)
        return to_action(law, self.mu_0 + self.sigma_0 * ndtri(u))

    def log_prob_initial(self, law: Law, a_0: Array) -> FloatArray:
        if not len(self.mu_0):
            return law.log_prob(a_0)
        return _log_prob(law, a_0, self.mu_0, self.sigma_0)

    def fitted(self, episodes: Episodes, weights: FloatArray, smoothing: float) -> GaussianSteps:
        w, t = weights[episodes.episode], _row(episodes.t, self.mu)
        mass = np.bincount(t, w, len(self.mu)).astype(np.float64)
        z = to_z(episodes.law, episodes.a_E)
        seen = mass > 0.0
        mu, sigma = self.mu.copy(), self.sigma.copy()
        for j in range(z.shape[1]):
            m, v = _moments(z[:, j], w, t, mass)
            mu[seen, j] += smoothing * (m - self.mu[:, j])[seen]
            spread = np.maximum(np.sqrt(v), self.smallest)
            sigma[seen, j] += smoothing * (spread - self.sigma[:, j])[seen]
        mu_0, sigma_0 = self.mu_0, self.sigma_0
        if episodes.law_0 is not None and len(mu_0):
            z_0 = to_z(episodes.law_0, episodes.a_0)
            m_0 = weights @ z_0
            v_0 = weights @ (z_0 - m_0) ** 2
            mu_0 = mu_0 + smoothing * (m_0 - mu_0)
            sigma_0 = sigma_0 + smoothing * (np.maximum(np.sqrt(v_0), self.smallest) - sigma_0)
        return GaussianSteps(mu, sigma, self.smallest, mu_0, sigma_0)


@dataclass(frozen=True)
class CategoricalSteps(Family):
    """a_t ~ p·g_t, normalised: a factor per decision and outcome, so that a nominal that depends
    on the state keeps its zeros. With a constant nominal this is any law per decision."""

    factor: FloatArray
    floor: float
    """Share of the nominal."""

    @staticmethod
    def nominal(steps: int, outcomes: int, floor: float) -> CategoricalSteps:
        """g = 1."""
        return CategoricalSteps(np.ones((steps, outcomes)), floor)

    def probabilities(self, now: Situation) -> FloatArray:
        """π_E(· | t), (n, K)."""
        p = now.law.outcome_probabilities()
        tilted = p * self.factor[_row(now.t, self.factor)]
        total = tilted.sum(axis=1, keepdims=True)
        tilted = np.where(total > 0.0, tilted / np.where(total > 0.0, total, 1.0), p)
        mixed: FloatArray = self.floor * p + (1.0 - self.floor) * tilted
        return mixed

    def sample(self, now: Situation, u: FloatArray) -> Array:
        return pick(self.probabilities(now), u)

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        return CategoricalLaw(self.probabilities(now)).log_prob(a_E)

    def fitted(self, episodes: Episodes, weights: FloatArray, smoothing: float) -> CategoricalSteps:
        p = episodes.law.outcome_probabilities()
        steps, K = self.factor.shape
        w, row = weights[episodes.episode], _row(episodes.t, self.factor)
        taken = np.zeros((steps, K))
        np.add.at(taken, (row, episodes.a_E[:, 0]), w)
        expected = np.zeros((steps, K))
        np.add.at(expected, row, w[:, None] * np.broadcast_to(p, (len(w), K)))
        seen = (expected > 0.0) & (taken.sum(axis=1, keepdims=True) > 0.0)
        new = np.where(seen, taken / np.where(seen, expected, 1.0), self.factor)
        factor = self.factor + smoothing * (new - self.factor)
        return CategoricalSteps(factor, self.floor)


def _row(t: IntArray, parameters: FloatArray) -> IntArray:
    return np.minimum(t, len(parameters) - 1)


def _log_prob(law: Law, a: Array, mu: FloatArray, sigma: FloatArray) -> FloatArray:
    z = to_z(law, a)
    log_q = log_phi((z - mu) / sigma) - np.log(sigma).sum(axis=-1)
    log_p: FloatArray = law.log_prob(a) + log_q - log_phi(z)
    return log_p


def _moments(
    z: FloatArray, w: FloatArray, t: IntArray, mass: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weighted mean and variance of z for each decision."""
    safe = np.where(mass > 0.0, mass, 1.0)
    mean = np.bincount(t, w * z, len(mass)) / safe
    variance = np.bincount(t, w * (z - mean[t]) ** 2, len(mass)) / safe
    return mean, variance
