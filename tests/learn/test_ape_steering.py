"""Pushes that follow a potential: the model of how states answer, the fit, densities, and what it
is worth where few of many noisy channels matter."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import apeval
from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.feedback import Feedback, let_wave
from apeval.learn.ape.local_model import LocalModel, fit_model
from apeval.learn.ape.potential import Potential, Steered, fit_potential, hats
from apeval.problem.problem import Problem

TIMES = 20
A = np.array([[0.9, 0.2], [-0.1, 0.8]])
B = np.array([[0.3, 0.0], [0.1, 0.5], [0.0, 0.0]])  # of three channels the last one moves nothing
Q = np.array([[0.6, 0.3], [0.3, -0.4]])


def follows(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The push of u = ½ x'ᵀ Q x'."""
    return x @ A.T @ Q @ B.T


def turns(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """A push of the channel that moves nothing, which no potential asks for."""
    return np.column_stack([np.zeros((len(x), 2)), x[:, 0]])


def paths(
    n: int, seed: int, push: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None
) -> DecisionRows:
    """x' = A x + Bᵀ z with z ~ N(push(x), I)."""
    rng = np.random.default_rng(seed)
    x, z = np.zeros((n, TIMES, 2)), rng.standard_normal((n, TIMES, 3))
    x[:, 0] = 0.5 * rng.standard_normal((n, 2))
    for t in range(TIMES):
        if push is not None:
            z[:, t] += push(x[:, t])
        if t + 1 < TIMES:
            x[:, t + 1] = x[:, t] @ A.T + z[:, t] @ B
    at = np.repeat(np.arange(n), TIMES), np.tile(np.arange(TIMES), n)
    rows = n * TIMES
    return DecisionRows(
        z.reshape(rows, 3), np.zeros((rows, 0)), x.reshape(rows, 2), at[1], at[0], n,
        np.zeros((n, 0)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def model() -> LocalModel:
    found = fit_model(paths(100, 0))
    assert found is not None
    return found


def test_the_model_knows_what_each_channel_moves(model: LocalModel) -> None:
    x = np.random.default_rng(1).standard_normal((50, 2))
    ahead, J = model.ahead(x), model.moved(x)
    # without noise; what is left is the ridge, of which the waves ask the most
    np.testing.assert_allclose(ahead, x @ A.T, atol=0.02)
    np.testing.assert_allclose(J, np.broadcast_to(B, J.shape), atol=1e-3)


def test_a_slope_goes_through_what_is_moved(model: LocalModel) -> None:
    rng = np.random.default_rng(9)
    x, slope = rng.standard_normal((50, 2)), rng.standard_normal((50, 2))
    through = np.einsum("ndf,nf->nd", model.moved(x), slope)
    np.testing.assert_allclose(model.along(x, slope), through, atol=1e-12)


def test_blocks_give_what_the_whole_gives(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = paths(100, 10, follows)
    whole = fit_potential(model, rows, np.ones(len(rows.t)), TIMES, 1.0)
    monkeypatch.setattr("apeval.learn.ape.potential._NUMBERS", 500)
    parts = fit_potential(model, rows, np.ones(len(rows.t)), TIMES, 1.0)
    assert whole is not None
    assert parts is not None
    assert parts.evidence == pytest.approx(whole.evidence, rel=1e-6)
    mean = whole.potential.mean(rows.x, rows.t)
    np.testing.assert_allclose(parts.potential.mean(rows.x, rows.t), mean, atol=1e-6)


def test_there_is_no_model_of_too_few_decisions_or_no_state() -> None:
    assert fit_model(paths(2, 0)) is None
    rows = paths(100, 0)
    nothing = DecisionRows(rows.e, rows.p, rows.x[:, :0], rows.t, rows.episode, rows.n, rows.z_0)
    assert fit_model(nothing) is None


def test_hats_share_every_moment() -> None:
    for times in (10, 200):
        np.testing.assert_allclose(hats(times).sum(axis=1), 1.0, atol=1e-12)


def test_a_push_through_what_is_moved_is_recovered(model: LocalModel) -> None:
    rows = paths(200, 2, follows)
    found = fit_potential(model, rows, np.ones(len(rows.t)), TIMES, 1.0)
    assert found is not None
    mean = found.potential.mean(rows.x, rows.t)
    # the mean square error of a regression is (parameters)/(equations), here twice that at most
    bound = 2.0 * found.dof / len(rows.t)
    assert np.mean(((mean - follows(rows.x)) ** 2).sum(axis=1)) < bound
    assert abs(mean[:, 2]).max() < 0.02  # what moves nothing is not pushed
    plain = let_wave(rows, np.ones(rows.n), TIMES, None)
    steered = let_wave(rows, np.ones(rows.n), TIMES, None, model)
    assert isinstance(plain, Feedback)
    assert isinstance(steered, Steered)


def test_a_push_that_follows_no_potential_is_left_to_feedback(model: LocalModel) -> None:
    rows = paths(200, 3, turns)
    assert isinstance(let_wave(rows, np.ones(rows.n), TIMES, None, model), Feedback)


@pytest.fixture(scope="module")
def steered(model: LocalModel) -> Steered:
    rows = paths(200, 4, follows)
    found = let_wave(rows, np.ones(rows.n), TIMES, None, model)
    assert isinstance(found, Steered)
    return found


def test_weights_of_its_own_samples_average_to_one(steered: Steered) -> None:
    rng, n = np.random.default_rng(5), 20_000
    x = np.tile(rng.standard_normal(2), (n, 1))
    for part in (steered, steered.relaxed(0.5), steered.plain()):
        z = part.draw(x, np.full(n, 7), rng.uniform(size=(n, 3)), None)
        here = DecisionRows(
            z, np.zeros((n, 0)), x, np.full(n, 7), np.arange(n), n, np.zeros((n, 0))
        )
        weight = np.exp(-part.row_ratio(here))
        assert abs(weight.mean() - 1.0) < 4.0 * weight.std() / np.sqrt(n)


def test_half_of_it_is_half_of_the_push(steered: Steered) -> None:
    x, t = np.random.default_rng(6).standard_normal((30, 2)), np.arange(30) % TIMES
    np.testing.assert_allclose(steered.relaxed(0.5).mean(x, t), 0.5 * steered.mean(x, t))
    np.testing.assert_array_equal(steered.relaxed(1.0).mean(x, t), steered.mean(x, t))


def test_it_travels_without_the_states_that_it_remembers(steered: Steered) -> None:
    x, t = np.random.default_rng(7).standard_normal((3_000, 2)), np.arange(3_000) % TIMES
    before = steered.mean(x, t)
    sent = pickle.dumps(steered)
    assert len(sent) < 100_000
    again = pickle.loads(sent)
    np.testing.assert_array_equal(again.mean(x, t), before)


def test_no_push_is_longer_than_four_standard_deviations(model: LocalModel) -> None:
    steep = Potential(model, np.full((TIMES + 1, 2 + 3 + 40), 50.0))
    x = np.random.default_rng(8).standard_normal((100, 2))
    assert np.linalg.norm(steep.mean(x, np.zeros(100, np.int64)), axis=1).max() <= 4.0 + 1e-9


def many_sensors(channels: int = 10) -> Problem:
    """An AR(1) process driven by two of ten noisy channels; truth by `ar1`'s recursion."""
    effect = np.array([0.8, 0.6] + (channels - 2) * [0.0])[:, None]
    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0, dim=channels),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: 0.9 * x + a_E @ effect,
        failed=lambda x: x[:, 0] > 11.5,
        margin=lambda x: 11.5 - x[:, 0],
        horizon=50,
        name="many-sensors",
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_failures_are_found_among_many_channels_that_do_not_matter(seed: int) -> None:
    # Monte Carlo would see none; feedback in ten channels alone finds hardly any
    known = apeval.make("ar1", phi=0.9, threshold=11.5, steps=50).truth
    assert known is not None
    truth = known().value
    result = apeval.evaluate(many_sensors(), episodes=1_000, seed=seed, check=False)
    low, high = result.interval
    assert low <= truth <= high
    assert high < 20.0 * truth  # the bound of Monte Carlo is 3.7e-3, hundreds of times as much
