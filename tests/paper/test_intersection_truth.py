"""Int-v0/v1: dynamic programming, the zero-variance adversary, sampling, and the data files."""

from __future__ import annotations

import numpy as np
import pytest

from apeval.environments import make
from apeval_paper.environments.intersection import ground_truth, truth_files
from apeval_paper.environments.intersection.geometry import MULTI, V0, V1

#: A frequent, short scenario: quick to solve, and Monte Carlo is exact enough.
QUICK = V1.changed(decisions=2, ego_start=95.0, challenger_start=92.5)


@pytest.mark.parametrize(("name", "published"), [("int-v0", 6.34e-2), ("int-v1", 1.70e-6)])
def test_stored_truths_match_the_paper_and_their_checks(name: str, published: float) -> None:
    data = truth_files.stored(name)
    assert data["geometry"] == {"int-v0": V0, "int-v1": V1}[name].as_dict()
    assert data["value"] == pytest.approx(published, rel=0.01)
    coarse, fine = sorted(data["grids"].values())
    assert fine / coarse - 1.0 <= 0.005
    for check in data["sampling"].values():
        sigma = np.hypot(check["standard_error"], data["standard_error"])
        assert abs(check["value"] - data["value"]) <= 3.0 * sigma
    truth = make(name).truth
    assert truth is not None
    assert truth().value == data["value"]


def test_dynamic_programming_agrees_with_monte_carlo_on_another_geometry() -> None:
    from apeval_paper.environments.intersection.dp import Grid, solve
    from apeval_paper.environments.intersection.sampling import monte_carlo

    v = solve(QUICK, Grid(u=120, v=40)).v0
    mc = monte_carlo(QUICK, 400_000, seed=1)
    assert 1e-3 < mc.value < 0.5
    assert abs(v - mc.value) <= 3.0 * mc.standard_error + 0.005 * v


def test_the_value_is_the_mean_of_the_next_values() -> None:
    """v*(s_1) from the layer equals Monte Carlo continued from s_1, through the problem's step."""
    from apeval_paper.environments.intersection.dp import Grid, solve
    from apeval_paper.environments.intersection.highway import reset
    from apeval_paper.environments.intersection.state import failed
    from apeval_paper.environments.intersection.twin import TwinStep

    step, law = TwinStep(QUICK), QUICK.nominal().given(None, None)
    s1 = step(reset(1, QUICK), np.array([[0.3, -0.2]]))
    n = 200_000
    x = np.repeat(s1, n, axis=0)
    rng = np.random.default_rng(3)
    p = failed(step(x, law.sample(rng.random((n, 2))))).mean()
    v = solve(QUICK, Grid(u=120, v=40)).value(s1)[0]
    assert 0.001 < v < 0.999
    assert abs(p - v) <= 4.0 * (v * (1 - v) / n) ** 0.5 + 1e-4


def test_the_adversary_samples_from_the_density_it_states() -> None:
    """E_q[p/q] = 1 over the box at a state, and sample and log_prob give the same density."""
    from apeval_paper.environments.intersection.adversary import ZeroVariance
    from apeval_paper.environments.intersection.dp import Grid, solve
    from apeval_paper.environments.intersection.highway import reset

    q = ZeroVariance(solve(QUICK, Grid(u=120, v=40)))
    n = 3_000
    x = reset(n, QUICK)
    a, log_q = q.sample(x, np.random.default_rng(4).random((n, q.uniforms)))
    np.testing.assert_allclose(q.log_prob(x[:200], a[:200]), log_q[:200], atol=1e-6)
    w = np.exp(q.law.log_prob(a) - log_q)
    assert w.max() <= 1.0 / 0.002 + 1e-9
    assert abs(w.mean() - 1.0) <= 5.0 * w.std() / n**0.5


def test_importance_sampling_is_unbiased_and_nearly_without_variance() -> None:
    from apeval_paper.environments.intersection.dp import Grid, solve
    from apeval_paper.environments.intersection.sampling import importance_sampling

    s = importance_sampling(solve(V1, Grid(u=120, v=40)), 800, seed=5)
    stated = truth_files.stored("int-v1")["value"]
    assert abs(s.value - stated) <= 4.0 * s.standard_error
    assert s.variation / 1000**0.5 <= 0.03
    assert s.failure_rate >= 0.9


def test_verification_recomputes_and_compares() -> None:
    found = ground_truth.verify_truth("int-v0", seed=6)
    assert found["agrees"]
    assert found["relative_error"] <= 0.055
    assert found["episodes"] >= 5_000


def test_int_multi_runs_on_highway_env_and_its_truth_is_within_its_limits() -> None:
    data = truth_files.stored("int-multi")
    assert 1e-3 <= data["value"] <= 1e-2
    assert data["standard_error"] <= 0.1 * data["value"]
    assert data["geometry"] == MULTI.as_dict()


def test_int_multi_steps_do_not_depend_on_the_batch() -> None:
    from apeval.problem.draws import Draws, make_key

    problem = make("int-multi")
    draws = Draws(make_key(2), np.arange(6))
    x = problem.reset(draws)
    assert problem.nominal.dim == 6
    assert problem.observe(x).shape == (6, 10)
    rng = np.random.default_rng(7)
    a_E = rng.uniform(-2.0, 2.0, (problem.longest, 6, 6))
    y = x[[4]]
    for t in range(problem.longest):
        x = problem.step(x, np.zeros((6, 0)), a_E[t], draws.at(t))
        y = problem.step(y, np.zeros((1, 0)), a_E[t][[4]], Draws(draws.key, draws.ids[4:5], t))
        assert np.array_equal(x[[4]], y)
        assert np.all(np.abs(problem.observe(x)) <= 1.0)
        if problem.failed(x).any():
            break


def test_int_multi_equals_an_unbroken_run_of_the_same_cars() -> None:
    """Putting the cars in place at every decision changes nothing."""
    from apeval_paper.environments.intersection.geometry import MULTI_CARS
    from apeval_paper.environments.intersection.highway import advance
    from apeval_paper.environments.intersection.multi import (
        CRASHED,
        FIRST,
        SEPARATION,
        MultiStep,
        make_cars,
        start,
    )

    rng = np.random.default_rng(8)
    step = MultiStep()
    crashes = 0
    for _ in range(25):
        road = make_cars(MULTI, MULTI_CARS)
        row = start(MULTI, MULTI_CARS)[None]
        smallest = float(row[0, SEPARATION])
        for _ in range(MULTI.decisions):
            a_E = rng.uniform(-2.0, 2.0, (1, 6))
            for i, car in enumerate(road.vehicles[1:]):
                car.a_E = a_E[0, 2 * i : 2 * i + 2].tolist()
            _, smallest = advance(road, MULTI.frames, smallest)
            row = step(row, a_E)
            ego, *cars = road.vehicles
            assert bool(row[0, CRASHED]) == ego.crashed
            assert row[0, SEPARATION] == pytest.approx(smallest, abs=1e-9)
            if ego.crashed:
                break
            for i, car in enumerate(cars):
                np.testing.assert_allclose(row[0, FIRST + 7 * i :][:2], car.position, atol=1e-9)
        crashes += ego.crashed
    assert 3 <= crashes < 25
