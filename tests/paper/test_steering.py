"""v_ψ by dynamic programming over remembered transitions, and what it makes of π_E,θ."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import apeval
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.simulate.adversary import Adversary, Nominal, mixture, only
from apeval.simulate.simulation import Budget, Simulation

pytest.importorskip("torch")
pytest.importorskip("zuko")

from apeval_paper.methods.ape_scalable.adversaries import WarmStart
from apeval_paper.methods.ape_scalable.backward_values import BackwardValues
from apeval_paper.methods.ape_scalable.logistic_gp import LogisticGP
from apeval_paper.methods.ape_scalable.memory import Memory, Remembered
from apeval_paper.methods.ape_scalable.row_weights import failure_weights, steered_weights, temper
from apeval_paper.methods.widened_start import find_start

RARE = 1e-5


def sum_of_four(truth: float = RARE) -> Problem:
    """S_4 of four standard normals above a threshold: v(s, t) = Φ((s − limit)/√(4 − t))."""
    limit = float(-2.0 * norm.ppf(truth))
    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=lambda x: x[:, 0] > limit,
        judge_at_end=True,
        horizon=4,
    )


def shifted(by: float, scale: float = 1.0) -> Adversary:
    return WarmStart(np.full(1, by), np.full(1, scale))


def remembered(adversaries: list[Adversary], n: int, truth: float = RARE) -> Memory:
    simulation = Simulation(sum_of_four(truth), make_key(5), Budget(steps=10**7))
    memory = Memory(adversaries)
    for k, adversary in enumerate(adversaries):
        memory.add(simulation.run(only(adversary), n, 0), [k])
    return memory


def inputs(rows: Remembered) -> np.ndarray:
    return np.asarray(rows.s, np.float64)


def test_weights_of_the_memory_estimate_the_truth() -> None:
    """The mean of W·ρ·1{failure} over two adversaries is unbiased: within five errors."""
    n, truth = 2_000, 0.03
    rows = remembered([shifted(0.0, 1.5), shifted(1.0)], n, truth).rows()
    w = np.exp(rows.log_W + rows.log_rho) * rows.r
    error = np.sqrt(w @ w) / (2 * n)
    assert abs(w.sum() / (2 * n) - truth) < 5.0 * error
    own = np.exp(rows.own_log_W + rows.own_log_rho) * rows.r  # the first batch counts once
    assert abs(own[: 4 * n].sum() / n - truth) < 5.0 * np.sqrt(own[: 4 * n] @ own[: 4 * n]) / n


def test_an_adversary_that_never_sampled_does_not_count() -> None:
    memory = remembered([shifted(1.0)], 50)
    before = memory.rows()
    memory.add_adversary(shifted(3.0))
    after = memory.rows()
    np.testing.assert_allclose(after.log_rho, before.log_rho)
    np.testing.assert_allclose(after.log_W, before.log_W)


def test_backward_values_follow_the_known_ones() -> None:
    """On a sum of normals pushed to its threshold: v(s0) = 1e-5 within a quarter, and log v along
    the failing paths within half a nat on average."""
    memory = remembered([shifted(2.13), shifted(1.0, 1.5)], 400)
    rows, values = memory.rows(), BackwardValues(100)
    values.fit(inputs(rows), rows)
    assert values.v_0 == pytest.approx(RARE, rel=0.25)
    limit = float(-2.0 * norm.ppf(RARE))
    for t in (1, 2, 3):
        s = limit * t / 4.0 + np.sqrt(t * (4.0 - t)) / 2.0 * np.linspace(-1.0, 1.0, 5)
        exact = norm.logcdf((s - limit) / np.sqrt(4.0 - t))
        found = values.log_v(s[:, None], np.full(5, t))
        assert np.abs(found - exact).mean() < 0.5, t


def test_backward_values_balance_at_every_time() -> None:
    """Σ W·v(s) = Σ W·ρ·(r + v(s')): nothing is lost or added on the way to s0."""
    rows = remembered([shifted(1.0)], 500, 0.03).rows()
    values = BackwardValues(60)
    gain = values.fit(inputs(rows), rows)
    log_v = values.log_v(inputs(rows), rows.t)
    for t in range(4):
        mine = rows.t == t
        left = np.exp(rows.own_log_W + log_v)[mine].sum()
        right = np.exp(rows.own_log_W + rows.own_log_rho + gain)[mine].sum()
        assert left == pytest.approx(right, rel=1e-6)


def test_no_failure_gives_the_value_zero() -> None:
    rows = remembered([Nominal()], 100).rows()
    values = BackwardValues(60)
    values.fit(inputs(rows), rows)
    assert values.v_0 == 0.0
    assert np.isneginf(values.log_v(inputs(rows), rows.t)).all()


def test_a_logistic_regression_is_right_in_the_mean() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 2))
    v = np.exp(-4.0 + 1.5 * x[:, 0])
    target, weight = v * rng.exponential(size=400), rng.uniform(0.5, 2.0, 400)
    gp = LogisticGP(50)
    assert gp.fit(x, target, weight)
    fitted = np.exp(gp.log_v(x))
    assert weight @ fitted == pytest.approx(weight @ target, rel=1e-6)
    assert np.abs(gp.log_v(x) - np.log(v))[np.abs(x).max(axis=1) < 2.0].mean() < 0.3
    assert not gp.fit(x, np.zeros(400), weight)


def test_steering_counts_more_data_than_failures_alone() -> None:
    """Where one episode in ten fails, v lets the first decision of all of them count."""
    rows = remembered([shifted(1.5)], 300).rows()
    values = BackwardValues(60)
    gain = values.fit(inputs(rows), rows)
    steered = steered_weights(rows, gain, values.bins(rows.t), 5.0)
    alone = failure_weights(rows, 5.0)
    first = rows.t == 0
    assert steered.ess[first].mean() > 2.0 * alone.ess[first].mean()
    assert steered.weight[first].sum() == pytest.approx(1.0, abs=1e-3)
    push = float(steered.weight[first] @ rows.z[first, 0])
    assert push == pytest.approx(2.13, abs=0.25)  # the limit's fourth part


def test_tempering_reaches_the_wanted_effective_size() -> None:
    log_w = 4.0 * np.random.default_rng(0).standard_normal(200)
    alpha = temper(log_w, 30.0)
    w = np.exp(alpha * log_w)
    assert 0.0 < alpha < 1.0
    assert w.sum() ** 2 / (w @ w) == pytest.approx(30.0, rel=1e-3)


@pytest.mark.parametrize(("truth", "widened"), [(0.3, False), (1e-4, True)])
def test_a_pilot_widens_the_start_where_failures_are_rare(truth: float, widened: bool) -> None:
    simulation = Simulation(sum_of_four(truth), make_key(3), Budget(steps=8_000))
    start = find_start(simulation, Budget(steps=4_000), lambda scale: shifted(0.0, scale))
    assert (start.scale > 1.0) == widened
    assert simulation.steps <= 0.2 * 4_000
    assert simulation.episodes == sum(trial.episodes for trial in start.trials)
    assert bool(start.notes()) == widened
    if widened:
        assert f"warm_scale={start.scale:.3g}" in start.notes()[0].text


def test_a_pilot_without_any_failure_says_so() -> None:
    simulation = Simulation(sum_of_four(1e-60), make_key(3), Budget(steps=8_000))
    start = find_start(simulation, Budget(steps=4_000), lambda scale: shifted(0.0, scale))
    assert start.failures == 0
    assert start.scale == start.trials[-1].scale
    assert "the widest tried" in start.notes()[0].text


@pytest.mark.parametrize("method", ["ape-scalable", "ape-discrete", "cem-discrete"])
def test_methods_of_the_paper_start_by_themselves(method: str) -> None:
    """Failures in the frozen stage, and an interval, without a start being given."""
    result = apeval.evaluate(apeval.make("int-v1"), method, steps=3_000, seed=1)
    assert result.final.failure_rate > 0.0
    assert result.interval[0] <= result.estimate <= result.interval[1]
    assert any("started" in text and "as wide as" in text for text in result.warnings)
    given = {"warm_scale": 2.0, "learn_share": 0.05}
    explicit = apeval.evaluate(apeval.make("int-v1"), method, steps=300, seed=1, settings=given)
    assert not any("a pilot saw" in text for text in explicit.warnings)


def test_episodes_of_a_mixture_are_booked_by_component() -> None:
    simulation = Simulation(sum_of_four(0.03), make_key(7), Budget(steps=10**6))
    a, b = shifted(0.0), shifted(1.0)
    memory = Memory([a, b])
    memory.add(simulation.run(mixture([a, b], [0.25, 0.75]), 100, 0), [0, 1])
    assert memory.counts == [25, 75]
