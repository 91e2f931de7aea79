"""Pushes that follow a potential: the model of how states answer, the fit, densities, and what it
is worth where few of many noisy channels matter."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import apeval
from apeval.learn.ape.config import ApeConfig
from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.delayed_part import DelayedPush
from apeval.learn.ape.feedback import Feedback, let_wave
from apeval.learn.ape.learner import ApeLearner
from apeval.learn.ape.local_model import LocalModel, fit_model
from apeval.learn.ape.mixture_fit import MixtureFit
from apeval.learn.ape.potential import Potential, Steered, fit_potential, hats
from apeval.learn.ape.widened_proposals import Wider
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
    mean = whole.potential.mean(rows.x, rows.t)
    monkeypatch.setattr("apeval.learn.ape.potential._NUMBERS", 500)
    parts = fit_potential(model, rows, np.ones(len(rows.t)), TIMES, 1.0)
    assert parts.evidence == pytest.approx(whole.evidence, rel=1e-6)
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


@pytest.mark.parametrize("t", [0, 7, TIMES - 1])
def test_weights_of_its_own_samples_average_to_one(steered: Steered, t: int) -> None:
    rng, n = np.random.default_rng(5), 20_000
    x, at = np.tile(rng.standard_normal(2), (n, 1)), np.full(n, t)
    for part in (steered, steered.relaxed(0.5), steered.plain()):
        z = part.draw(x, at, rng.uniform(size=(n, 3)), None)
        here = DecisionRows(
            z, np.zeros((n, 0)), x.copy(), at, np.arange(n), n, np.zeros((n, 0))
        )  # fmt: skip
        weight = np.exp(-part.row_ratio(here))
        assert abs(weight.mean() - 1.0) < 4.0 * weight.std() / np.sqrt(n)


def test_begun_later_it_is_what_it_would_be_at_the_start(steered: Steered) -> None:
    rows = paths(40, 11)
    late = DelayedPush(steered, TIMES)
    ratios = []
    for delay in late.delays:
        begun = rows.t >= delay
        after = DecisionRows(
            rows.e[begun], rows.p[begun], rows.x[begun], rows.t[begun] - delay,
            rows.episode[begun], rows.n, rows.z_0,
        )  # fmt: skip
        ratios.append(after.total(steered.row_ratio(after)))
    summed = np.logaddexp.reduce(ratios, axis=0) - np.log(len(ratios))
    np.testing.assert_allclose(late.log_ratio(rows), summed, atol=1e-9)


def test_noise_is_no_push(model: LocalModel) -> None:
    found = [fit_potential(model, paths(12, k), np.ones(12 * TIMES), TIMES, 1.0) for k in range(20)]
    # empty potentials have no evidence, and are not taken; chance favours a few others a little
    assert np.median([it.evidence for it in found]) < 0.5
    assert sum(it.evidence > 3.0 for it in found) <= 2  # odds of 20 to 1


def test_levels_go_on_until_failures_can_carry_a_fit() -> None:
    problem = apeval.make("ar1", steps=30)
    learner = ApeLearner(problem.blind(), ApeConfig())
    assert learner._enough == learner.config.target_ess
    part = Feedback(np.ones((1, 1, 1)), np.zeros(0), np.zeros((0, 0)), 35.0)
    learner._fit = MixtureFit((part, part), np.array([0.5, 0.5]))
    assert learner._enough == learner.config.target_ess  # short episodes: no matter what it costs
    learner._decisions, learner.scene = 30.0, replace(learner.scene, times=30)
    assert learner._enough == 70.0
    rows = paths(60, 12)
    margin = np.linspace(-1.0, 5.0, 60)
    kind = np.ones(60, np.int64)
    learner.memory.add_fit(MixtureFit((Wider(1.0),), np.ones(1)))
    learner.memory.add(rows, kind, margin, {0: 1.0})
    learner._last_margin = np.linspace(0.5, 5.0, 60)
    learner._lower_level()
    assert learner.level > 0.0  # 60 failures are too few for 70 parameters
    part = Feedback(np.ones((1, 1, 1)), np.zeros(0), np.zeros((0, 0)), 25.0)
    learner._fit = MixtureFit((part, part), np.array([0.5, 0.5]))
    learner._lower_level()
    assert learner.level == 0.0


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
