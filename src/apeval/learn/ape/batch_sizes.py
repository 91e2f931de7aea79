"""How many episodes go where."""

from __future__ import annotations

import numpy as np

from apeval.learn.ape.config import ApeConfig
from apeval.problem.problem import Problem
from apeval.simulate.simulation import Simulation

_BATCH = 0.033  # of the budget between two fits,
_SMALLEST, _LARGEST = 16, 100  # within these bounds,
_AT_LEAST = 0.02  # but no less than this part of a large budget
_UNKNOWN_LENGTH = 100  # decisions that an episode may take, before one was seen
_PILOT = 2_000
_EXPLORED_WELL = 8_000  # episodes beyond which exploration grows at a quarter of the pace
_FEWEST = 16


def pilot_size(simulation: Simulation, problem: Problem, config: ApeConfig) -> int:
    """Episodes of the pilot."""
    budget = simulation.budget
    longest = min(problem.longest, _UNKNOWN_LENGTH)
    total = budget.episodes or (budget.steps or 0) / longest
    return int(np.clip(config.pilot_share * total, 1, min(simulation.affordable() - 2, _PILOT)))


def exploration_size(simulation: Simulation, config: ApeConfig, failures: int) -> int:
    """Episodes of the widened proposals, which look for what the pilot did not show: fewer after
    failures."""
    episodes = total(simulation)
    counted = min(episodes, _EXPLORED_WELL) + 0.25 * max(0.0, episodes - _EXPLORED_WELL)
    wanted = max(_FEWEST, int(config.explore_share * counted / (1 + failures)))
    return min(wanted, simulation.affordable() - 1)


def batch_size(simulation: Simulation, half: bool) -> int:
    """Episodes until the next fit; half as many where the proposal is still a guess."""
    episodes = total(simulation)
    wanted = int(max(np.clip(_BATCH * episodes, _SMALLEST, _LARGEST), _AT_LEAST * episodes))
    if half:
        wanted = max(_SMALLEST, wanted // 2)
    return min(wanted, simulation.affordable() - 1)


def fits_left(simulation: Simulation, config: ApeConfig) -> float:
    """Batches to learn from that are still to come."""
    share = max(config.learn_share - used(simulation), 0.0)
    return share * total(simulation) / max(batch_size(simulation, False), 1)


def used(simulation: Simulation) -> float:
    """Share of the budget that is spent."""
    budget = simulation.budget
    if budget.episodes is not None:
        return simulation.episodes / budget.episodes
    return simulation.steps / (budget.steps or 1)


def left(simulation: Simulation, cost: float) -> int:
    """Episodes that will probably still be drawn, each at a cost in units of the budget; all that
    fit in if each is of full length."""
    units = simulation.episodes_left if simulation.steps_left is None else simulation.steps_left
    return max(int((units or 0) / cost + 1e-6), simulation.affordable())


def total(simulation: Simulation) -> float:
    """Episodes that the whole budget will hold."""
    return simulation.episodes / max(used(simulation), 1e-12)
