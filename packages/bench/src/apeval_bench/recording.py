"""A run written down episode by episode, through learning and the frozen stage alike."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apeval.learn.ape_tabular.policy_rows import State
from apeval.learn.method import Learner, Method
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray
from apeval.run.evaluate import reduce
from apeval.simulate.adversary import Mixture
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Simulation
from apeval_paper.methods.ape_discrete.config import ApeDiscreteConfig
from apeval_paper.methods.ape_discrete.learner import DiscreteLearner, SlotChoice
from apeval_paper.methods.cem_discrete.learner import CrossEntropyLearner


@dataclass
class Log:
    """Episodes in the order they were simulated."""

    length: list[int] = field(default_factory=list)
    failed: list[bool] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    """Π ρ under the proposal that drew the episode."""
    component: list[int] = field(default_factory=list)
    frozen_from: int | None = None
    """The first episode of the frozen stage."""

    def add(self, length: int, failed: bool, weight: float) -> None:
        """One episode of an adversary alone."""
        self.length.append(length)
        self.failed.append(failed)
        self.weight.append(weight)
        self.component.append(0)

    def add_batch(self, batch: Episodes, proposal: Mixture) -> None:
        """A batch of a mixture."""
        self.length += batch.length.tolist()
        self.failed += batch.failed.tolist()
        self.weight += reduce(batch, proposal).weights.tolist()
        self.component += batch.component.tolist()

    def freeze(self) -> None:
        """From here on the proposal no longer changes."""
        self.frozen_from = len(self.length)

    @property
    def steps(self) -> FloatArray:
        """Decisions up to the end of each episode."""
        return np.cumsum(self.length).astype(np.float64)

    def rate(self, after: float, until: float = math.inf) -> float:
        """Failure rate of the episodes that ended after one step and not after another."""
        steps = self.steps
        among = np.array(self.failed)[(steps > after) & (steps <= until)]
        return float(among.mean()) if len(among) else math.nan

    def estimates(self) -> FloatArray:
        """Mean of Π ρ · 1{failure} up to each episode. It starts anew with the frozen stage, whose
        mean is the one that is reported."""
        hits = np.array(self.weight) * np.array(self.failed)
        cut = len(hits) if self.frozen_from is None else self.frozen_from
        parts = [np.cumsum(x) / np.arange(1, len(x) + 1) for x in (hits[:cut], hits[cut:])]
        return np.concatenate(parts)


@dataclass
class Recording(Simulation):
    """A simulation that writes every block into a log."""

    log: Log = field(default_factory=Log)

    def book(self, done: Episodes, proposal: Mixture) -> None:
        super().book(done, proposal)
        self.log.add_batch(done, proposal)


class _RecordedDiscrete(DiscreteLearner):
    """π_E changes within an episode here: its weight is the product of the ρ as they were."""

    def __init__(self, problem: Problem, config: ApeDiscreteConfig, log: Log) -> None:
        super().__init__(problem, config)
        self.log, self.log_rho = log, 0.0

    def weigh(self, choice: SlotChoice, remembered: State) -> float:
        rho = super().weigh(choice, remembered)
        self.log_rho += math.log(rho) if rho > 0.0 else -math.inf
        return rho

    def _run_episode(self, simulation: Simulation, hard_limit: int) -> None:
        self.log_rho, steps, failures = 0.0, simulation.steps, simulation.failures
        super()._run_episode(simulation, hard_limit)
        length, failed = simulation.steps - steps, simulation.failures > failures
        self.log.add(length, failed, math.exp(min(self.log_rho, 700.0)))


def recorded(method: Method, config: Any, simulation: Recording) -> Learner:
    """The method's learner, its episodes written into the simulation's log."""
    if method.name == "ape-discrete":
        return _RecordedDiscrete(simulation.problem, config, simulation.log)
    learner = method.start(simulation.problem, config)
    if isinstance(learner, CrossEntropyLearner):  # it learns with a simulation of its own
        share = simulation.budget.share(config.learn_share)
        learner.learning = Recording(
            simulation.problem, simulation.key, share, source=simulation.source, whole=simulation,
            log=simulation.log,
        )  # fmt: skip
    return learner
