"""A population of episodes that climbs towards failure by branching: adaptive multilevel splitting.

N episodes, the particles, are drawn whole. Each has a score after every decision, and its level is
the largest of them; a failure has the level ∞. In a round Z is the level of the particle at the
tenth part of the ranking, all that do not exceed Z are killed (ties as well), and as many are
branched off the survivors: each is a survivor, drawn uniformly, up to the decision after which its
score first exceeds Z, and goes on by itself from there. Every particle then stands for M/N' of what
it stood for before, M of N being the survivors and N' the new number.

The weighted particles, those that were killed with the weights that they had, are an unbiased
sample of the nominal at any round, and at any stopping time of rounds: E Σ w φ(τ) = E φ(τ), in
discrete time, ties and extinction included (Cérou and Guyader, 2007; Bréhier, Gazeau, Goudenège,
Lelièvre and Rousset, 2016). What a population has spent of the budget is known when a round starts,
so that a budget may end it, or let it shrink, without a bias.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from apeval.problem.draws import BRANCH, Draws
from apeval.problem.lineage import Lineage
from apeval.problem.types import FloatArray, IntArray
from apeval.simulate.adversary import Mixture
from apeval.simulate.branches import Branches, shared_part
from apeval.simulate.episodes import Episodes, join
from apeval.simulate.simulation import Simulation

_KILLED = 0.1  # of the particles in a round, at the least one
_NEAREST = float(np.nextafter(0.0, 1.0))  # margin of a state that has not failed, at the least
_ROUNDING = (1e-6, 1e-9)  # relative, absolute: a network's last digits depend on its batch
_SPARE = 0.5  # nats that a forecast leaves to go at the least
_SAFE, _GROWTH = 1.0, 1.2  # nats beyond a forecast, and growth in a round, where much is left


class Score(Protocol):
    """How near to failure a state is: any function of what an episode has been so far keeps the
    estimate unbiased, and a better one makes it more precise."""

    @property
    def top(self) -> float:
        """A score beyond which no state says more."""
        ...

    def __call__(self, t: IntArray, margin: FloatArray) -> FloatArray:
        """The score after decision t, row by row."""
        ...


class MarginScore:
    """−margin; all states that have not failed although their margin is 0 are alike."""

    top = -_NEAREST

    def __call__(self, t: IntArray, margin: FloatArray) -> FloatArray:
        return -np.maximum(margin, _NEAREST)


@dataclass(frozen=True)
class Forecast:
    """What earlier populations say of the way to failure."""

    log_probability: float
    """Its end, roughly."""
    per_nat: float
    """What a particle costs for every nat of the way, in the budget's unit."""


@dataclass
class Population:
    """One population at work."""

    simulation: Simulation
    proposal: Mixture
    n: int
    """Roots."""
    position: int
    """Of its first episode in the stage."""
    score: Score
    forecast: Forecast | None = None
    """What is known of the way before; a population that may take only so much looks at it."""
    log_weight: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Of every episode, in the order in which they were simulated: log of what it stands for."""
    log_pairs: FloatArray = field(default_factory=lambda: np.zeros(0))
    """log D of every episode when it left the population, see `Genealogy`."""
    family: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """The number of the root that it descends from."""
    climbed: list[tuple[float, float]] = field(default_factory=list)
    """(Z, log of the probability to exceed it) of every round."""
    cost: float = 0.0
    """What it took of the budget."""
    roots_cost: float = 0.0
    """What its roots took of it."""
    extinct: bool = False
    """Whether no particle exceeded the last Z."""
    strayed: bool = False
    """Whether a branch did not begin as the episode that it branched off."""
    _particles: Episodes | None = None
    _at: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    _path: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    _lineage: Lineage | None = None
    _now: float = 0.0
    _pairs_now: float = 0.0
    _log_mass: float = 0.0
    _next: tuple[float, Branches, IntArray] | None = None

    def advance(self, whole: bool = False) -> Episodes:
        """The roots, then the branches of a round at a time. As a `whole` they are simulated
        although somebody asked to stop."""
        if self._particles is None:
            new = self._start(whole)
        elif self._next is not None:
            new = self._round(*self._next)
        else:
            raise AssertionError("the population is over")
        self._next = self._choose()
        if self._next is None:
            self.end()
        return new

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do: failures only, or nearly; all at one level; or no
        budget for another round."""
        return self._particles is not None and self._next is None

    def end(self) -> None:
        """Weights as they stand: every round is a valid end."""
        self._next = None
        self.log_weight[self._at] = self._now
        self.log_pairs[self._at] = self._pairs_now

    @property
    def log_probability(self) -> float:
        """log of what it says of the failure probability so far; −∞ without failures."""
        if self._particles is None or not self._particles.failed.any():
            return -np.inf
        return self._log_mass + float(np.log(self._particles.failed.mean()))

    @property
    def per_nat(self) -> float:
        """What a particle cost for every nat of its way; 0 where it did not climb."""
        climbed = -self._log_mass * self.n
        return (self.cost - self.roots_cost) / climbed if climbed > 0.0 else 0.0

    def _start(self, whole: bool) -> Episodes:
        new = self._spend(self.n, None, whole)
        self._particles = new
        self._at = np.arange(self.n)
        self._path = self._scores(new)
        self._lineage = Lineage.own(new.ids)
        self._now = -float(np.log(self.n))
        self._pairs_now = -float(np.log1p(-1.0 / self.n)) if self.n > 1 else 0.0
        self._add(new, np.asarray(new.ids, np.int64))
        self.roots_cost = self.cost
        return new

    def _choose(self) -> tuple[float, Branches, IntArray] | None:
        """The next round: Z, and branches with those that they branch off; None: it is over."""
        particles, lineage = self._particles, self._lineage
        if particles is None or lineage is None:
            return None
        level = self._path[:, -1]
        place = max(1, int(_KILLED * len(level))) - 1
        Z = float(np.partition(level, place)[place])
        if self.score.top <= Z:
            return None
        live = np.flatnonzero(level > Z)
        if not len(live):
            self.extinct = True
            return None
        since = np.argmax(self._path[live] > Z, axis=1) + 1
        K = min(self._wanted(len(level), len(live)), self._affordable(particles, since))
        if K < 1:
            return None
        return (Z, *self._branch(particles, lineage, live, since, K))

    def _round(self, Z: float, branches: Branches, parents: IntArray) -> Episodes:
        """Kill, and let the branches grow."""
        particles, lineage = self._particles, self._lineage
        if particles is None or lineage is None:
            raise AssertionError("a round needs particles")
        level = self._path[:, -1]
        live, N, K = np.flatnonzero(level > Z), len(level), len(parents)
        M = len(live)
        new = self._spend(K, branches)
        if branches.shared is None and not _begin_alike(new, particles, parents, branches.since):
            self.strayed = True
        dead = self._at[level <= Z]
        self.log_weight[dead], self.log_pairs[dead] = self._now, self._pairs_now
        self._now += float(np.log(M / (M + K)))
        self._pairs_now -= float(np.log1p(-K / (M + K) ** 2))
        self._log_mass += float(np.log(M / N))
        self.climbed.append((Z, self._log_mass))
        family = self.family[self._at[parents]]
        self._at = np.concatenate([self._at[live], len(self.family) + np.arange(K)])
        self._add(new, family)
        self._path = _stacked(self._path[live], self._scores(new))
        self._lineage = Lineage.join([lineage.take(live), branches.lineage])
        self._particles = join([particles.take(level > Z), new])
        return new

    def _branch(
        self, particles: Episodes, lineage: Lineage, live: IntArray, first_above: IntArray, K: int
    ) -> tuple[Branches, IntArray]:
        """K branches off survivors, each where its score is first above Z."""
        ids = self.simulation.next_id + np.arange(K)
        u = Draws(self.simulation.key, ids).stream(BRANCH, 1)[:, 0]
        drawn = (u * len(live)).astype(np.int64)
        parents, since = live[drawn], first_above[drawn]
        first = int(particles.law_0 is not None)
        length = particles.length[parents]
        over = (since + first == length) & ~particles.unresolved[parents]
        can_copy = particles.trace is not None and particles.trace.x is not None
        branches = Branches(
            lineage.take(parents).branched(since, ids),
            since,
            shared_part(particles, parents, since) if can_copy else None,
            over,
            since + first if can_copy else np.zeros(K, np.int64),
        )
        return branches, parents

    def _wanted(self, N: int, M: int) -> int:
        """How many branches stand in for the killed N − M: as many, unless a forecast says that
        the rest of the way would take more of the budget than is left, or much less."""
        it, K = self.simulation, N - M
        if self.forecast is None or self.forecast.per_nat <= 0.0:
            return K
        left = it.steps_left if it.budget.steps is not None else it.episodes_left
        nats = self._log_mass - self.forecast.log_probability
        fewer = (left or 0) / (max(nats, _SPARE) * self.forecast.per_nat)
        more = (left or 0) / ((nats + _SAFE) * self.forecast.per_nat) if nats > 0.0 else 0.0
        most = min(more, _GROWTH * N)
        return max(int(min(fewer, max(most, N))) - M, 1)

    def _affordable(self, particles: Episodes, since: IntArray) -> int:
        """How many branches the budget surely has room for, whichever survivors they are of: a
        number that depended on who is drawn would make the cheap ones likelier."""
        it = self.simulation
        if it.steps_left is None:
            return it.episodes_left or 0
        most = it.most_decisions
        if it.problem.horizon is None:
            most = min(most, 2 * it.longest_seen)
        if particles.trace is not None and particles.trace.x is not None:
            most -= int(since.min()) + int(particles.law_0 is not None)
        return it.steps_left // max(most, 1)

    def _spend(self, n: int, branches: Branches | None, whole: bool = False) -> Episodes:
        it = self.simulation
        before = it.steps if it.budget.steps is not None else it.episodes
        position = self.position + len(self.family)
        new = it.run(self.proposal, n, position, branches, follow=True, whole=whole)
        self.cost += (it.steps if it.budget.steps is not None else it.episodes) - before
        return new

    def _add(self, new: Episodes, family: IntArray) -> None:
        unknown = np.full(new.n, np.nan)
        self.family = np.concatenate([self.family, family])
        self.log_weight = np.concatenate([self.log_weight, unknown])
        self.log_pairs = np.concatenate([self.log_pairs, unknown])

    def _scores(self, it: Episodes) -> FloatArray:
        """The largest score so far after every decision, (n, T); after the end it stays."""
        if it.trace is None:
            raise AssertionError("episodes that branch have a trace")
        width = int(it.t.max(initial=0)) + 1
        path = np.full((it.n, width), -np.inf)
        path[it.episode, it.t] = self.score(it.t, it.trace.margin)
        failed = np.flatnonzero(it.failed)
        path[failed, it.length[failed] - 1 - int(it.law_0 is not None)] = np.inf
        return np.maximum.accumulate(path, axis=1)


def _stacked(one: FloatArray, other: FloatArray) -> FloatArray:
    """Paths one below the other; the shorter ones keep their last level."""
    width = max(one.shape[1], other.shape[1])
    return np.concatenate(
        [np.pad(it, ((0, 0), (0, width - it.shape[1])), mode="edge") for it in (one, other)]
    )


def _begin_alike(new: Episodes, old: Episodes, parents: IntArray, since: IntArray) -> bool:
    """Whether branches that were played from the start begin as the episodes they branched off."""
    there = new.t < since[new.episode]
    before = shared_part(old, parents, since)
    if int(there.sum()) != len(before.t):
        return False
    return bool(np.allclose(new.s[there], before.s, *_ROUNDING, equal_nan=True))
