"""Uncontrolled randomness: failures replayed, the probit model, and the push that it gives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr

import apeval
from apeval.learn.ape.config import ApeConfig
from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.episode_features import find_features
from apeval.learn.ape.learner import ApeLearner
from apeval.learn.ape.probit import ProbitModel, explained, fit_probit, push
from apeval.learn.ape.proposal_choice import EpisodeCosts
from apeval.learn.ape.uncontrolled_randomness import (
    PLAYED,
    RandomnessTest,
    ReplayedEpisode,
    replay_failures,
)
from apeval.problem.draws import make_key
from apeval.problem.types import BoolArray, FloatArray
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.rollout import rollout
from apeval.simulate.simulation import Budget, Simulation

A, SLOPE = -4.3, -1.0  # about those of the lander's second disturbance
TIMES, D = 4, 2


def rolled(problem: apeval.Problem, adversary: object, n: int, seed: int = 3) -> Episodes:
    return rollout(problem, only(adversary), make_key(seed), np.arange(n), np.arange(n))  # type: ignore[arg-type]


def drawn(n: int, seed: int) -> tuple[DecisionRows, FloatArray]:
    """Episodes of TIMES decisions, twice as wide as nominal; and their second ones."""
    z = 2.0 * np.random.default_rng(seed).standard_normal((n, TIMES, D))
    t, episode = np.tile(np.arange(TIMES), n), np.repeat(np.arange(n), TIMES)
    nothing = np.zeros((n * TIMES, 0))
    rows = DecisionRows(z.reshape(-1, D), nothing, nothing, t, episode, n, np.zeros((n, 0)))
    return rows, z[:, 1, 0]


def by_chance(P: FloatArray, seed: int) -> BoolArray:
    return np.asarray(np.random.default_rng(seed).random(len(P)) < P)


def test_odds_find_the_one_decision_that_matters() -> None:
    """30 repeats with about 40 failures each: the slope's mean is within 4 of its standard errors
    and a shrinkage of 15 %, and other decisions keep less than a tenth of it."""
    slopes, others = [], []
    for seed in range(30):
        rows, z = drawn(1_000, seed)
        failed = by_chance(ndtr(A + SLOPE * z), 100 + seed)
        probit = fit_probit(rows, failed, np.ones(rows.n), TIMES)
        assert probit is not None
        slopes.append(probit.b[1, 0])
        others.append(np.sqrt((probit.b**2).sum() - probit.b[1, 0] ** 2))
    error = 4.0 * np.std(slopes) / np.sqrt(len(slopes))
    assert -1.15 - error < np.mean(slopes) < -0.85 + error
    assert np.median(others) < 0.1


def test_odds_explain_a_push_and_not_two_sides() -> None:
    rows, z = drawn(2_000, 1)
    ones = np.ones(rows.n)
    for P, low, high in ((ndtr(A - z), 0.3, 1.0), (ndtr(A + np.abs(z)), -0.1, 0.1)):
        failed = by_chance(P, 2)
        probit = fit_probit(rows, failed, ones, TIMES)
        assert probit is not None
        assert low < explained(probit, rows, failed, ones) < high


def test_odds_need_failures_and_successes() -> None:
    rows, _ = drawn(50, 1)
    ones = np.ones(rows.n)
    assert fit_probit(rows, np.arange(50) < 2, ones, TIMES) is None
    assert fit_probit(rows, np.ones(50, bool), ones, TIMES) is None


def known() -> ProbitModel:
    b = np.zeros((TIMES, D))
    b[1, 0] = SLOPE
    return ProbitModel(A, b, np.zeros(0), 1e-12 * np.eye(2), 1.0)


def test_the_push_is_the_best_gaussian_and_its_variance_is_as_predicted() -> None:
    """Against a fine search over mean and spread by another quadrature, and against 400,000
    draws, within 4 standard errors of their mean square."""
    found = push(known(), 0, EpisodeCosts(1.0, 1.0, 1.0), 0.05)
    assert found is not None
    part, choice = found
    u = np.linspace(-9.0, 9.0, 20_001)
    p = np.exp(-0.5 * u * u)
    p /= p.sum()
    v = float((p * ndtr(A + u)).sum())

    def variance(at: FloatArray) -> float:
        e = (u - at[0]) / at[1]
        q = choice.nominal + 0.025 + (0.95 - choice.nominal) * np.exp(0.5 * (u * u - e * e)) / at[1]
        return float((p * ndtr(A + u) / q).sum() / v**2 - 1.0)

    best = minimize(variance, np.array([1.5, 0.9]), method="Nelder-Mead")
    assert choice.variance == pytest.approx(best.fun, rel=0.02)
    assert part.B[1, 0, 0] == pytest.approx(-best.x[0], abs=0.15)
    assert np.sqrt(part.C[1, 0, 0]) == pytest.approx(best.x[1], abs=0.1)
    assert np.abs(np.delete(part.B.reshape(-1), 2)).max() == 0.0
    rng = np.random.default_rng(1)
    z = part.B[1, 0, 0] + np.sqrt(part.C[1, 0, 0]) * rng.standard_normal(400_000)
    z = np.where(rng.random(len(z)) < choice.nominal / 0.95, rng.standard_normal(len(z)), z)
    e = (z - part.B[1, 0, 0]) / np.sqrt(part.C[1, 0, 0])
    ratio = np.exp(0.5 * (z * z - e * e)) / np.sqrt(part.C[1, 0, 0])
    q = (choice.nominal + (0.95 - choice.nominal) * ratio) / 0.95
    y = ndtr(A - z) / q / v  # chance averaged out; with it, the square is P/q² / v²
    square = y * y / ndtr(A - z)
    assert y.mean() == pytest.approx(1.0, abs=4 * y.std() / np.sqrt(len(y)))
    error = 4 * square.std() / np.sqrt(len(y))
    assert square.mean() == pytest.approx(1.0 + choice.variance, abs=error + 0.06 * choice.variance)


@pytest.mark.parametrize("several", [2, 4])
def test_the_variance_is_as_predicted_where_several_decisions_matter(several: int) -> None:
    """200,000 episodes from the parts themselves, within 4 standard errors of the mean square and
    5 %. The prediction leaves out what narrower decisions add across b: a factor of
    1/√(r(2 − r)) for each of the other directions, r the variance of a decision."""
    b = np.zeros((TIMES, D))
    b[:several, 0] = -3.0 / np.sqrt(several)
    found = push(
        ProbitModel(-12.0, b, np.zeros(0), 1e-12 * np.eye(2), 1.0),
        0,
        EpisodeCosts(1.0, 1.0, 1.0),
        0.0,
    )
    assert found is not None
    part, choice = found
    n = 200_000
    rng = np.random.default_rng(several)
    t, episode = np.tile(np.arange(TIMES), n), np.repeat(np.arange(n), TIMES)
    nothing = np.zeros((n * TIMES, 0))
    z = part.draw(nothing, t, rng.random((n * TIMES, D)), None)
    nominal = rng.random(n) < choice.nominal
    z[nominal[episode]] = rng.standard_normal((int(nominal.sum()) * TIMES, D))
    rows = DecisionRows(z, nothing, nothing, t, episode, n, np.zeros((n, 0)))
    weight = 1.0 / (choice.nominal + (1.0 - choice.nominal) * np.exp(part.log_ratio(rows)))
    P = ndtr(-12.0 + rows.total((b[t] * z).sum(axis=1)))
    v = float(ndtr(-12.0 / np.sqrt(10.0)))
    square = P * (weight / v) ** 2
    error = 4 * square.std() / np.sqrt(n)
    assert (P * weight).mean() == pytest.approx(v, rel=0.05)
    r = part.C[0, 0, 0]
    across = (r * (2.0 - r)) ** (-0.5 * (several - 1))
    expected = across * (1.0 + choice.variance)
    assert square.mean() == pytest.approx(expected, abs=error + 0.05 * expected)


def test_no_direction_gives_no_push() -> None:
    nothing = ProbitModel(A, np.zeros((TIMES, D)), np.zeros(0), np.eye(2), 0.0)
    assert push(nothing, 0, EpisodeCosts(1.0, 1.0, 1.0), 0.05) is None


def test_played_again_the_disturbances_are_the_same_and_then_nominal() -> None:
    problem = apeval.make("gaussian-sum", beta=0.5, steps=6)
    batch = rolled(problem, Nominal(), 40)
    scene = find_features(problem, batch)
    rows = scene.rows(batch)
    first = rows.e[rows.episode == 0]
    again = rolled(problem, ReplayedEpisode(first[:4], np.zeros(0)), 20, seed=9)
    a = again.a_E.reshape(20, 6)
    assert np.allclose(a[:, :4], batch.a_E[:4, 0])
    assert len(np.unique(a[:, 4])) == 20
    failures = rows.take(batch.failed)
    proposal = replay_failures(failures, np.arange(failures.n, dtype=float))
    assert len(proposal.components) == 4
    heaviest = proposal.components[-1]
    assert isinstance(heaviest, ReplayedEpisode)
    assert np.array_equal(heaviest.e, rows.e[rows.episode == np.flatnonzero(batch.failed)[-1]])
    with pytest.raises(TypeError, match="no density"):
        heaviest.log_prob(again.situation, again.a_E)


def test_outcomes_are_played_again_too() -> None:
    problem = apeval.make("pendulum-discrete")
    batch = rolled(problem, Nominal(), 3)
    rows = find_features(problem, batch).rows(batch)
    again = rolled(problem, ReplayedEpisode(rows.e[rows.episode == 1], np.zeros(0)), 5, seed=9)
    for k in range(5):
        assert np.array_equal(again.a_E[again.episode == k], batch.a_E[batch.episode == 1])


@pytest.mark.parametrize(("name", "chancy"), [("int-v1", False), ("pendulum", True)])
def test_ape_knows_whether_chance_decides_with_nature(name: str, chancy: bool) -> None:
    """The pendulum's start is left to chance."""
    problem = apeval.make(name).blind()
    learner = ApeLearner(problem, ApeConfig())
    simulation = Simulation(problem, make_key(3), Budget(episodes=2_000))
    while learner.advance(simulation) and learner.chance is None:
        pass
    assert learner.chance is not None
    assert (learner.chance > 0.0) is chancy
    assert learner.chance in np.arange(PLAYED + 1) / PLAYED


def test_the_question_is_open_again_after_five_vain_batches_then_after_ten_more() -> None:
    question = RandomnessTest()
    assert question.open
    for waits in (5, 10):
        question.answer(np.ones(8, bool), batches=2)
        assert question.chance == 0.0
        for rate in [0.1] * 4 + [0.2] + [0.19] * (waits - 1):  # the fifth was not in vain
            question.learned_batch(rate)
            assert not question.open
        question.learned_batch(0.0)
        assert question.open
    question.answer(np.arange(8) < 6, batches=20)
    assert question.chance == 0.25
    for _ in range(100):
        question.learned_batch(0.0)
    assert not question.open


def test_without_an_answer_the_question_waits_too() -> None:
    question = RandomnessTest()
    question.answer(np.zeros(0, bool), batches=2)
    assert question.chance is None
    assert not question.open


@pytest.mark.parametrize(("control", "asked"), [(0.5, 2), (1.0, 1)])
def test_chance_is_asked_again_where_fits_leave_failures_rare(control: float, asked: int) -> None:
    """After a first answer that nature decides alone, as failures that lie far out may give it;
    it is known to be wrong where chance has a part in every disturbance."""
    problem = apeval.make("chance-sum", beta=3.0, control=control, steps=2).blind()
    learner = ApeLearner(problem, ApeConfig())
    simulation = Simulation(problem, make_key(5), Budget(episodes=3_000))
    while learner.advance(simulation) and learner.chance is None:
        pass
    learner._question.chance = 0.0
    while learner.advance(simulation):
        pass
    assert learner._question.asked == asked
    assert learner.chance is not None
    assert (learner.chance > 0.0) is (asked == 2)
