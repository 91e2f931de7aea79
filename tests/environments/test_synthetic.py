"""The synthetic problems and the pendulums: truths, modes, edges."""

from __future__ import annotations

import numpy as np
import pytest

from apeval.environments import make
from apeval.environments.synthetic.ar1 import first_passage
from apeval.errors import ProblemError
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Budget, Simulation

SYNTHETIC = (
    "gaussian-sum", "gaussian-sum-two", "one-step", "scaled", "never", "always", "first-step",
    "flat-margin", "many-dimensions", "hidden-mode", "discontinuous", "ar1",
    "many-modes", "product", "chance-sum",
)  # fmt: skip

#: The same problems made frequent, for Monte Carlo.
EASY = (
    ("gaussian-sum", {"beta": 1.0, "dim": 3}),
    ("gaussian-sum-two", {"beta": 1.5, "steps": 7}),
    ("one-step", {"beta": 1.0}),
    ("scaled", {"beta": 1.0}),
    ("first-step", {"beta": 1.0}),
    ("flat-margin", {"beta": 1.0}),
    ("many-dimensions", {"beta": 1.0, "beta_second": 1.3, "dim": 4}),
    ("hidden-mode", {"beta_shown": 1.5, "beta_hidden": 1.0}),
    ("discontinuous", {"low": 0.5, "high": 1.5, "hits": 3}),
    ("ar1", {"threshold": 5.0, "steps": 30}),
    ("many-modes", {"beta": 1.5}),
    ("product", {"limit": 0.5}),
    ("chance-sum", {"beta": 1.5, "control": 0.6}),
)


def nominal_episodes(problem: Problem, n: int, seed: int = 5) -> Episodes:
    return Simulation(problem, make_key(seed), Budget(episodes=n)).run(only(Nominal()), n, 0)


def truth_of(problem: Problem) -> float:
    assert problem.truth is not None
    return problem.truth().value


@pytest.mark.parametrize(("name", "settings"), EASY)
def test_monte_carlo_meets_the_closed_form(name: str, settings: dict[str, float]) -> None:
    problem = make(name, **settings)
    p, n = truth_of(problem), 20_000
    found = nominal_episodes(problem, n)
    assert 0.01 < p < 0.9
    assert abs(found.failed.mean() - p) <= 4.0 * (p * (1.0 - p) / n) ** 0.5
    if problem.margin is not None:
        assert np.array_equal(found.margin <= 0.0, found.failed)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_rare_truths_are_verified_by_importance_sampling(name: str) -> None:
    problem = make(name)
    assert problem.verify is not None
    found = problem.verify(False, 20_000)
    assert found["agrees"]
    assert found["standard_error"] <= 0.04 * found["stated"]


def test_a_wrong_truth_is_not_confirmed() -> None:
    from dataclasses import replace

    from apeval.environments.synthetic.check import checked
    from apeval.problem.truth import Truth

    wrong = replace(make("one-step"), truth=lambda: Truth(4.0e-6, 0.0, "a mistake"))
    checked_again = checked(wrong, lambda: np.full((1, 1, 1), 4.5))
    assert checked_again.verify is not None
    assert not checked_again.verify(False, 20_000)["agrees"]


def test_first_passage_of_independent_steps_is_a_formula() -> None:
    """φ = 0: the maximum of T independent Gaussians."""
    from scipy.special import ndtr

    assert first_passage(0.0, 3.0, 10, 400) == pytest.approx(1.0 - ndtr(3.0) ** 10, rel=1e-10)


def test_two_modes_are_named() -> None:
    two = nominal_episodes(make("gaussian-sum-two", beta=1.0), 2_000)
    assert set(two.kind[two.failed]) == {1, 2}
    hidden = make("hidden-mode", beta_shown=1.5, beta_hidden=1.0)
    found = nominal_episodes(hidden, 2_000)
    assert hidden.kinds == ("shown", "hidden")
    assert (found.kind == 2).sum() > (found.kind == 1).sum() > 0


def test_the_hidden_mode_does_not_show_in_the_margin() -> None:
    problem = make("hidden-mode")
    assert problem.margin is not None
    safe, nearly = problem.margin(np.array([[0.0, 0.0], [0.0, 13.0]]))
    assert safe == nearly


def test_scaled_states_span_a_million() -> None:
    s = nominal_episodes(make("scaled"), 100).s
    assert np.ptp(s[:, 1]) == pytest.approx(1e6 * np.ptp(s[:, 0]))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gaussian-sum", {"steps": 0}),
        ("many-dimensions", {"dim": 3}),
        ("discontinuous", {"hits": 11}),
        ("ar1", {"phi": 2.0}),
        ("pendulum", {"std": 0.0}),
    ],
)
def test_senseless_settings_are_refused(name: str, settings: dict[str, float]) -> None:
    with pytest.raises(ProblemError):
        make(name, **settings)


@pytest.mark.parametrize(
    ("name", "reference"), [("pendulum", 1.979e-5), ("pendulum-discrete", 2.954e-5)]
)
def test_stored_pendulum_truths(name: str, reference: float) -> None:
    """The reference was measured by another program, to 0.3 %."""
    from apeval_paper.environments.pendulum.ground_truth import stored

    data = stored(name)
    assert data["value"] == pytest.approx(reference, rel=0.01)
    assert data["standard_error"] <= 0.002 * data["value"]
    assert data["left"] + data["right"] == pytest.approx(data["value"])
    assert data["left"] == pytest.approx(data["right"], rel=0.02)


def test_the_compiled_pendulum_is_the_problem() -> None:
    """Importance sampling in `dp` agrees with the problem's own step where failures are easy: one
    step of both from the same states, with the same disturbances."""
    from apeval_paper.environments.pendulum.dp import _drift
    from apeval_paper.environments.pendulum.dynamics import controller, swing

    rng = np.random.default_rng(0)
    x = rng.uniform([-0.78, -3.0], [0.78, 3.0], (200, 2))
    after = swing(x, controller(x)[:, 0])
    drift = np.array([_drift(theta, omega) for theta, omega in x])
    np.testing.assert_allclose(after[:, 1], drift, atol=1e-12)
    np.testing.assert_allclose(after[:, 0], x[:, 0] + 0.1 * drift, atol=1e-12)


def test_the_twist_is_unbiased_and_nearly_without_variance() -> None:
    from apeval_paper.environments.pendulum.dp import importance_sampling, solve
    from apeval_paper.environments.pendulum.ground_truth import truth

    w = np.abs(importance_sampling(solve(True, 61, 201), 8_000, seed=3))
    error = w.std() / len(w) ** 0.5
    assert error <= 0.01 * w.mean()
    assert abs(w.mean() - truth("pendulum-discrete").value) <= 4.0 * error


def test_a_controlled_start_has_the_same_law() -> None:
    """The share of starts with θ_0 > π/36 is a quarter, whoever draws them."""
    for controlled in (False, True):
        problem = make("pendulum", controlled_start=controlled)
        found = nominal_episodes(problem, 4_000)
        first = found.s[found.t == 0]
        assert np.abs(first).max(axis=0) == pytest.approx([np.pi / 18, 0.1], rel=0.01)
        assert abs((first[:, 0] > np.pi / 36).mean() - 0.25) <= 0.03
        assert (found.law_0 is not None) == controlled


def test_falls_to_either_side_are_kinds() -> None:
    problem = make("pendulum", std=1.5)
    found = nominal_episodes(problem, 2_000)
    assert set(found.kind[found.failed]) == {1, 2}
    left = found.kind == 1
    assert np.all(found.s_end[left, 0] < -np.pi / 4)
    assert problem.truth is None
