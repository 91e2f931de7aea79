"""Adaptive multilevel splitting for truths too rare to count: plain, with whole paths kept.

Cérou and Guyader (2007); unbiased in discrete time with this treatment of ties (Bréhier et al.,
2016). It shares no code with apeval's methods.
"""

from __future__ import annotations

import numpy as np

from apeval.problem.draws import NATURE, Draws, make_key
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray, IntArray

_KILLED = 0.1
_MOST_ROUNDS = 100_000


class _Paths:
    """Episodes with the state and the smallest margin so far at every time."""

    def __init__(self, problem: Problem, n: int, seed: int) -> None:
        self.problem, self.T = problem, problem.longest
        self.key, self.fresh, self.steps = make_key(seed), n, 0
        ids = np.arange(n)
        x = np.asarray(problem.reset(Draws(self.key, ids)))
        self.x = np.zeros((self.T + 1, *x.shape), x.dtype)
        self.x[0] = x
        self.low = np.full((self.T + 1, n), np.inf)
        self.end = np.zeros(n, np.int64)
        self.roll(ids, np.zeros(n, np.int64), ids)

    @property
    def level(self) -> FloatArray:
        """The smallest margin of each whole path; −∞ where it failed."""
        low: FloatArray = self.low[self.end, np.arange(len(self.end))]
        return low

    def roll(self, who: IntArray, since: IntArray, ids: IntArray) -> None:
        """Simulate paths on from their own times, with the random numbers of fresh episodes."""
        self.end[who] = since
        running = np.ones(len(who), bool)
        for t in range(int(since.min(initial=self.T)), self.T):
            now = np.flatnonzero(running & (since <= t))
            if not len(now):
                continue
            mine = who[now]
            new, margin, over = self._step(self.x[t, mine], Draws(self.key, ids[now], t))
            self.x[t + 1, mine] = new
            self.low[t + 1, mine] = np.minimum(self.low[t, mine], margin)
            self.end[mine] = t + 1
            self.steps += len(now)
            running[now] = ~over

    def _step(self, x: Array, draws: Draws) -> tuple[Array, FloatArray, Array]:
        """New states, their margins (−∞ for failures), and which episodes are over."""
        problem = self.problem
        if problem.margin is None:
            raise ValueError("splitting needs a margin")
        a_A = problem.act(x, draws)
        a_E = problem.law(x, a_A).sample(draws.stream(NATURE, problem.nominal.dim))
        new = problem.step(x, a_A, a_E, draws)
        failed = np.asarray(problem.failed(new)) > 0
        margin = np.where(failed, -np.inf, np.asarray(problem.margin(new), np.float64))
        return new, margin, failed if problem.done is None else failed | problem.done(new)

    def branch(self, who: IntArray, parents: IntArray, level: float) -> None:
        """Paths become copies of their parents up to where those passed the level, and go on."""
        passed = self.low[:, parents] < level
        since = passed.argmax(axis=0)
        self.x[:, who] = self.x[:, parents]
        self.low[:, who] = self.low[:, parents]
        ids = self.fresh + np.arange(len(who))
        self.fresh += len(who)
        goes_on = ~np.isneginf(self.low[since, who])
        self.end[who] = since
        self.roll(who[goes_on], since[goes_on], ids[goes_on])


def split(problem: Problem, particles: int, seed: int) -> tuple[float, float]:
    """One run: an unbiased estimate of the failure probability.

    Args:
        problem: A problem with a margin read in every state, and an array as its state.
        particles: Episodes side by side.
        seed: Of everything random.

    Returns:
        The estimate, and the decisions that it took.
    """
    paths, rng = _Paths(problem, particles, seed), np.random.default_rng([seed, 1])
    log_p = 0.0
    for _ in range(_MOST_ROUNDS):
        level = paths.level
        worst = float(np.sort(level)[::-1][max(1, int(_KILLED * particles)) - 1])
        if np.isneginf(worst):
            break
        dead = np.flatnonzero(level >= worst)
        living = np.flatnonzero(level < worst)
        if not len(living):
            return 0.0, float(paths.steps)
        log_p += float(np.log(len(living) / particles))
        paths.branch(dead, rng.choice(living, len(dead)), worst)
    share = float(np.isneginf(paths.level).mean())
    return float(np.exp(log_p)) * share, float(paths.steps)
