"""Modes that few failures show, failures that begin late, and failures that never come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

import apeval
from apeval.learn.ape.config import ApeConfig
from apeval.learn.ape.delayed_part import DelayedTilt
from apeval.learn.ape.episode_features import EpisodeFeatures
from apeval.learn.ape.failure_groups import by_kind
from apeval.learn.ape.learner import ApeLearner
from apeval.learn.ape.monte_carlo_fallback import MonteCarloFallback
from apeval.learn.ape.proposal_choice import ProposalChoice
from apeval.learn.ape.proposal_part import PartAdversary
from apeval.learn.ape.widened_proposals import Flatter
from apeval.problem.draws import make_key
from apeval.problem.laws import Categorical, Normal
from apeval.problem.problem import Problem
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.simulation import Budget, Simulation

B = (4.2, 4.3)  # standard deviations from which either sum of four disturbances fails


def two_modes() -> Problem:
    """Two sums of four disturbances each, of which either may grow too large: 61 and 39 %."""
    return Problem(
        nominal=Normal(0.0, 1.0, dim=2),
        reset=lambda draws: np.zeros((draws.n, 2)),
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=lambda x: np.where(x[:, 0] > 2 * B[0], 1, np.where(x[:, 1] > 2 * B[1], 2, 0)),
        margin=lambda x: np.minimum(B[0] - x[:, 0] / 2, B[1] - x[:, 1] / 2),
        judge_at_end=True,
        horizon=4,
        kinds=("first", "second"),
        name="two-modes",
    )


def test_a_second_mode_is_not_lost_in_silence() -> None:
    """Of ten intervals of 95 % three or more miss with a probability of 1.2 %. Before levels were
    kept, and kinds fitted apart, three of these ten missed, at 0.46 to 0.66 of the truth, and
    were trusted."""
    truth = 1.0 - ndtr(B[0]) * ndtr(B[1])
    silent = 0
    for seed in range(500, 510):
        result = apeval.evaluate(two_modes(), episodes=600, seed=seed, check=False)
        low, high = result.interval
        silent += result.trusted and not low <= truth <= high
    assert silent <= 2


def test_a_kind_with_one_failure_joins_the_largest() -> None:
    assert by_kind(np.array([2, 2, 1, 5, 5, 5])).tolist() == [2, 2, 5, 5, 5, 5]
    assert by_kind(np.array([4])).tolist() == [4]


def _outcomes(x: NDArray[Any], a_A: Any, a_E: NDArray[Any], draws: Any) -> NDArray[Any]:
    return np.asarray(x + (a_E == 2))


def discrete(horizon: int = 12) -> Problem:
    return Problem(
        nominal=Categorical([0.5, 0.3, 0.2]),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=_outcomes,
        failed=lambda x: x[:, 0] > 100,
        horizon=horizon,
        name="outcomes",
    )


def test_a_delayed_tilt_keeps_probabilities() -> None:
    """E_q[p/q] = 1 and E_q[p/q · 1{outcome 2 at decision t}] = 0.2, within 4 standard errors."""
    scene = EpisodeFeatures(np.zeros(1), np.ones(1), np.zeros(1, np.int64), 12, False)
    player = PartAdversary(DelayedTilt(Flatter(1.4, 0.7), 12), scene)
    simulation = Simulation(discrete().blind(), make_key(1), Budget(episodes=4_000))
    batch = simulation.run(only(player), 4_000, 0)
    w = np.exp(batch.log_density(Nominal()) - batch.log_density(player))
    assert abs(w.mean() - 1.0) < 4 * w.std() / np.sqrt(len(w))
    came = batch.a_E[:, 0].reshape(4_000, 12) == 2
    for t in (0, 6, 11):
        y = w * came[:, t]
        assert abs(y.mean() - 0.2) < 4 * y.std() / np.sqrt(len(y))
    assert came[:, 11].mean() > 0.3  # tilted by then
    assert came[:, 0].mean() == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / 4_000))  # and not yet


def test_failures_out_of_reach_are_left_to_monte_carlo() -> None:
    fallback = MonteCarloFallback()
    for level in (50.0, 49.0, 48.2, 47.6):  # 0.8 a fit: 60 fits to go, of which 10 are left
        fallback.fall(level, 10.0)
    assert fallback.goes_on(None)


def test_failures_within_reach_are_waited_for() -> None:
    fallback = MonteCarloFallback()
    for level in (4.0, 3.2, 2.6, 2.1):  # 0.6 a fit: four to go
        fallback.fall(level, 10.0)
    assert not fallback.goes_on(None)


def test_exploring_leaves_something_to_the_fits() -> None:
    """Whatever the settings: a part that has no share has no density."""
    for share in (0.05, 0.2, 0.3, 0.5):
        learner = ApeLearner(two_modes(), ApeConfig(defensive_share=share))
        learner._recent, learner._at_failures, learner._at_levels = [5], [5], [2, 3, 4]
        for nominal, learning in ((0.0, True), (0.5, True), (0.5, False), (0.75, False)):
            shares = learner._shares(nominal, 0.0, learning)
            assert sum(shares.values()) == pytest.approx(1.0)
            assert shares[5] >= 0.5 * (1.0 - nominal) - 1e-12


def test_giving_up_is_said() -> None:
    learner = ApeLearner(two_modes(), ApeConfig())
    learner._fallback.given_up = True
    assert any("as Monte Carlo does" in str(note.text) for note in learner.warnings())
    learner.choice = ProposalChoice(1.0, 0.05, 3.0)
    assert any("as Monte Carlo does" in str(note.text) for note in learner.warnings())


def test_what_was_given_up_is_counted() -> None:
    fallback = MonteCarloFallback(given_up=True)
    assert fallback.goes_on(None)
    assert fallback.prefers(None)


def test_without_any_failure_the_upper_end_is_near_that_of_monte_carlo() -> None:
    """Monte Carlo's upper end without a failure is 3.69/n; this one's may be half as much above
    it, as a third of the episodes went to looking for failures."""
    problem = Problem(
        nominal=Normal(0.0, 1.0, dim=2),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + np.tanh(a_E[:, :1]),
        failed=lambda x: x[:, 0] > 50.0,
        margin=lambda x: 50.0 - x[:, 0],
        horizon=10,
        name="never",
    )
    result = apeval.evaluate(problem, episodes=2_000, seed=1, check=False)
    assert result.interval[1] < 1.5 * 3.69 / 2_000
