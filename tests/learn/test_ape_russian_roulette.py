"""Russian roulette: nothing becomes biased, and decisions are saved where that pays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import apeval
from apeval.learn.ape.batch_weights import batch_weight
from apeval.learn.ape.complete_episodes import CompleteEpisodes
from apeval.learn.ape.config import ApeConfig
from apeval.learn.ape.episode_features import find_features
from apeval.learn.ape.learner import ApeLearner
from apeval.learn.ape.proposal_part import PartAdversary
from apeval.learn.ape.russian_roulette import (
    LEAST,
    WATCHFUL,
    RussianRoulette,
    UsualStates,
    learn_roulette,
)
from apeval.learn.ape.widened_proposals import Wider
from apeval.problem.draws import make_key
from apeval.run.frozen_stage import reduce
from apeval.simulate.adversary import Mixture, Nominal, mixture, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.rollout import rollout
from apeval.simulate.simulation import Budget, Simulation

CHANCE = 0.7
THRESHOLD = 3.7
TRUTH = float(norm.sf(THRESHOLD / np.sqrt(1.0 + CHANCE**2)))  # 1.2e-3


def early(horizon: int = 10, name: str = "") -> apeval.Problem:
    """The first gust and chance decide; the failure shows at the third decision of many."""

    def step(x, a_A, a_E, draws):  # type: ignore[no-untyped-def]
        height = np.where(x[:, 1] == 0, a_E[:, 0] + CHANCE * draws.normal()[:, 0], x[:, 0])
        return np.stack([height, x[:, 1] + 1], axis=1)

    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 2)),
        step=step,
        failed=lambda x: (x[:, 1] == 3) & (x[:, 0] > THRESHOLD),
        margin=lambda x: np.where(x[:, 1] == 3, THRESHOLD - x[:, 0], 10.0 * THRESHOLD),
        horizon=horizon,
        name=name,
    )


def draw(problem: apeval.Problem, proposal: Mixture, n: int, seed: int = 3) -> Episodes:
    return rollout(problem, proposal, make_key(seed), np.arange(n), np.arange(n))


def everywhere(times: int, features: int) -> UsualStates:
    """Every state is usual."""
    return UsualStates(
        np.zeros((times, features)), np.zeros((times, features, features)), np.full(times, np.inf)
    )


def some_roulette(times: int = 10) -> RussianRoulette:
    """Falls with the height, differently at each time."""
    theta = np.tile([-2.0, 0.8, 0.0, 0.3, 0.0], (times, 1)) * np.linspace(1.0, 2.0, times)[:, None]
    return RussianRoulette(theta, np.linspace(9.0, 1.0, times), 0.02, everywhere(times, 2))


def test_the_mean_stays_what_it_was_whatever_roulette_ends() -> None:
    """E_q[p/q · 1{failure}] = v with half of the episodes ended early, within 4 standard errors."""
    problem = early()
    scene = find_features(problem, draw(problem, only(Nominal()), 500))
    proposal = mixture([PartAdversary(Wider(2.0), scene, some_roulette()), Nominal()], [0.8, 0.2])
    batch = draw(problem, proposal, 60_000)
    nominal = batch.component == 1
    assert 0.2 < batch.ended_by_roulette[~nominal].mean() < 0.95
    assert not batch.ended_by_roulette[nominal].any()
    sample = reduce(batch, proposal)
    y = sample.weights * sample.failed
    assert abs(y.mean() - TRUTH) < 4 * y.std() / np.sqrt(len(y))
    # events of episodes that end late stand for those that were ended before
    late = sample.weights * (~batch.ended_by_roulette & (batch.length == 10))
    assert late.mean() == pytest.approx(1.0 - TRUTH, abs=4 * late.std() / np.sqrt(len(late)))


def test_the_smallest_part_met_is_the_probability_of_having_come_so_far() -> None:
    problem = early()
    scene = find_features(problem, draw(problem, only(Nominal()), 500))
    roulette = some_roulette()
    batch = draw(problem, only(Nominal()), 200)
    rows = scene.rows(batch)
    part = roulette.part(rows.x, rows.t)
    by_hand = [np.log(part[rows.episode == i].min()) for i in range(batch.n)]
    assert np.allclose(roulette.log_survival(rows), by_hand)
    assert part[rows.t == 0].min() == 1.0
    assert LEAST <= part.min() < part.max() <= 1.0
    running = rows.running_smallest(part)
    for i in range(5):
        mine = rows.episode == i
        assert np.allclose(running[mine], np.minimum.accumulate(part[mine]))


def test_an_episode_ended_by_roulette_is_no_failure_and_has_no_margin() -> None:
    problem = apeval.make("gaussian-sum", beta=2.0, steps=4)
    scene = find_features(problem, draw(problem, only(Nominal()), 200))
    roulette = RussianRoulette(np.full((4, 3), -3.0), np.ones(4), 0.5, everywhere(4, 1))
    batch = draw(problem, only(PartAdversary(Wider(1.0), scene, roulette)), 400)
    assert batch.ended_by_roulette.any()
    assert not (batch.failed & batch.ended_by_roulette).any()
    assert not (batch.unresolved & batch.ended_by_roulette).any()
    assert np.isposinf(batch.margin[batch.ended_by_roulette]).all()
    assert np.isfinite(batch.margin[~batch.ended_by_roulette]).all()
    assert (batch.length[batch.ended_by_roulette] < 4).all()


def test_roulette_learns_what_can_no_longer_fail() -> None:
    """Failures show at the third decision of ten and depend on the height: most is saved."""
    problem = early()
    pilot = draw(problem, only(Nominal()), 400)
    scene = find_features(problem, pilot)
    batch = draw(problem, only(PartAdversary(Wider(2.0), scene)), 800, seed=5)
    rows, failed = scene.rows(batch), batch.failed
    ones = np.ones(batch.n)
    judged = learn_roulette(rows, failed, ones, ones[failed], scene.times)
    assert judged is not None
    assert judged.cost < 0.5
    assert np.mean(1.0 / judged.survival) * judged.cost < 0.6
    fresh = draw(problem, only(PartAdversary(Wider(2.0), scene, judged.roulette)), 2_000, seed=6)
    assert fresh.length.mean() / batch.length.mean() == pytest.approx(judged.cost, rel=0.15)


def test_roulette_is_not_learned_from_few_failures() -> None:
    problem = early()
    scene = find_features(problem, draw(problem, only(Nominal()), 400))
    batch = draw(problem, only(PartAdversary(Wider(2.0), scene)), 800, seed=5)
    rows, ones = scene.rows(batch), np.ones(batch.n)
    few = batch.failed & (np.cumsum(batch.failed) <= 4)
    assert few.sum() == 4
    assert learn_roulette(rows, few, ones, ones[few], scene.times) is None


def test_roulette_is_not_learned_where_failures_are_frequent() -> None:
    problem = early()
    scene = find_features(problem, draw(problem, only(Nominal()), 400))
    proposal = only(PartAdversary(Wider(2.0), scene))
    batch = draw(problem, proposal, 800, seed=5)
    for keep, frequent in ((np.ones(800, bool), False), (batch.failed, True)):
        course, chosen = CompleteEpisodes(), batch.take(keep)
        course.add(scene.rows(chosen), chosen, proposal)
        assert course.frequent is frequent
        learned = course.learn(np.ones(int(chosen.failed.sum())), scene.times)
        assert (learned is None) is frequent
        assert course.due() is frequent  # what was not learned may be tried again


def test_episodes_in_unusual_states_go_on() -> None:
    """Heights beyond nearly all that were seen, where no failure was seen either."""
    problem = early()
    scene = find_features(problem, draw(problem, only(Nominal()), 400))
    batch = draw(problem, only(PartAdversary(Wider(2.0), scene)), 800, seed=5)
    rows, failed, ones = scene.rows(batch), batch.failed, np.ones(batch.n)
    judged = learn_roulette(rows, failed, ones, ones[failed], scene.times)
    assert judged is not None
    t = np.full(3, 4)
    low, middle, high = judged.roulette.part(
        scene.features(np.array([[-9.0, 4.0], [0.0, 4.0], [9.0, 4.0]])), t
    )
    assert (low, high) == (1.0, 1.0)
    assert middle == LEAST
    assert (
        judged.roulette.watchful().part(scene.features(np.array([[0.0, 4.0]])), t[:1]) == WATCHFUL
    )
    never_seen = learn_roulette(rows, failed, ones, ones[failed], scene.times + 1)
    assert never_seen is not None
    assert not never_seen.roulette.usual.contains(rows.x[:1], np.array([scene.times])).any()
    usual = judged.roulette.usual.contains(rows.x, rows.t)
    for time in range(1, scene.times):
        assert usual[rows.t == time].mean() == pytest.approx(0.95, abs=0.01)


def test_ape_gives_up_early_where_decisions_are_counted_and_stays_right() -> None:
    """10 seeds: the truth lies in at least 7 of the 95 % intervals (fewer: p = 0.001), the
    estimates' mean is within 4 of its standard errors, and episodes take 6 of 10 decisions."""
    results = [apeval.evaluate(early(), steps=10_000, seed=seed) for seed in range(10)]
    covered = sum(r.interval[0] <= TRUTH <= r.interval[1] for r in results)
    estimates = np.array([r.estimate for r in results])
    assert covered >= 7
    assert abs(estimates.mean() - TRUTH) < 4 * estimates.std() / np.sqrt(len(results))
    assert np.mean([r.steps / r.episodes for r in results]) < 6.0


def test_ape_gives_up_nothing_where_episodes_are_counted() -> None:
    problem = early().blind()
    simulation = Simulation(problem, make_key(1), Budget(episodes=600))
    learner = ApeLearner(problem, ApeConfig())
    while learner.advance(simulation):
        pass
    assert learner.judged is None
    assert not any(c.episodes.ended_by_roulette.any() for c in learner.counted())


def test_a_run_with_roulette_is_stored_and_reweighted(tmp_path: Path) -> None:
    problem = early()
    result = apeval.evaluate(problem, steps=10_000, seed=2, recorder=apeval.Recorder(tmp_path))
    run = apeval.load(tmp_path)
    assert run.result.estimate == result.estimate
    assert run.episodes.ended_by_roulette.any()
    assert np.array_equal(run.sample.kind > 0, run.episodes.failed)


def test_batches_count_more_the_more_is_known() -> None:
    for variance in (2.0, 20.0, 200.0):
        worth = [batch_weight(variance, ess) for ess in (2.0, 5.0, 10.0, 30.0, 100.0, 1_000.0)]
        assert worth[0] == 0.0
        assert worth == sorted(worth)
        assert worth[-1] == pytest.approx(1.0, abs=0.05)
