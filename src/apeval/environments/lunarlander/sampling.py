"""Episodes of the lander from a mixture over whole trajectories, with exact weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtri

from apeval.problem.draws import MIXTURE, NATURE, Draws
from apeval.problem.laws import pick
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray, IntArray

_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Proposal:
    """q(τ) = Σ_j α_j q_j(τ): one component per trajectory, z_t ~ N(mean_jt, diag(std_jt²)).

    z is the disturbance in units of the nominal's std. Decisions beyond the given ones are
    nominal. A component that is nominal throughout bounds the weight by 1/α of it.
    """

    alpha: FloatArray
    mean: FloatArray  # (components, decisions, 2)
    std: FloatArray

    @classmethod
    def nominal(cls) -> Proposal:
        """Plain Monte Carlo: every weight is 1."""
        return cls(np.ones(1), np.zeros((1, 1, 2)), np.ones((1, 1, 2)))

    def choose(self, draws: Draws) -> IntArray:
        """The component of each trajectory."""
        j: IntArray = pick(self.alpha[None, :], draws.stream(MIXTURE, 1))[:, 0]
        return j

    def sample(self, j: IntArray, t: int, u: FloatArray) -> FloatArray:
        """z_t of trajectories that follow the components j."""
        z: FloatArray = ndtri(u)
        if t < self.mean.shape[1]:
            z = self.mean[j, t] + self.std[j, t] * z
        return z

    def log_density(self, t: int, z: FloatArray) -> FloatArray:
        """log q_j(z_t) under every component, shape (n, components)."""
        if t >= self.mean.shape[1]:
            return np.repeat(_log_normal(z)[:, None], len(self.alpha), axis=1)
        y: FloatArray = (z[:, None, :] - self.mean[None, :, t]) / self.std[None, :, t]
        log_q: FloatArray = _log_normal(y) - np.log(self.std[:, t]).sum(axis=-1)
        return log_q


def _log_normal(z: FloatArray) -> FloatArray:
    log_p: FloatArray = (-0.5 * z * z - 0.5 * _LOG_2PI).sum(axis=-1)
    return log_p


@dataclass(frozen=True)
class Outcomes:
    """What a batch of episodes gave, in the order of their ids."""

    weight: FloatArray  # p(τ)/q(τ)
    kind: IntArray  # 0: landed
    margin: FloatArray
    decisions: IntArray
    frames: IntArray
    z: FloatArray  # (n, horizon, 2), NaN after the end


def roll(problem: Problem, key: IntArray, ids: IntArray, proposal: Proposal) -> Outcomes:
    """Roll the episodes `ids` of the run `key` under a proposal."""
    n, std = len(ids), np.asarray(problem.parameters["std"])
    start = Draws(key, ids)
    x, j, rows = problem.reset(start), proposal.choose(start), np.arange(n)
    log_p, log_q = np.zeros(n), np.tile(np.log(proposal.alpha), (n, 1))
    z = np.full((n, problem.longest, 2), np.nan)
    kind, decisions, frames = (np.zeros(n, dtype=np.int64) for _ in range(3))
    margin = np.full(n, np.inf)
    for t in range(problem.longest):
        draws = Draws(key, ids[rows], t)
        z_t = proposal.sample(j[rows], t, draws.stream(NATURE, 2))
        z[rows, t] = z_t
        log_p[rows] += _log_normal(z_t)
        log_q[rows] += proposal.log_density(t, z_t)
        x = problem.step(x, np.zeros((len(rows), 2)), std * z_t, draws)
        kind[rows], margin[rows] = problem.failed(x), [flight.margin for flight in x.landers]
        decisions[rows], frames[rows] = t + 1, [flight.frames for flight in x.landers]
        going = np.array([not flight.ended for flight in x.landers])
        x, rows = x[going], rows[going]
        if not len(rows):
            break
    weight = np.exp(log_p - logsumexp(log_q, axis=1))
    return Outcomes(weight, kind, margin, decisions, frames, z)
