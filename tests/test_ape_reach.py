"""How far a proposal may go before its failures can tell by themselves."""

from __future__ import annotations

import numpy as np
import pytest

import apeval
from apeval.learn.ape.config import ApeConfig
from apeval.learn.ape.learner import ApeLearner
from apeval.learn.ape.reach import Reach
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.simulate.simulation import Budget, Simulation


def watched(rate: float, furthest: float = 1.0) -> Reach:
    """After 100 episodes of a whole fit with this rate of failures, and 100 of another one."""
    reach = Reach(furthest)
    reach.sent(2, furthest)
    reach.sent(3, 0.5)
    failed = np.arange(100) < 100 * rate
    reach.watch(np.full(100, 2), failed)
    reach.watch(np.full(100, 3), np.ones(100, bool))  # tells nothing: it did not go all the way
    return reach


def test_the_first_proposals_go_all_the_way() -> None:
    assert Reach().etas(1.0) == {1.0: 1.0}
    assert Reach(0.85).etas(1.0) == {0.85: 1.0}


def test_where_failures_become_the_rule_any_distance_may_be_chosen() -> None:
    assert watched(0.5).etas(3.0) == dict.fromkeys((0.5, 0.7, 0.85, 1.0), 1.0)


def test_where_failures_stay_rare_proposals_stay_half_way() -> None:
    reach = watched(0.1)
    assert (reach.drawn, reach.failed) == (100, 10)
    assert reach.etas(3.0) == {0.5: 1.0}
    assert reach.etas(20.0) == {0.5: 1.0, 0.7: 1.0, 0.85: 2.0, 1.0: 2.0}


def test_no_proposal_is_held_back_for_good() -> None:
    assert set(watched(0.0).etas(60.0).values()) == {1.0}
    assert max(watched(0.0, 0.85).etas(60.0)) == 0.85


def learned(problem: Problem, budget: Budget, seed: int) -> ApeLearner:
    problem = problem.blind()
    simulation = Simulation(problem, make_key(seed), budget)
    learner = ApeLearner(problem, ApeConfig())
    while learner.advance(simulation):
        pass
    return learner


@pytest.mark.parametrize("seed", range(3))
def test_nature_decides_at_the_intersection(seed: int) -> None:
    learner = learned(apeval.make("int-v1"), Budget(steps=6_000), seed)
    assert learner.reach.drawn >= 40
    assert learner.reach.failed >= 0.3 * learner.reach.drawn
    assert learner.choice is not None
    assert learner.choice.eta >= 0.85
