"""`splitting`: adaptive multilevel splitting, with nothing to learn but how far it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.adapt.entrance import entrance
from apeval.learn.lookahead import Lookahead
from apeval.learn.method import Learner, PopulationPlan, method
from apeval.learn.population import Forecast, MarginScore, Population, Score
from apeval.problem.problem import Problem
from apeval.problem.settings import setting
from apeval.remedies import Note, Option
from apeval.simulate.adversary import Mixture, Nominal, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Simulation

_PILOT, _LEAST, _MOST = 0.02, 10, 100  # particles of the pilot, of the episodes in the budget
_PILOT_SHARE = 0.3  # of the budget, at the most
_UNBOUNDED = 100  # decisions that an episode without a horizon is planned for
_UNREACHED = 1.5  # times the pilot's cost, where it did not come to any failure


@dataclass(frozen=True)
class SplittingConfig:
    """Particles; there is nothing else to set."""

    particles: int = setting(
        1_000,
        "particles of a population at the most: larger budgets have more populations",
        low=2,
        high=10**6,
    )


def _suits(problem: Problem) -> str | None:
    if problem.margin is None:
        return (
            "splitting climbs along the margin, and the problem has none: give it one, "
            f"{entrance(problem).margin}, or use {Option('method', 'mc')}"
        )
    if problem.longest == 1:
        return (
            "splitting branches episodes between decisions, and here an episode is a single one: "
            f"use {Option('method', 'ape')}, or {Option('method', 'mc')}"
        )
    return None


@method(
    "splitting",
    description="adaptive multilevel splitting along the margin: no proposal, for long episodes",
    config=SplittingConfig,
    suits=_suits,
)
class Splitting(Learner):
    """A small population as a pilot, which tells what a particle costs; others count."""

    def __init__(self, problem: Problem, config: SplittingConfig) -> None:
        self.problem, self.config = problem, config
        self.score: Score = MarginScore()
        self._pilot: Population | None = None
        self._roots: Episodes | None = None

    @property
    def _unknown(self) -> int:
        """A length that stands in where no horizon bounds an episode's."""
        return _UNBOUNDED if self.problem.horizon is None else self.problem.longest + 1

    def advance(self, simulation: Simulation) -> bool:
        """The pilot, round by round."""
        if self._pilot is None:
            n = self._particles(simulation)
            if n < 2:
                return False
            part = simulation.part(simulation.budget.share(_PILOT_SHARE))
            self._pilot = Population(part, self.proposal(), n, 0, self.score)
        new = self._pilot.advance()
        if self._roots is None:
            self._roots = new
        return not self._pilot.over

    def phase(self) -> str:
        return "exploring"

    def proposal(self) -> Mixture:
        return only(Nominal())

    def populations(self) -> PopulationPlan:
        score = self.score
        if self.problem.judge_at_end and self._roots is not None:
            score = Lookahead.of(self._roots)
        pilot = self._pilot
        if pilot is None:
            return PopulationPlan(score, None, self.config.particles, None)
        each = pilot.cost / pilot.n
        reached = bool(np.isfinite(pilot.log_probability))
        return PopulationPlan(
            score,
            each if reached else _UNREACHED * each,
            self.config.particles,
            Forecast(pilot.log_probability, pilot.per_nat) if reached else None,
        )

    def warnings(self) -> list[Note]:
        if self._pilot is not None and self._pilot.strayed:
            return [strayed()]
        return []

    def _particles(self, simulation: Simulation) -> int:
        """Of the pilot: in proportion to the budget, so that it can end within its share."""
        budget = simulation.budget
        if budget.steps is None:
            whole = budget.episodes or 0
        else:
            whole = budget.steps // min(simulation.most_decisions, self._unknown)
        wanted = min(max(int(_PILOT * whole), _LEAST), _MOST)
        return min(wanted, int(_PILOT_SHARE * whole))


def strayed() -> Note:
    """Said where branches do not repeat the episodes that they branched off."""
    return Note(
        "branches that were played again from the start did not begin as the episodes that they "
        "branched off: the simulation does not repeat itself, or draws random numbers other than "
        "`draws`; the number cannot be trusted"
    )
