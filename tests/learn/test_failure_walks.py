"""Walks among failures keep p(τ | failure); a search for modes finds what a fit does not know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.episode_features import EpisodeFeatures
from apeval.learn.ape.failure_walks import NearEpisodes, begin_walks, take_episodes
from apeval.learn.ape.feedback import Feedback
from apeval.learn.ape.missed_modes import ModeSearch, push_ratio
from apeval.learn.ape.mixture_fit import alone
from apeval.learn.ape.widened_proposals import Wider
from apeval.problem.draws import make_key
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.simulate.adversary import Mixture, Situation
from apeval.simulate.episodes import Episodes
from apeval.simulate.rollout import rollout
from apeval.simulate.simulation import Budget, Simulation

LIMIT = 2.0  # standard deviations of the sum beyond which an episode fails
STEPS, DIM = 3, 2


def sums(limit: float = LIMIT, both: bool = False, steps: int = STEPS) -> Problem:
    """A failure is a large sum of the first component; with `both`, or of the second."""

    def failed(x: NDArray[Any]) -> NDArray[Any]:
        over = x > limit * np.sqrt(steps)
        return np.where(over[:, 0], 1, np.where(over[:, 1] & both, 2, 0))

    return Problem(
        nominal=Normal(0.0, 1.0, dim=DIM),
        reset=lambda draws: np.zeros((draws.n, DIM)),
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=failed,
        judge_at_end=True,
        horizon=steps,
        kinds=("first", "second"),
        name="sums",
    )


def scene(steps: int = STEPS) -> EpisodeFeatures:
    return EpisodeFeatures(np.zeros(DIM), np.ones(DIM), np.arange(DIM), steps, False)


def exact_failures(n: int, rng: np.random.Generator, steps: int = STEPS) -> DecisionRows:
    """A sample of p(τ | failure) of `sums`."""
    z = rng.standard_normal((n, steps, DIM))
    along = -ndtri(rng.uniform(size=n) * ndtr(-LIMIT))
    z[:, :, 0] += (along - z[:, :, 0].sum(axis=1) / np.sqrt(steps))[:, None] / np.sqrt(steps)
    x = np.cumsum(z, axis=1) - z
    flat = (n * steps, DIM)
    return DecisionRows(
        z.reshape(flat), np.zeros((n * steps, 0)), x.reshape(flat), np.tile(np.arange(steps), n),
        np.repeat(np.arange(n), steps), n, np.zeros((n, 0)),
    )  # fmt: skip


@pytest.mark.parametrize("steps", [STEPS, 60])
def test_walks_keep_the_distribution_of_failures(steps: int) -> None:
    """From a sample of p(τ | failure), four steps of either kind, with walks as components of
    their own and as one: the mean of what is pushed is φ(2)/Φ(−2) and its variance and that of
    what is not are as they were, within four standard errors of 1,500 walks."""
    n, rng = 1_500, np.random.default_rng(3)
    walks = begin_walks(exact_failures(n, rng, steps), np.ones(n, np.int64), np.ones(n), n, rng)
    simulation = Simulation(sums(steps=steps), make_key(5), Budget(episodes=100_000))
    for _ in range(4):
        walks.advance(simulation, scene(steps))
    assert walks.alone == (steps == STEPS)
    total = [walks.rows.total(walks.rows.e[:, j]) / np.sqrt(steps) for j in range(DIM)]
    mills = norm.pdf(LIMIT) / ndtr(-LIMIT)
    spread = np.sqrt(1.0 + LIMIT * mills - mills**2)
    assert total[0].min() > LIMIT
    assert abs(total[0].mean() - mills) < 4.0 * spread / np.sqrt(n)
    assert abs(total[0].std() - spread) < 4.0 * spread / np.sqrt(n)  # the tail is exponential
    assert abs(total[1].mean()) < 4.0 / np.sqrt(n)
    assert abs(total[1].var() - 1.0) < 4.0 * np.sqrt(2.0 / n)
    assert (walks.kind == 1).all()


def test_walks_come_back_from_far_out() -> None:
    """Failures under three times the standard deviation: |z|² is 9 per component, and comes down
    to that of p(τ | failure) but for a tenth."""
    n, rng = 400, np.random.default_rng(4)
    rows = exact_failures(n, rng)
    far = take_episodes(rows, np.arange(n))
    far = DecisionRows(3.0 * far.e, far.p, far.x, far.t, far.episode, n, far.z_0)
    walks = begin_walks(far, np.ones(n, np.int64), np.ones(n), n, rng)
    simulation = Simulation(sums(), make_key(6), Budget(episodes=100_000))
    for _ in range(30):
        walks.advance(simulation, scene())
    mean_square = float((walks.rows.e**2).sum() / n)
    assert mean_square < 1.1 * float((rows.e**2).sum() / n)


def test_a_proposal_stays_as_it_was_when_walks_go_on() -> None:
    """An episode of a walk can be simulated again after later steps."""
    rng = np.random.default_rng(4)
    walks = begin_walks(exact_failures(8, rng), np.ones(8, np.int64), np.ones(8), 8, rng)
    simulation = _Remembers(sums(), make_key(6), Budget(episodes=1_000))
    for _ in range(4):
        walks.advance(simulation, scene())
    for proposal, batch in vars(simulation)["seen"]:
        again = rollout(simulation.problem, proposal, simulation.key, batch.ids, np.arange(batch.n))
        assert np.array_equal(again.a_E, batch.a_E)


class _Remembers(Simulation):
    """Keeps every proposal with the episodes that it drew."""

    def run(self, proposal: Mixture, n: int, position: int, *rest: Any, **named: Any) -> Episodes:
        batch = super().run(proposal, n, position, *rest, **named)
        self.__dict__.setdefault("seen", []).append((proposal, batch))
        return batch


def test_a_step_follows_the_chosen_episode_and_goes_on_beyond_its_end() -> None:
    e = np.full((2, 2, DIM), 5.0)
    e[1] = -5.0
    step = np.full((2, 2, DIM), 1e-9)
    near = NearEpisodes(e, np.array([2, 1]), np.zeros((2, 0)), step, np.ones(2))
    s, a_A = np.zeros((2, DIM)), np.zeros((2, 0))
    whole = np.array([[0.1, 0.5], [0.9, 0.5]])
    now = Situation(s, a_A, np.array([1, 1]), sums().law(s, a_A), whole)
    a_E = near.sample(now, np.full((2, DIM), 0.5))
    assert a_E[0, 0] == pytest.approx(5.0)
    assert a_E[1, 0] == pytest.approx(0.0)  # the second episode had ended: π_E,gt
    with pytest.raises(TypeError):
        near.log_prob(now, a_E)


def _only_first(rows: DecisionRows) -> NDArray[Any]:
    """Lost on a proposal that knows of the first component only."""
    return np.asarray(rows.total(rows.e[:, 1]) > rows.total(rows.e[:, 0]))


def test_a_search_finds_a_mode_that_the_proposal_does_not_know() -> None:
    """Half of the failures are of either mode: that none of 12 walks begins in the second has a
    probability of 2⁻¹²."""
    problem = sums(3.5, both=True)
    simulation = Simulation(problem, make_key(7), Budget(episodes=4_000))
    search = ModeSearch(12, np.random.default_rng(0))
    while not search.over:
        search.advance(simulation, scene(), _only_first)
    assert search.found is not None
    assert _only_first(search.found).all()
    assert (search.found.total(search.found.e[:, 1]) > 3.5 * np.sqrt(STEPS)).all()
    assert simulation.episodes < 1_000


def test_a_search_that_finds_nothing_new_says_so() -> None:
    simulation = Simulation(sums(3.5), make_key(8), Budget(episodes=4_000))
    search = ModeSearch(6, np.random.default_rng(0))
    while not search.over:
        search.advance(simulation, scene(), lambda rows: np.zeros(rows.n, bool))
    assert search.found is None
    assert 1 <= search.walks <= 6


def test_a_search_without_failures_ends() -> None:
    simulation = Simulation(sums(60.0), make_key(9), Budget(episodes=4_000))
    search = ModeSearch(6, np.random.default_rng(0))
    while not search.over:
        search.advance(simulation, scene(), lambda rows: np.zeros(rows.n, bool))
    assert search.walks == 0
    assert simulation.episodes < 100


def test_a_search_keeps_the_budget() -> None:
    simulation = Simulation(sums(3.5), make_key(9), Budget(episodes=40))
    search = ModeSearch(12, np.random.default_rng(0))
    while not search.over:
        search.advance(simulation, scene(), lambda rows: np.zeros(rows.n, bool))
    assert simulation.episodes <= 40


def test_wide_noise_is_no_push() -> None:
    """A part that is wider than π_E,gt and pushes nowhere explains no walk, however wide; one that
    pushes explains what is pushed along it."""
    rng = np.random.default_rng(1)
    rows = exact_failures(50, rng)
    wide = DecisionRows(3.0 * rows.e, rows.p, rows.x, rows.t, rows.episode, rows.n, rows.z_0)
    wider = [(alone(Wider(1.2)), 1.0)]
    assert Wider(1.2).log_ratio(wide).mean() > 5.0
    assert push_ratio(wider, wide, rng).mean() < 0.0
    B = np.zeros((STEPS, DIM, 1 + 2 * DIM))
    B[:, 0, 0] = LIMIT / np.sqrt(STEPS)
    eye, none = np.tile(np.eye(DIM), (STEPS, 1, 1)), (np.zeros(0), np.zeros((0, 0)))
    push = Feedback(eye, *none, B=B)
    assert push_ratio([(alone(push), 1.0)], rows, rng) == pytest.approx(push.log_ratio(rows))
    narrow = Feedback(0.25 * push.C, push.m_0, push.C_0, B=B)
    assert push_ratio([(alone(narrow), 1.0)], rows, rng) == pytest.approx(push.log_ratio(rows))
    assert narrow.plain().log_ratio(rows) == pytest.approx(push.log_ratio(rows))


def test_a_search_that_is_cut_off_keeps_what_it_was_after() -> None:
    """The budget ends while walks in an unknown mode go on: they count as found."""
    simulation = Simulation(sums(3.5, both=True), make_key(7), Budget(episodes=190))
    search = ModeSearch(12, np.random.default_rng(0))
    while not search.over:
        search.advance(simulation, scene(), _only_first)
    assert search.lost > 0
    assert search.found is not None
    assert not search.complete
