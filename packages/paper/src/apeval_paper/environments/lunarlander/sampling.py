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
    """q(τ) = Σ_j α_j q_j(τ): one component per trajectory, over all that is random in it.

    The disturbance in units of the nominal's std has z_t ~ N(mean_jt, diag(std_jt²)). The main
    engine's dispersion u, nominally uniform on (−1, 1), has the density (1 + c_jk u)/2 in frame
    k: nobody controls it in an evaluation, but a truth may sample it as it likes. Decisions and
    frames beyond the given ones are nominal. A component that is nominal throughout bounds the
    weight by 1/α of it.
    """

    alpha: FloatArray
    mean: FloatArray  # (components, decisions, 2)
    std: FloatArray
    tilt: FloatArray | None = None  # c: (components, frames); None: the episode's own generator

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

    def tilts(self, first: int, frames: int) -> FloatArray:
        """c_jk of some frames, shape (components, frames)."""
        c = np.zeros((len(self.alpha), frames))
        if self.tilt is not None:
            known = self.tilt[:, first : first + frames]
            c[:, : known.shape[1]] = known
        return c


def tilted(r: FloatArray, c: FloatArray) -> FloatArray:
    """Uniforms r on (0, 1) to the density (1 + c u)/2 on (−1, 1), by inverse CDF.

    >>> tilted(np.array([0.0, 0.25, 1.0]), np.array([0.0, 0.0, 0.5])).tolist()
    [-1.0, -0.5, 1.0]
    """
    # the root of c u² + 2u + 2 − c − 4r = 0, in the form that also holds for c = 0
    b = 4.0 * r - 2.0 + c
    u: FloatArray = b / (1.0 + np.sqrt(1.0 + c * b))
    return u


def _log_normal(z: FloatArray) -> FloatArray:
    log_p: FloatArray = (-0.5 * z * z - 0.5 * _LOG_2PI).sum(axis=-1)
    return log_p


@dataclass(frozen=True)
class SampledOutcomes:
    """What a batch of episodes gave, in the order of their ids."""

    weight: FloatArray  # p(τ)/q(τ)
    kind: IntArray  # 0: landed
    margin: FloatArray
    decisions: IntArray
    frames: IntArray
    z: FloatArray  # (n, horizon, 2), NaN after the end


def roll(problem: Problem, key: IntArray, ids: IntArray, proposal: Proposal) -> SampledOutcomes:
    """Roll the episodes `ids` of the run `key` under a proposal."""
    n, std, per = len(ids), float(problem.parameters["std"]), int(problem.parameters["frames"])
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
        c, u = proposal.tilts(t * per, per), np.zeros((len(rows), per))
        if proposal.tilt is not None:
            r = draws.uniform(2 * per).reshape(-1, per, 2)
            u, other = tilted(r[:, :, 0], c[j[rows]]), 2.0 * r[:, :, 1] - 1.0
            for lander, pairs in zip(x.landers, np.stack([u, other], axis=2), strict=True):
                lander.disperse(pairs.ravel().tolist())
        x = problem.step(x, np.zeros((len(rows), 2)), std * z_t, draws)
        kind[rows], margin[rows] = problem.failed(x), [lander.margin for lander in x.landers]
        decisions[rows], frames[rows] = t + 1, [lander.frames for lander in x.landers]
        flown = np.arange(per) < (frames[rows] - t * per)[:, None]
        log_q[rows] += (np.log1p(c[None] * u[:, None]) * flown[:, None]).sum(axis=2)
        going = np.array([not lander.ended for lander in x.landers])
        x, rows = x[going], rows[going]
        if not len(rows):
            break
    weight = np.exp(log_p - logsumexp(log_q, axis=1))
    return SampledOutcomes(weight, kind, margin, decisions, frames, z)
