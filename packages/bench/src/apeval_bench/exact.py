"""The exact zero-variance adversary of the intersections, and what its episodes leave behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from apeval.problem.draws import NATURE, Draws, make_key
from apeval.problem.problem import Problem
from apeval.problem.types import Array, BoolArray, FloatArray, IntArray
from apeval.simulate.adversary import Adversary, Situation
from apeval.simulate.rollout import situation
from apeval_paper.environments.intersection.adversary import ZeroVariance
from apeval_paper.environments.intersection.dp import DEFAULT, Grid, solve
from apeval_paper.environments.intersection.geometry import PRESETS

Decide = Callable[[Array, Situation, Draws], tuple[FloatArray, FloatArray]]
"""(x, what nature knows, draws) → a_E and log q(a_E)."""


@dataclass(frozen=True)
class Walked:
    """n episodes of an intersection, decision by decision; arrays are (T, n, …)."""

    x: list[Array]
    """The simulator's states before every decision, and after the last: T + 1."""
    now: list[Situation]
    a_E: list[FloatArray]
    log_p: FloatArray
    log_q: FloatArray
    """Of the adversary that drew them, (T, n)."""
    alive: BoolArray
    """Whether the decision belongs to the episode, (T, n)."""
    failed: BoolArray
    ended_at: IntArray
    """Decisions made, (n,)."""

    def weights(self) -> FloatArray:
        """p(τ)/q(τ), (n,)."""
        w: FloatArray = np.exp(np.where(self.alive, self.log_p - self.log_q, 0.0).sum(axis=0))
        return w

    def log_density(self, adversary: Adversary) -> FloatArray:
        """log q(τ) of another adversary that sees these situations, (n,)."""
        terms = [adversary.log_prob(s, a) for s, a in zip(self.now, self.a_E, strict=True)]
        total: FloatArray = np.where(self.alive, np.stack(terms), 0.0).sum(axis=0)
        return total

    def log_nominal(self) -> FloatArray:
        """log p(τ), (n,)."""
        total: FloatArray = np.where(self.alive, self.log_p, 0.0).sum(axis=0)
        return total


#: Int-v0 has six layers in three dimensions: a coarser grid serves, as weights stay exact.
GRIDS = {"int-v0": Grid(u=120, v=30, lines=3), "int-v1": DEFAULT}


def exact_adversary(name: str) -> ZeroVariance:
    """π_E* of the dynamic programme."""
    return ZeroVariance(solve(PRESETS[name], GRIDS[name]))


def decide_exactly(adversary: ZeroVariance) -> Decide:
    """Sample with the exact adversary, which needs the simulator's state."""

    def decide(x: Array, now: Situation, draws: Draws) -> tuple[FloatArray, FloatArray]:
        return adversary.sample(x, draws.stream(NATURE, adversary.uniforms))

    return decide


def decide_by(adversary: Adversary, d_E: int) -> Decide:
    """Sample with an adversary that was learned."""

    def decide(x: Array, now: Situation, draws: Draws) -> tuple[FloatArray, FloatArray]:
        a_E = adversary.sample(now, draws.stream(NATURE, d_E))
        return a_E, adversary.log_prob(now, a_E)

    return decide


def walk(problem: Problem, decide: Decide, n: int, seed: int) -> Walked:
    """Roll n episodes to the horizon; after a crash the rows are kept but not alive."""
    T = problem.longest
    draws = Draws(make_key(seed), np.arange(n))
    x = problem.reset(draws)
    xs, now_, a_, alive_ = [x], [], [], []
    log_p, log_q = [], []
    alive, ended = np.ones(n, bool), np.full(n, T)
    failed = np.zeros(n, bool)
    for t in range(T):
        draws = draws.at(t)
        now = situation(problem, x, draws)
        a_E, log_q_t = decide(x, now, draws)
        after = problem.step(x.copy(), now.a_A, a_E, draws)
        crash = np.asarray(problem.failed(after), bool) & alive
        now_.append(now)
        a_.append(a_E)
        alive_.append(alive)
        log_p.append(now.law.log_prob(a_E))
        log_q.append(log_q_t)
        ended = np.where(crash, t + 1, ended)
        failed, alive, x = failed | crash, alive & ~crash, after
        xs.append(x)
    return Walked(xs, now_, a_, np.stack(log_p), np.stack(log_q), np.stack(alive_), failed, ended)
