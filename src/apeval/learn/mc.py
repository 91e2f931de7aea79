"""Plain Monte Carlo: nothing is learned, every episode is nominal."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.learn.method import Learner, method
from apeval.problem.problem import Problem
from apeval.simulate.adversary import Mixture, Nominal, only
from apeval.simulate.simulation import Simulation


@dataclass(frozen=True)
class MonteCarloConfig:
    """Monte Carlo has no settings."""


@method(
    "mc",
    description="plain Monte Carlo with the exact (Clopper-Pearson) interval",
    config=MonteCarloConfig,
)
class MonteCarlo(Learner):
    """The baseline."""

    def __init__(self, problem: Problem, config: MonteCarloConfig) -> None:
        pass

    def advance(self, simulation: Simulation) -> bool:
        return False

    def proposal(self) -> Mixture:
        return only(Nominal())
