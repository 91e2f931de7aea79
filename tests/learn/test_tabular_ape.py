"""Tabular APE: both update forms converge as the theorem says, and the compiled loop is the
plain one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from apeval.environments import make
from apeval.errors import ApevalError
from apeval.learn.ape_tabular.compiled import CompiledLearner
from apeval.learn.ape_tabular.config import ApeTabularConfig
from apeval.learn.ape_tabular.plain import PlainLearner
from apeval.learn.ape_tabular.stagnation import Stagnation
from apeval.problem.draws import make_key
from apeval.problem.exact import exact_adversary, exact_by_kind, exact_truth, exact_values
from apeval.problem.problem import Problem
from apeval.problem.tabular_model import SAFE_END, TabularModel, failure_code
from apeval.problem.tabular_problem import tabular_problem
from apeval.run.evaluate import evaluate
from apeval.simulate.simulation import Budget, Simulation


def small_mdp(horizon: int | None = None) -> TabularModel:
    """Three states, a stochastic agent with two actions, nature with three; v* is about 0.1."""
    fail = failure_code(1)
    successor = np.array(
        [
            [[SAFE_END, 1, 0], [1, SAFE_END, 2]],
            [[0, SAFE_END, 2], [SAFE_END, 2, 1]],
            [[1, SAFE_END, fail], [SAFE_END, fail, 0]],
        ]
    )
    nominal = np.array(
        [
            [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]],
            [[0.2, 0.6, 0.2], [0.7, 0.2, 0.1]],
            [[0.3, 0.5, 0.2], [0.5, 0.3, 0.2]],
        ]
    )
    agent = np.array([[0.6, 0.4], [0.5, 0.5], [0.3, 0.7]])
    kind = 1 if horizon else 0
    return TabularModel(agent, nominal, successor, start=0, horizon=horizon, horizon_kind=kind)


def learn(problem: Problem, steps: int, seed: int = 0, plain: bool = False, **settings: Any) -> Any:
    config = ApeTabularConfig(
        **{"learn_share": 0.99, "stop_tolerance": 0.0, **settings}  # type: ignore[arg-type]
    )
    simulation = Simulation(problem, make_key(seed), Budget(steps=int(steps / 0.99) + 1))
    learner = PlainLearner(problem, config) if plain else CompiledLearner(problem, config)
    while learner.advance(simulation):
        pass
    return learner


@pytest.mark.parametrize("value_update", ["online", "exact"])
@pytest.mark.parametrize("policy_update", ["row", "visited"])
def test_theorem_1_value_and_adversary_converge(value_update: str, policy_update: str) -> None:
    """‖v⁽ⁿ⁾ − v*‖ and ‖π_E⁽ⁿ⁾ − π_E*‖ fall as n grows; TD errors fall like n^−½, so a hundred
    times the steps must leave at most a fifth of the error (a tenth, with slack for noise)."""
    model = small_mdp()
    v_star, pi_star = exact_values(model), exact_adversary(model)
    problem = tabular_problem(model)
    v_error, pi_error = [], []
    for steps in (3_000, 300_000):
        errors = [
            (
                np.abs(run.v - v_star).max() / v_star.max(),
                np.abs(run.pi - pi_star).max(),
            )
            for run in (
                learn(
                    problem,
                    steps,
                    seed,
                    value_update=value_update,
                    policy_update=policy_update,
                    delta=1e-4,  # δ must not exceed π* > 0, or π_E cannot reach it
                    v_init=0.5,
                    step_size=5.0,
                )
                for seed in range(8)
            )
        ]
        v_error.append(float(np.mean([e[0] for e in errors])))
        pi_error.append(float(np.mean([e[1] for e in errors])))
    assert v_error[1] < 0.2 * v_error[0]
    assert v_error[1] < 0.02
    assert pi_error[1] < 0.5 * pi_error[0]
    assert pi_error[1] < 0.05


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"policy_update": "visited"},
        {"value_update": "exact"},
        {"n_step": 3},
        {"true_floor": True},
        {"time_in_state": True},
        {"time_in_state": True, "value_update": "exact", "n_step": 2},
        {"stop_tolerance": 0.5, "stop_window": 50},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["minigrid-s1", "mdp"])
def test_the_compiled_loop_equals_the_plain_one_bit_by_bit(
    settings: dict[str, Any], name: str
) -> None:
    problem = make(name) if name != "mdp" else tabular_problem(small_mdp(horizon=6))
    steps = 700
    fast = learn(problem, steps, seed=5, **settings)
    slow = learn(replace(problem, table=None), steps, seed=5, plain=True, **settings)
    assert fast.steps == slow.steps
    assert fast.value() == slow.value()
    assert fast.stopped == slow.stopped
    assert fast.failures_by_kind == slow.failures_by_kind
    assert fast.curve() == slow.curve()
    layers = fast.v.reshape(fast.layers, -1)
    for key, v in slow.tables.v.items():
        s, t = key if settings.get("time_in_state") else (key[0], 0)
        assert layers[t, s] == v
    pi = fast.pi.reshape(fast.layers, *fast.model.shape)
    for key, rows in slow.tables.rows.items():
        s, t = key if settings.get("time_in_state") else (key[0], 0)
        for (a_A,), row in rows.items():
            assert pi[t, s, int(a_A)].tolist() == row.pi


@pytest.mark.parametrize("settings", [{}, {"planned": False}, {"time_in_state": True}], ids=str)
def test_a_whole_evaluation_is_the_same_with_and_without_the_fast_path(
    settings: dict[str, Any],
) -> None:
    problem = make("minigrid-stuck")
    bare = replace(problem, table=None)
    fast = evaluate(problem, "ape-tabular", steps=900, seed=3, settings=settings)
    slow = evaluate(bare, "ape-tabular", steps=900, seed=3, settings=settings)
    assert (fast.steps, fast.episodes, fast.final.failures) == (
        slow.steps,
        slow.episodes,
        slow.final.failures,
    )
    assert fast.value == slow.value
    # the planned rows are solved in another order of states: equal to rounding
    assert fast.estimate == pytest.approx(slow.estimate, rel=1e-9)


def test_the_stopping_rule_is_the_one_of_table_1() -> None:
    rng = np.random.default_rng(0)
    window, tolerance = 40, 0.05
    values = 1.0 + np.cumsum(rng.normal(0.0, 0.2, 3_000)) / np.arange(1, 3_001)
    changes = rng.random(3_000) < 0.3
    rule, current, history, reached, direct = Stagnation(window, tolerance, 0.5), 0.5, [0.5], [], []
    for n in range(1, 3_001):
        if changes[n - 1]:
            current = float(values[n - 1])
            rule.change(n, current)
        history.append(current)
        reached.append(rule.reached(n, failures=1))
        recent = np.array(history[max(0, n - window) :])
        direct.append(n >= window and bool((np.abs(recent - current) < tolerance * current).all()))
    assert any(direct)
    assert not all(direct[window:])
    assert reached == direct
    assert not rule.reached(10**9, failures=0)


def test_exact_values_of_the_walk_are_the_gamblers() -> None:
    for name in ("walk", "queue"):
        problem = make(name)
        assert problem.table is not None
        assert problem.truth is not None
        assert exact_truth(problem.table).value == pytest.approx(problem.truth().value, rel=1e-9)


def test_exact_kinds_add_up_and_the_recursion_is_an_expectation() -> None:
    model = make("minigrid-stuck").table
    assert model is not None
    by_kind = exact_by_kind(model)
    total = exact_truth(model).value
    assert sum(by_kind.values()) == pytest.approx(total, rel=1e-12)
    assert 0.15 < by_kind["stuck"] / total < 0.25


def test_the_zero_variance_adversary_has_no_variance() -> None:
    """Under π_E* every failing path of the walk has weight v*(s0), and every path fails."""
    model = make("walk").table
    assert model is not None
    v, pi = exact_values(model), exact_adversary(model)
    s = np.arange(len(v))
    up = model.nominal[s, 0, 1] / pi[s, 0, 1]
    ratio = np.append(v[1:], 1.0)[:-1] / v[:-1]
    assert up[:-1] == pytest.approx(1.0 / ratio, rel=1e-9)
    assert pi[0, 0, 0] == 0.0


def test_walk_estimate_covers_and_is_accurate() -> None:
    """The done-when figures (RMSE ≤ 5 %, coverage ≥ 90 of 100) in small: `apeval bench tabular`
    has them at full length. 10 runs; P(≥ 4 of 10 miss | 90 % coverage) < 1.3 %."""
    problem = make("walk")
    truth = problem.truth().value if problem.truth else 0.0
    results = [evaluate(problem, "ape-tabular", steps=20_000, seed=s) for s in range(500, 510)]
    errors = np.array([r.estimate / truth - 1.0 for r in results])
    assert np.sqrt(np.mean(errors**2)) <= 0.05
    assert sum(r.interval[0] <= truth <= r.interval[1] for r in results) >= 7


def test_late_rewards_are_seen_not_hidden() -> None:
    """TD without time loses the stuck failures; the result says so and still covers or warns."""
    problem = make("minigrid-stuck")
    truth = problem.truth().value if problem.truth else 0.0
    results = [evaluate(problem, steps=9_000, seed=s) for s in range(500, 506)]
    assert all((r.value or 0.0) < 0.95 * truth for r in results)
    good = [r.interval[0] <= truth <= r.interval[1] or r.warnings for r in results]
    assert sum(map(bool, good)) >= 5


def test_a_trap_has_value_zero_and_does_not_spoil_the_rest() -> None:
    """State 1 leads to itself for ever: the Bellman system is singular there."""
    fail = failure_code(1)
    model = TabularModel(
        agent=np.ones((2, 1)),
        nominal=np.array([[[0.5, 0.3, 0.2]], [[0.5, 0.3, 0.2]]]),
        successor=np.array([[[SAFE_END, 1, fail]], [[1, 1, 1]]]),
        start=0,
    )
    assert exact_values(model).tolist() == [0.2, 0.0]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"time_in_state": True}, "horizon"),
        ({"true_floor": True, "delta": 0.5}, "delta below 0.5"),
        ({"nominal_share": 0.9, "wary_share": 0.5}, "exceed 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ApevalError, match=says):
        evaluate(make("walk"), "ape-tabular", steps=500, settings=settings)


def test_the_exact_form_needs_known_agent_probabilities() -> None:
    class Slips:
        def act(self, x: Any, draws: Any) -> Any:
            return (draws.uniform(1) < 0.1).astype(np.int64)

    problem = replace(make("walk", top=4), agent=Slips(), table=None)
    with pytest.raises(ApevalError, match="Stochastic"):
        evaluate(problem, "ape-tabular", steps=500, settings={"value_update": "exact"}, check=False)


def test_the_learned_value_of_a_random_start_is_the_mean_over_starts() -> None:
    """Start at 1 or 2 of a walk to 4, each with probability ½."""
    problem = make("walk", top=4, p_up=0.4)
    assert problem.table is not None
    v = exact_values(problem.table)
    bare = replace(
        problem,
        table=None,
        reset=lambda draws: (draws.uniform(1) < 0.5).astype(np.int64),
    )
    result = evaluate(bare, "ape-tabular", steps=8_000, seed=0)
    assert result.value == pytest.approx((v[0] + v[1]) / 2, rel=0.1)
