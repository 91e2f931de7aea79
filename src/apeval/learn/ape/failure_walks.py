"""Walks from failures that exploration met to those that π_E,gt would show.

Failures of widened proposals lie far out: their weights p/q differ by many orders of magnitude, a
fit to them follows one or two, and the modes of all others are lost. So each of a few failures
begins a walk: z' = √(1−s²) z + s ε leaves N(0, I) as it is, in any number of dimensions
(preconditioned Crank-Nicolson), and a step that does not fail is not taken. A walk forgets how far
out it began and stays in its mode, so that where walks end is a sample of p(τ | failure), mode by
mode, without weights. Every other step draws a window of decisions and components anew instead, and
leaves the rest as it is: what does not matter for the failure is forgotten at once. Walks need no
margin; randomness that nobody controls is drawn anew in every step (pseudo-marginal
Metropolis-Hastings).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from apeval.learn.ape.decision_rows import DecisionRows, join
from apeval.learn.ape.episode_features import EpisodeFeatures
from apeval.learn.whitened import to_action
from apeval.problem.draws import MIXTURE, Draws
from apeval.problem.laws import Law
from apeval.problem.types import Array, BoolArray, FloatArray, IntArray
from apeval.simulate.adversary import Adversary, Situation, mixture, only
from apeval.simulate.simulation import Simulation

_STEP, _WINDOW = 0.7, 0.5  # s, and the part of an episode that is drawn anew, of the first steps
_ACCEPTED = 0.35  # share of steps that fail, towards which s goes
_SHORT = 50  # decisions
_PACE = 0.7  # of log s, per step


@dataclass(frozen=True, eq=False)
class NearEpisodes(Adversary):
    """Disturbances near those of one of several episodes, which the episode's own random number
    chooses; beyond the chosen one's end, π_E,gt."""

    e: FloatArray
    """Whitened, (N, longest, d)."""
    length: IntArray
    z_0: FloatArray
    """(N, d_0); d_0 = 0: the start is drawn from its nominal law."""
    step: FloatArray
    """s of each, (N, longest, d)."""
    step_0: FloatArray
    """s of the starts, (N,)."""
    persistent: ClassVar[bool] = True

    def chosen(self, whole: FloatArray) -> IntArray:
        """Which episode, from uniforms (n, d)."""
        n = len(self.length)
        return np.minimum((whole[:, 0] * n).astype(np.int64), n - 1)

    def one(self, k: int) -> NearEpisodes:
        """Near the k-th episode only."""
        at = slice(k, k + 1)
        return NearEpisodes(
            self.e[at], self.length[at], self.z_0[at], self.step[at], self.step_0[at]
        )

    def sample(self, now: Situation, u: FloatArray) -> Array:
        if now.whole is None:
            raise TypeError("a walk needs the episode's own random numbers")
        z: FloatArray = ndtri(u)
        k = self.chosen(now.whole)
        known = now.t < self.length[k]
        at = k[known], now.t[known]
        z[known] = np.sqrt(1.0 - self.step[at] ** 2) * self.e[at] + self.step[at] * z[known]
        return to_action(now.law, z)

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        raise TypeError("a step of a walk has no density")

    def sample_initial(self, law: Law, u: FloatArray) -> Array:
        if self.z_0.shape[1] == 0:
            return law.sample(u)
        step = self.step_0[:, None]
        return to_action(law, np.sqrt(1.0 - step**2) * self.z_0 + step * ndtri(u))


@dataclass
class FailureWalks:
    """N failing episodes on their walks."""

    rows: DecisionRows
    kind: IntArray
    step: FloatArray
    """s of each walk, (N,)."""
    window: FloatArray
    """Which part of an episode each walk draws anew in every other step, (N,)."""
    rng: np.random.Generator
    moves: int = 0
    """Steps that were taken."""

    @property
    def n(self) -> int:
        return self.rows.n

    @property
    def alone(self) -> bool:
        """Whether every walk is a component of its own: each then has its turn, but for long
        episodes this takes too long."""
        return bool(self.rows.z_0.shape[1]) or int(self.rows.lengths().max()) <= _SHORT

    def advance(self, simulation: Simulation, scene: EpisodeFeatures) -> None:
        """A step of every walk."""
        n, lengths = self.n, self.rows.lengths()
        paths = np.zeros((n, int(lengths.max()), self.rows.e.shape[1]))
        within = np.arange(len(self.rows.e)) - (np.cumsum(lengths) - lengths)[self.rows.episode]
        paths[self.rows.episode, within] = self.rows.e
        anew = self.moves % 2 == 1
        if anew:
            step, step_0 = self._windows(lengths, paths.shape)
        else:
            step_0 = self.step.copy()  # these change after the step, a proposal never does
            step = np.broadcast_to(step_0[:, None, None], paths.shape)
        order = (np.arange(n) + self.moves * int(0.38 * n)) % n  # positions choose unevenly
        near = NearEpisodes(paths, lengths, self.rows.z_0, step, step_0)
        if self.alone:
            each = [near.one(int(k)) for k in order]
            batch = simulation.run(mixture(each, [1.0 / n] * n), n, 0)
            parent: IntArray = order[batch.component]
        else:
            batch = simulation.run(only(near), n, 0)
            parent = near.chosen(Draws(simulation.key, batch.ids).stream(MIXTURE, paths.shape[2]))
        failed = batch.failed & ~batch.unresolved
        # who has no child stays where it is; of several children the last one counts
        rows = join(self.rows, scene.rows(batch))
        kind = np.concatenate([self.kind, batch.kind])
        now = np.arange(n)
        now[parent] = np.where(failed, n + np.arange(batch.n), parent)
        self.rows, self.kind = take_episodes(rows, now), kind[now]
        changed = self.window if anew else self.step
        np.multiply.at(changed, parent, np.exp(_PACE * (failed - _ACCEPTED)))
        np.clip(changed, 0.02, 0.95, out=changed)
        self.moves += 1

    def _windows(
        self, lengths: IntArray, shape: tuple[int, ...]
    ) -> tuple[FloatArray, FloatArray]:
        """s = 1 in a random window of decisions and some of the components, 0 elsewhere."""
        n, longest, d = shape
        some = np.maximum(1.0, np.ceil(self.window * lengths * d))
        components = np.minimum(self.rng.integers(1, d + 1, n), some)
        length = np.maximum(1, np.round(some / components))
        first = np.floor(self.rng.uniform(size=n) * (lengths - length + 1))
        t = np.arange(longest)
        inside = (t >= first[:, None]) & (t < (first + length)[:, None])
        rank = self.rng.uniform(size=(n, d)).argsort(axis=1)
        chosen = rank < components[:, None]
        step_0 = np.where(self.rng.uniform(size=n) < self.window, 1.0, 0.0)
        return (inside[:, :, None] & chosen[:, None, :]).astype(np.float64), step_0

    def take(self, keep: BoolArray) -> FailureWalks:
        """Some of the walks."""
        return FailureWalks(
            self.rows.take(keep), self.kind[keep], self.step[keep].copy(),
            self.window[keep].copy(), self.rng, self.moves,
        )  # fmt: skip


def take_episodes(rows: DecisionRows, index: IntArray) -> DecisionRows:
    """Episodes in any order, also several times."""
    lengths = rows.lengths()
    first = np.cumsum(lengths) - lengths
    count = lengths[index]
    episode = np.repeat(np.arange(len(index)), count)
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    row = np.repeat(first[index], count) + within
    return DecisionRows(
        rows.e[row], rows.p[row], rows.x[row], rows.t[row], episode, len(index), rows.z_0[index]
    )


def begin_walks(
    failures: DecisionRows, kind: IntArray, w: FloatArray, n: int, rng: np.random.Generator
) -> FailureWalks:
    """Walks from n of the failures, drawn by their weights."""
    edges = np.cumsum(w) / w.sum()
    index = np.minimum(np.searchsorted(edges, (np.arange(n) + rng.uniform()) / n), len(w) - 1)
    step, window = np.full(n, _STEP), np.full(n, _WINDOW)
    return FailureWalks(take_episodes(failures, index), kind[index], step, window, rng)
