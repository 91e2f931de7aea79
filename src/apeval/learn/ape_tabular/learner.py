"""What all forms of tabular APE share: the budget, the curve and the warnings."""

from __future__ import annotations

from abc import abstractmethod

from apeval.learn.ape_tabular.config import TdConfig
from apeval.learn.method import Basis, Learner
from apeval.problem.problem import Problem
from apeval.remedies import Note
from apeval.simulate.adversary import Adversary, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Simulation

CURVE_POINTS = 200
_ROUNDS = 50  # progress is shown this often while learning


class TabularLearner(Learner):
    """Runs whole episodes until the stopping rule holds or the learning budget is spent."""

    def __init__(self, problem: Problem, config: TdConfig) -> None:
        self.problem, self.config = problem, config
        self.steps = 0
        self.episodes = 0
        self.stopped = False
        self.failures_by_kind = [0] * (len(problem.kinds) + 1)
        self._curve: list[tuple[int, float]] = []
        self.curve_every = 1
        self._exploring = False

    @abstractmethod
    def run_round(self, simulation: Simulation, limit: int, episodes: int, round_ends: int) -> None:
        """Episodes until `round_ends` steps, the learning budget (`limit` steps, `episodes`) is
        spent, or the stopping rule holds. An episode at the limit is cut."""

    @abstractmethod
    def value(self) -> float:
        """The learned v(s0)."""

    def undecided(self) -> bool:
        """Whether untried transitions could still add much to v(s0)."""
        return False

    def explorer(self) -> Adversary:
        """An adversary that goes where untried transitions may lead to failures."""
        raise TypeError("only a learner that is `undecided` explores")

    def learn_transitions(self, episodes: Episodes) -> int:
        """Remember the transitions of episodes; returns how many were new."""
        raise TypeError("only a learner that is `undecided` explores")

    def basis(self) -> Basis:
        return Basis("the learned v(s0)", self.value())

    def advance(self, simulation: Simulation) -> bool:
        """One round of episodes."""
        budget = simulation.budget.share(self.config.learn_share)
        limit = budget.steps if budget.steps is not None else 10**15
        episodes = budget.episodes if budget.episodes is not None else 10**15
        if self.config.learn_share == 0.0:
            return False
        self.curve_every = max(1, min(limit, episodes) // CURVE_POINTS)
        round_ends = simulation.steps + max(1, limit // _ROUNDS if budget.steps else 1_000)
        if self._exploring:
            left = min((limit - self.steps) / self.mean_length, episodes - simulation.episodes)
            share = (limit if budget.steps else episodes * self.mean_length) / _ROUNDS
            return self._explore(simulation, int(min(left, max(1.0, share / self.mean_length))))
        self.run_round(simulation, limit, episodes, round_ends)
        self.episodes = simulation.episodes
        spent = self.steps >= limit or simulation.episodes >= episodes
        self._exploring = self.stopped and not spent and self.undecided()
        return self._exploring or not (self.stopped or spent)

    def _explore(self, simulation: Simulation, n: int) -> bool:
        """A few episodes towards what was never tried; False when that is over."""
        if n < 1:
            return False
        batch = simulation.run(only(self.explorer()), n, 0)
        self.steps += batch.steps
        self.episodes = simulation.episodes
        for kind in batch.kind[batch.failed]:
            self.failures_by_kind[int(kind)] += 1
        return self.learn_transitions(batch) > 0 and self.undecided()

    @property
    def mean_length(self) -> float:
        """Decisions per episode, at least 1."""
        return max(1.0, self.steps / max(1, self.episodes))

    def note_curve(self, v_0: float) -> None:
        """Keep v(s0) at about 200 points along the way."""
        if self.steps % self.curve_every == 0:
            self._curve.append((self.steps, v_0))

    def curve(self) -> list[tuple[int, float]]:
        return self._curve

    def warnings(self) -> list[Note]:
        if sum(self.failures_by_kind) == 0 and self.steps:
            text = (
                f"learning saw no failure in {self.steps:,} decisions, so the adversary learned "
                "nothing. A larger v_init (optimism) makes it explore"
            )
            return [Note(text, serious=False, more=1.0)]
        return []
