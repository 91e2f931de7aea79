"""The cross-entropy method for rare events (Rubinstein and Kroese, 2004), level by level."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from apeval.learn.cem.config import CemConfig
from apeval.learn.cem.families import CategoricalSteps, Family, GaussianSteps
from apeval.learn.method import Learner
from apeval.learn.whitened import can_whiten
from apeval.problem.problem import Problem
from apeval.problem.types import BoolArray
from apeval.remedies import Note
from apeval.simulate.adversary import Mixture, Nominal, only, with_nominal
from apeval.simulate.episodes import Episodes, join
from apeval.simulate.simulation import Simulation

_FEWEST = 2  # elites below which nothing is fitted


class CrossEntropy(Learner):
    """N episodes under π_E⁽ᵐ⁾; the ρ-quantile of their margins is the next level γ (never below
    0); π_E⁽ᵐ⁺¹⁾ is the weighted maximum likelihood of the episodes below it. Without a margin
    only failures are below."""

    def __init__(self, problem: Problem, config: CemConfig) -> None:
        self.problem, self.config = problem, config
        self.pi_E = _nominal(problem, config)
        self.learning: Simulation | None = None
        self.batches: list[Episodes] = []  # of the present π_E
        self.level = np.inf
        self.fits = 0
        self.updates = 0

    def advance(self, simulation: Simulation) -> bool:
        """One batch of episodes, and an update once there are enough."""
        c = self.config
        if c.learn_share == 0.0:
            return False
        if self.learning is None:
            self.learning = simulation.part(simulation.budget.share(c.learn_share))
        n = self.learning.affordable()
        if n > 0:
            n = min(n, self._wanted(self.learning))
            batch = self.learning.run(only(self.pi_E), n, 0)
            self.batches.append(batch)
        if self.batches and (n == 0 or self._spent(self.learning) >= self._due(self.learning)):
            self._update(join(self.batches))
            self.batches = []
        return n > 0

    def _wanted(self, learning: Simulation) -> int:
        """Episodes until the next update is due; at least one."""
        due = max(self._due(learning) - self._spent(learning), 0.0)
        if learning.budget.episodes is not None:
            return max(1, math.ceil(due * learning.budget.episodes))
        length = learning.steps / learning.episodes if learning.episodes else self._guess()
        return max(1, math.ceil(due * (learning.budget.steps or 0) / length))

    def _guess(self) -> float:
        return float(self.problem.horizon or 16)

    def _spent(self, learning: Simulation) -> float:
        """Share of the learning budget that is gone."""
        if learning.budget.episodes is not None:
            return learning.episodes / learning.budget.episodes
        return learning.steps / (learning.budget.steps or 1)

    def _due(self, learning: Simulation) -> float:
        """Share of the learning budget after which the next update comes."""
        # the last batch counts as full although a rest of the budget is too small for an episode
        budget = learning.budget
        episodes = budget.episodes or (budget.steps or 0) / self._guess()
        batches = max(float(self.config.updates), episodes / self.config.batch)
        return 0.999 * (self.updates + 1) / batches

    def _update(self, episodes: Episodes) -> None:
        self.updates += 1
        elite = self._elite(episodes)
        if int(elite.sum()) < _FEWEST:
            return
        log_L = episodes.log_density(Nominal()) - episodes.log_density(self.pi_E)
        log_w = np.where(elite, log_L, -np.inf)
        weights = np.exp(log_w - float(logsumexp(log_w)))
        self.pi_E = self.pi_E.fitted(episodes, weights, self.config.smoothing)
        self.fits += 1

    def _elite(self, episodes: Episodes) -> BoolArray:
        if self.problem.margin is None:
            return episodes.failed
        quantile = float(np.quantile(episodes.margin, self.config.elite))
        self.level = max(0.0, quantile)
        return np.asarray(episodes.margin <= self.level)

    def proposal(self) -> Mixture:
        return with_nominal(self.pi_E, self.config.nominal_share)

    def warnings(self) -> list[Note]:
        if self.updates and not self.fits:
            text = "learning saw no failure, so the adversary learned nothing"
            if self.problem.margin is None:
                text += ". A margin of the problem would lead to failures"
            return [Note(text, serious=False, more=1.0)]
        if self.problem.margin is not None and self.fits and self.level > 0.0:
            text = f"the levels of the margin came down to {self.level:.3g} only, not to failure"
            return [Note(text, serious=False, more=1.0)]
        return []


def _nominal(problem: Problem, config: CemConfig) -> Family:
    steps = problem.horizon or 1  # without a horizon all decisions share one density
    if problem.nominal.outcomes is not None:
        return CategoricalSteps.nominal(steps, problem.nominal.outcomes, config.floor)
    start = problem.initial
    dim_0 = 0 if start is None or not can_whiten(start) else start.dim
    return GaussianSteps.nominal(steps, problem.nominal.dim, dim_0, config.smallest_std)
