"""Simulation: independence of batching, replay bit by bit, budgets, mixtures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from apeval.environments import make
from apeval.errors import ApevalError, ProblemError, SimulationError
from apeval.problem.agent import Stochastic
from apeval.problem.draws import make_key
from apeval.problem.laws import Categorical, Normal, NormalLaw
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray
from apeval.simulate.adversary import Adversary, Mixture, Nominal, Situation, mixture, only
from apeval.simulate.episodes import Episodes, join
from apeval.simulate.replay import Record, record, replay
from apeval.simulate.rollout import rollout
from apeval.simulate.simulation import Budget, Simulation

PER_EPISODE = ["ids", "component", "length", "kind", "unresolved", "margin", "s_end", "a_0"]
PER_ROW = ["t", "s", "a_A", "a_E"]


class Pushing(Adversary):
    """A frozen adversary that leans to one side; densities as exact as the nominal's."""

    def _law(self, now: Situation) -> NormalLaw:
        law = now.law
        assert isinstance(law, NormalLaw)
        return NormalLaw(law.mean + 0.5, law.std)

    def sample(self, now: Situation, u: FloatArray) -> Array:
        return self._law(now).sample(u)

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        return self._law(now).log_prob(a_E)


def gusts(**changes: Any) -> Problem:
    """Everything random that a problem can hold: start, f_E, agent, state-dependent nature."""
    base: dict[str, Any] = {
        "nominal": Normal(lambda x, a_A: 0.1 * a_A, lambda x, a_A: 1.0 + 0.1 * np.abs(x), dim=1),
        "agent": Stochastic(lambda x: np.hstack([1.0 / (1.0 + x**2), x**2 / (1.0 + x**2)])),
        "initial": Normal(0.0, 0.5),
        "reset": lambda draws, a_0: a_0 + 0.1 * draws.normal(1),
        "step": lambda x, a_A, a_E, draws: 0.8 * x + a_E - 0.2 * a_A + 0.3 * draws.normal(1),
        "failed": lambda x: x[:, 0] > 2.5,
        "done": lambda x: x[:, 0] < -2.5,
        "margin": lambda x: 2.5 - x[:, 0],
        "horizon": 15,
    }
    return Problem(**{**base, **changes})


def controlled_walk(**changes: Any) -> Problem:
    """Without a horizon, discrete, with a discrete controlled start."""
    base: dict[str, Any] = {
        "nominal": Categorical([0.6, 0.4]),
        "initial": Categorical([0.5, 0.3, 0.2]),
        "reset": lambda draws, a_0: a_0 + 1,
        "step": lambda x, a_A, a_E, draws: x + 2 * a_E - 1,
        "failed": lambda x: x[:, 0] >= 8,
        "done": lambda x: x[:, 0] <= 0,
        "horizon": None,
        "cap": 60,
    }
    return Problem(**{**base, **changes})


PROBLEMS: dict[str, tuple[Callable[[], Problem], Mixture]] = {
    "gusts": (gusts, mixture([Pushing(), Nominal()], [0.7, 0.3])),
    "gusts without horizon": (lambda: gusts(horizon=None, cap=40), only(Nominal())),
    "gusts uncontrolled": (
        lambda: gusts(initial=None, reset=lambda draws: draws.normal(1)), only(Pushing())),
    "controlled walk": (controlled_walk, only(Nominal())),
    "walk": (lambda: make("walk", top=6), only(Nominal())),
    "minigrid": (lambda: make("minigrid-stuck"), only(Nominal())),
}  # fmt: skip


def simulate(problem: Problem, proposal: Mixture, groups: Sequence[Array]) -> Episodes:
    key = make_key(5)
    return join([rollout(problem, proposal, key, ids, ids) for ids in groups])


def same(a: Episodes, b: Episodes) -> None:
    for name in [*PER_EPISODE, *PER_ROW, "episode"]:
        equal = np.array_equal(getattr(a, name), getattr(b, name), equal_nan=name == "margin")
        assert equal, name


@pytest.mark.parametrize("name", PROBLEMS)
def test_results_do_not_depend_on_batching(name: str) -> None:
    build, proposal = PROBLEMS[name]
    problem, ids = build(), np.arange(40)
    whole = simulate(problem, proposal, [ids])
    uneven = simulate(problem, proposal, np.split(ids, [1, 2, 7, 30]))
    alone = simulate(problem, proposal, np.split(ids, 40))
    same(whole, uneven)
    same(whole, alone)
    for q in (*proposal.components, Nominal()):
        assert np.array_equal(whole.log_density(q), uneven.log_density(q))
        assert np.array_equal(whole.log_density(q), alone.log_density(q))


def test_episodes_can_come_in_any_order() -> None:
    problem, proposal = gusts(), mixture([Pushing(), Nominal()], [0.5, 0.5])
    ids = np.random.default_rng(0).permutation(30)
    shuffled = simulate(problem, proposal, [ids])
    straight = simulate(problem, proposal, [np.arange(30)])
    for name in PER_EPISODE:
        assert np.array_equal(getattr(shuffled, name), getattr(straight, name)[ids]), name


@pytest.mark.parametrize("name", PROBLEMS)
def test_any_record_replays_bit_by_bit(name: str) -> None:
    build, proposal = PROBLEMS[name]
    problem = build()
    batch = simulate(problem, proposal, [np.arange(100, 160)])
    for i in range(0, 60, 4):
        it = record(batch, i, make_key(5))
        again = replay(problem, Record.from_json(it.as_json()))
        rows = batch.rows_of(i)
        for field in PER_ROW:
            assert np.array_equal(getattr(again, field), getattr(batch, field)[rows]), field
        for field in ("length", "kind", "unresolved", "s_end", "a_0"):
            assert np.array_equal(getattr(again, field)[0], getattr(batch, field)[i]), field
        assert np.array_equal(again.margin[0], batch.margin[i], equal_nan=True)
        nominal = batch.log_density(Nominal())[i]
        assert again.log_density(Nominal())[0] == nominal


def test_a_record_survives_json_text() -> None:
    import json

    problem = gusts()
    batch = simulate(problem, only(Nominal()), [np.arange(4)])
    it = record(batch, 2, make_key(5))
    assert Record.from_json(json.loads(json.dumps(it.as_json()))) == it


@pytest.mark.parametrize("name", PROBLEMS)
def test_rows_are_whole_and_in_order(name: str) -> None:
    build, proposal = PROBLEMS[name]
    problem = build()
    batch = simulate(problem, proposal, [np.arange(50)])
    first = 0 if problem.initial is None else 1
    for i in range(batch.n):
        rows = batch.rows_of(i)
        assert batch.t[rows].tolist() == list(range(int(batch.length[i]) - first))
        assert (batch.episode[rows] == i).all()
    assert batch.steps == len(batch.t) + first * batch.n
    assert np.array_equal(batch.sum_rows(np.ones(len(batch.t))), batch.length - first)


# Budgets


@pytest.mark.parametrize("steps", [21, 40, 100, 777, 5_000])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_budget_of_steps_is_never_exceeded(name: str, steps: int) -> None:
    build, proposal = PROBLEMS[name]
    simulation = Simulation(build(), make_key(0), Budget(steps=steps))
    position, seen = 0, 0
    while (n := min(64, simulation.affordable())) > 0:
        batch = simulation.run(proposal, n, position)
        position, seen = position + n, seen + batch.steps
        assert simulation.steps == seen <= steps
    assert simulation.episodes == position > 0
    # what is left would not pay for another episode of the longest kind
    unit = simulation.problem.longest + (simulation.problem.initial is not None)
    assert steps - seen < max(unit, 2 * simulation.longest_seen)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_budget_of_episodes_is_kept_exactly(name: str) -> None:
    build, proposal = PROBLEMS[name]
    simulation = Simulation(build(), make_key(0), Budget(episodes=75))
    while (n := min(32, simulation.affordable())) > 0:
        simulation.run(proposal, n, simulation.episodes)
    assert simulation.episodes == 75
    assert simulation.episodes_left == 0
    assert simulation.steps_left is None


def test_with_a_horizon_no_episode_is_cut() -> None:
    simulation = Simulation(gusts(), make_key(0), Budget(steps=1_000))
    cut = 0
    while (n := min(7, simulation.affordable())) > 0:
        batch = simulation.run(only(Nominal()), n, simulation.episodes)
        cut += int(batch.unresolved.sum())
    assert cut == 0


def test_the_simulation_books_what_it_did() -> None:
    simulation = Simulation(gusts(), make_key(0), Budget(steps=5_000))
    one = simulation.run(only(Pushing()), 50, 0)
    two = simulation.run(only(Pushing()), 30, 50)
    assert simulation.episodes == 80
    assert simulation.steps == one.steps + two.steps
    assert simulation.failures == one.failed.sum() + two.failed.sum() > 0
    assert simulation.longest_seen == max(one.length.max(), two.length.max())
    assert two.ids.tolist() == list(range(50, 80))  # no episode number is used twice


@pytest.mark.parametrize(
    ("budget", "words"),
    [({}, "either"), ({"steps": 5, "episodes": 5}, "not both"),
     ({"steps": 0}, "steps must be .* from 1"), ({"episodes": -3}, "episodes must .* got -3")],
)  # fmt: skip
def test_a_bad_budget_is_refused(budget: dict[str, int], words: str) -> None:
    with pytest.raises(ApevalError, match=words):
        Budget(**budget)


def test_shares_of_a_budget() -> None:
    assert Budget(steps=1_000).share(0.3) == Budget(steps=300)
    assert Budget(episodes=3).share(0.1) == Budget(episodes=1)


# Mixtures


@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.5), (0.9, 0.1), (0.45, 0.45, 0.1), (3.0, 1.0)])
def test_a_mixture_keeps_its_shares_all_along(shares: tuple[float, ...]) -> None:
    """At every position the counts are within three episodes of their share: the discrepancy of
    the golden-ratio sequence grows with log n only (Kuipers and Niederreiter, 1974, ch. 2.3)."""
    mix = Mixture((Nominal(),) * len(shares), shares)
    n = 5_000
    component = mix.assign(np.arange(n))
    for j, share in enumerate(shares):
        wanted = np.arange(1, n + 1) * share / sum(shares)
        assert np.abs(np.cumsum(component == j) - wanted).max() < 3.0
    pieces = [mix.assign(part) for part in np.split(np.arange(n), [1, 17, 900])]
    assert np.array_equal(np.concatenate(pieces), component)


def test_a_component_without_share_is_left_out() -> None:
    mix = mixture([Pushing(), Nominal()], [0.0, 1.0])
    assert len(mix.components) == 1
    assert isinstance(mix.components[0], Nominal)


def test_each_episode_belongs_to_one_component() -> None:
    proposal = mixture([Pushing(), Nominal()], [0.6, 0.4])
    both = simulate(gusts(), proposal, [np.arange(60)])
    for j, q in enumerate(proposal.components):
        mine = simulate(gusts(), only(q), [np.arange(60)])
        for i in np.flatnonzero(both.component == j):
            assert np.array_equal(both.a_E[both.rows_of(i)], mine.a_E[mine.rows_of(i)])


def test_a_state_that_is_no_number_is_refused() -> None:
    problem = gusts(step=lambda x, a_A, a_E, draws: x * np.where(draws.t >= 2, np.nan, 1.0))
    with pytest.raises(SimulationError, match=r"non-finite state in episode \d+ at decision 3"):
        simulate(problem, only(Nominal()), [np.arange(5)])


@pytest.mark.parametrize("steps", [2, 5, 16, 17, 33])
def test_a_small_budget_pays_for_controlled_starts(steps: int) -> None:
    simulation = Simulation(controlled_walk(), make_key(0), Budget(steps=steps))
    while (n := simulation.affordable()) > 0:
        simulation.run(only(Nominal()), n, simulation.episodes)
    assert 0 < simulation.steps <= steps


def test_a_step_in_place_does_not_change_what_was_recorded() -> None:
    def in_place(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        x += a_E
        return x

    def pure(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        return x + a_E

    nominal = Normal(lambda x, a_A: x, 1.0)
    one = simulate(gusts(step=in_place, nominal=nominal), only(Nominal()), [np.arange(20)])
    two = simulate(gusts(step=pure, nominal=nominal), only(Nominal()), [np.arange(20)])
    same(one, two)
    assert np.array_equal(one.log_density(Nominal()), two.log_density(Nominal()))


class Boxed:
    """A user's state object whose step works in place."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __getitem__(self, rows: Any) -> Boxed:
        return Boxed(self.a[rows])


def test_a_state_object_that_is_changed_in_place_keeps_its_records() -> None:
    def step(x: Boxed, a_A: Any, a_E: Any, draws: Any) -> Boxed:
        x.a += a_E
        return x

    problem = Problem(
        nominal=Normal(lambda x, a_A: 0.1 * x.a, 1.0, dim=1),
        reset=lambda draws: Boxed(np.zeros((draws.n, 1))),
        step=step,
        failed=lambda x: x.a[:, 0] > 2.0,
        horizon=5,
        views={"a": lambda x: x.a},
    )
    batch = rollout(problem, only(Nominal()), make_key(0), np.arange(50), np.arange(50))
    for i in range(batch.n):
        rows = batch.rows_of(i)
        walked = np.concatenate([[0.0], np.cumsum(batch.a_E[rows, 0])])
        assert batch.s[rows, 0] == pytest.approx(walked[:-1])


@pytest.mark.parametrize(
    "failed",
    [lambda x: x[:, :1] > 0, lambda x: np.full(len(x), 2), lambda x: np.full(len(x), 0.5)],
)
def test_a_failure_event_of_the_wrong_kind_is_refused(failed: Any) -> None:
    problem = Problem(
        nominal=Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=failed,
        horizon=2,
    )
    with pytest.raises(ProblemError, match="`failed` must return"):
        rollout(problem, only(Nominal()), make_key(0), np.arange(4), np.arange(4))
