"""Failures that may begin at any time: pushes that take turns with waiting, and fits that begin
later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kstest, norm

import apeval
from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.delayed_part import DelayedPush
from apeval.learn.ape.episode_features import EpisodeFeatures
from apeval.learn.ape.experts import Experts, fit_experts
from apeval.learn.ape.feedback import fit_feedback
from apeval.learn.ape.proposal_part import PartAdversary
from apeval.problem.draws import make_key
from apeval.simulate.adversary import Nominal, mixture, only
from apeval.simulate.simulation import Budget, Simulation

AT = 1.5  # a state between waiting and pushing
SCENE = EpisodeFeatures(np.zeros(1), np.ones(1), np.zeros(1, np.int64), 30, False)


def failures(episodes: int, seed: int = 0) -> DecisionRows:
    """Of an autoregressive process that passes 3.2 at any of 30 times: they wait, then climb."""
    problem = apeval.make("ar1", phi=0.5, threshold=3.2, steps=30)
    simulation = Simulation(problem.blind(), make_key(seed), Budget(episodes=episodes))
    batch = simulation.run(only(Nominal()), episodes, 0)
    return SCENE.rows(batch.take(batch.failed))


@pytest.fixture(scope="module")
def experts() -> Experts:
    rows = failures(5_000)
    found = fit_experts(rows, np.ones(rows.n), 30)
    assert found is not None
    return found


def _here(z: NDArray[Any], x: NDArray[Any]) -> DecisionRows:
    """Decisions at time 5, each an episode of its own."""
    n = len(z)
    return DecisionRows(
        z[:, None], np.zeros((n, 0)), x[:, None], np.full(n, 5), np.arange(n), n, np.zeros((n, 0))
    )


def _density(part: Experts, grid: NDArray[Any]) -> NDArray[Any]:
    here = _here(grid, np.full(len(grid), AT))
    return np.asarray(np.exp(part.row_ratio(here)) * norm.pdf(grid))


def test_experts_have_a_density(experts: Experts) -> None:
    grid = np.linspace(-12.0, 12.0, 4_001)
    for part in (experts, experts.relaxed(0.5)):
        assert np.trapezoid(_density(part, grid), grid) == pytest.approx(1.0, abs=1e-6)


def test_experts_sample_from_their_density(experts: Experts) -> None:
    """Kolmogorov-Smirnov at 1 in 1,000, 4,000 draws against the integrated density."""
    n = 4_000
    u = np.random.default_rng(1).random((n, 1))
    z = experts.draw(np.full((n, 1), AT), np.full(n, 5), u, None)[:, 0]
    grid = np.linspace(-12.0, 12.0, 4_001)
    cdf = np.cumsum(_density(experts, grid))
    assert kstest(z, lambda q: np.interp(q, grid, cdf / cdf[-1])).pvalue > 1e-3


def _passing(steps: int, at: NDArray[Any]) -> NDArray[Any]:
    """v: the probability of passing 3.2 within so many steps, by quadrature."""
    x = np.linspace(-6.0, 3.2, 921)
    K = norm.pdf(x[None, :] - 0.5 * x[:, None]) * (x[1] - x[0])
    once, v = norm.sf(3.2 - 0.5 * x), np.zeros(len(x))
    for _ in range(steps):
        v = once + K @ v
    return np.where(at > 3.2, 1.0, np.interp(at, x, v))


def test_experts_push_about_as_much_as_the_zero_variance_adversary(experts: Experts) -> None:
    """The mass of pushes beyond 1.5 from three states at time 5. Some 300 failures pass x = 2.5
    about once each: √(0.25 / 300) = 0.03, and a gate that is smooth in the state."""
    grid = np.linspace(-8.0, 8.0, 2_001)
    for x in (0.0, 1.5, 2.5):
        best = norm.pdf(grid) * _passing(24, 0.5 * x + grid)
        ours = np.exp(experts.row_ratio(_here(grid, np.full(len(grid), x)))) * norm.pdf(grid)
        exact, found = (float(q[grid > 1.5].sum() / q.sum()) for q in (best, ours))
        assert found == pytest.approx(exact, abs=0.1)
    assert exact > 0.3


def test_experts_are_likelier_than_a_gaussian(experts: Experts) -> None:
    rows, unseen = failures(5_000), failures(5_000, seed=9)
    plain, _ = fit_feedback(rows, np.ones(rows.n), 30, None)
    gain = experts.log_ratio(unseen) - plain.log_ratio(unseen)
    assert gain.mean() > 4.0 * gain.std() / np.sqrt(len(gain))


def test_experts_are_not_asked_where_every_decision_pushes() -> None:
    rng = np.random.default_rng(2)
    x, noise = rng.standard_normal((2, 200 * 6))
    episode, t = np.repeat(np.arange(200), 6), np.tile(np.arange(6), 200)
    z = (2.0 + 0.5 * x + noise)[:, None]
    rows = DecisionRows(z, np.zeros((1_200, 0)), x[:, None], t, episode, 200, np.zeros((200, 0)))
    assert fit_experts(rows, np.ones(200), 6) is None


def test_a_delayed_part_has_the_mean_density_of_its_delays(experts: Experts) -> None:
    rows = failures(1_000, seed=3)
    delayed = DelayedPush(experts, 30)
    assert delayed.delays.tolist() == [5, 10, 15, 20, 25]
    ratio = np.zeros((rows.n, 5))
    for k, delay in enumerate(delayed.delays):
        for i in range(rows.n):
            mine = (rows.episode == i) & (rows.t >= delay)
            late = DecisionRows(
                rows.e[mine], rows.p[mine], rows.x[mine], rows.t[mine] - delay,
                np.zeros(mine.sum(), np.int64), 1, np.zeros((1, 0)),
            )  # fmt: skip
            ratio[i, k] = experts.row_ratio(late).sum()
    assert delayed.log_ratio(rows) == pytest.approx(np.log(np.exp(ratio).mean(axis=1)))


def test_a_delay_beyond_the_end_leaves_everything_to_the_nominal(experts: Experts) -> None:
    early = failures(2_000, seed=4)
    early = early.take(early.lengths() <= 5)
    assert early.n > 0
    assert DelayedPush(experts, 30).log_ratio(early) == pytest.approx(0.0)


def test_experts_and_delayed_parts_keep_probabilities(experts: Experts) -> None:
    """E_q[p/q · 1{event}] = P(event) within 4 standard errors."""
    problem = apeval.make("ar1", phi=0.5, threshold=3.2, steps=30)
    assert problem.truth is not None
    truth = problem.truth().value
    for part in (experts, DelayedPush(experts, 30)):
        player = PartAdversary(part, SCENE)
        simulation = Simulation(problem.blind(), make_key(5), Budget(episodes=4_000))
        batch = simulation.run(mixture([Nominal(), player], [0.3, 0.7]), 4_000, 0)
        log_q = np.logaddexp(
            np.log(0.3) + batch.log_density(Nominal()), np.log(0.7) + batch.log_density(player)
        )
        y = np.exp(batch.log_density(Nominal()) - log_q) * batch.failed
        assert abs(y.mean() - truth) < 4 * y.std() / np.sqrt(len(y))


def test_late_failures_get_their_share() -> None:
    """A fit that fails early would never meet those that come late, and be a third too low. With
    the exact failures a fit has a relative variance of about 5 per episode (waiting included);
    half of the 2,000 episodes sample from one: √(5 / 1,000) = 7 %, and three times that is 21 %.
    """
    problem = apeval.make("ar1", phi=0.8, threshold=6.5, steps=50)
    assert problem.truth is not None
    truth = problem.truth().value
    errors = [
        apeval.evaluate(problem, episodes=2_000, seed=seed).estimate / truth - 1.0
        for seed in (1, 2, 3)
    ]
    assert np.abs(errors).max() < 0.21
