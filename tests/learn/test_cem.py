from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import apeval
from apeval.learn.cem.config import CemConfig
from apeval.learn.cem.families import CategoricalSteps, GaussianSteps
from apeval.learn.cem.learner import CrossEntropy
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Budget, Simulation


def episodes_of(problem: Problem, adversary: Any, n: int = 400, seed: int = 1) -> Episodes:
    return Simulation(problem, make_key(seed), Budget(episodes=n)).run(only(adversary), n, 0)


def test_a_fit_is_the_weighted_mean_and_spread_of_z() -> None:
    problem = apeval.make("gaussian-sum", steps=3, dim=2)
    found = episodes_of(problem, Nominal())
    w = np.random.default_rng(0).random(found.n)
    w /= w.sum()
    start = GaussianSteps.nominal(3, 2, 0, 0.01)
    fit = start.fitted(found, w, 1.0)
    z = found.a_E.reshape(found.n, 3, 2)
    mean = np.einsum("i,itd->td", w, z)
    np.testing.assert_allclose(fit.mu, mean, atol=1e-12)
    np.testing.assert_allclose(fit.sigma**2, np.einsum("i,itd->td", w, (z - mean) ** 2), rtol=1e-9)
    half = start.fitted(found, w, 0.5)
    np.testing.assert_allclose(half.mu, 0.5 * mean, atol=1e-12)
    floored = GaussianSteps.nominal(3, 2, 0, 5.0).fitted(found, w, 1.0)
    assert np.all(floored.sigma == 5.0)


def test_a_discrete_fit_is_the_weighted_frequency() -> None:
    problem = apeval.make("pendulum-discrete")
    found = episodes_of(problem, Nominal())
    w = np.random.default_rng(0).random(found.n)
    w /= w.sum()
    fit = CategoricalSteps.nominal(19, 5, 1e-9).fitted(found, w, 1.0)
    at_three = found.t == 3
    taken = np.bincount(found.a_E[at_three, 0], w[found.episode[at_three]], 5)
    p = fit.probabilities(found.situation.take(np.flatnonzero(at_three)[:1]))[0]
    np.testing.assert_allclose(p, taken / taken.sum(), atol=1e-7)


@pytest.mark.parametrize(
    ("name", "adversary"),
    [
        ("int-v1", GaussianSteps(np.full((3, 2), 0.8), np.full((3, 2), 1.3), 0.1, np.zeros(0),
                                 np.ones(0))),
        ("pendulum-discrete", CategoricalSteps(np.tile([2.0, 1.0, 1.0, 1.0, 3.0], (19, 1)), 0.01)),
        ("pendulum", GaussianSteps(np.full((19, 1), 0.2), np.full((19, 1), 1.1), 0.1,
                                   np.array([0.3, -0.2]), np.array([1.2, 1.1]))),
    ],
)  # fmt: skip
def test_weights_of_the_adversaries_have_mean_one(name: str, adversary: Any) -> None:
    settings = {"controlled_start": True} if name == "pendulum" else {}
    found = episodes_of(apeval.make(name, **settings), adversary, 4_000)
    w = np.exp(found.log_density(Nominal()) - found.log_density(adversary))
    assert 0.05 < w.std() < 20.0
    assert abs(w.mean() - 1.0) <= 5.0 * w.std() / len(w) ** 0.5


def test_it_finds_a_rare_mode_within_its_interval() -> None:
    """β = 4, T = 5: 3.17e-5, where Monte Carlo has an error of 250 %."""
    problem = apeval.make("gaussian-sum", beta=4.0, steps=5)
    results = [apeval.evaluate(problem, "cem", episodes=5_000, seed=s) for s in range(8)]
    error = np.array([r.estimate / 3.167124e-5 - 1.0 for r in results])
    assert np.sqrt(np.mean(error**2)) <= 0.5
    assert min(r.final.failure_rate for r in results) >= 0.2


def test_without_reaching_failure_it_says_so() -> None:
    result = apeval.evaluate(apeval.make("gaussian-sum"), "cem", episodes=200, seed=0)
    assert any("levels of the margin" in text for text in result.warnings)
    result = apeval.evaluate(apeval.make("discontinuous"), "cem", episodes=200, seed=0)
    assert any("saw no failure" in text for text in result.warnings)


@pytest.mark.parametrize("budget", [{"steps": 3_000}, {"episodes": 500}])
def test_the_learning_budget_is_cut_into_its_batches(budget: dict[str, int]) -> None:
    problem = apeval.make("gaussian-sum", steps=4)
    learner = CrossEntropy(problem, CemConfig())
    simulation = Simulation(problem, make_key(0), Budget(**budget))
    while learner.advance(simulation):
        pass
    spent = simulation.episodes / (750 if "steps" in budget else 500)
    assert learner.updates in (5, 6)
    assert spent == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize("name", ["never", "always", "walk"])
def test_edges_do_not_break_it(name: str) -> None:
    problem = apeval.make(name)
    result = apeval.evaluate(problem, "cem", steps=2_000, seed=0)
    assert problem.truth is not None
    assert result.interval[0] <= problem.truth().value <= result.interval[1]
