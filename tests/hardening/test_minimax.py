"""The least failure probability on tables: against brute force, policy iteration and the agents."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

import apeval
from apeval.errors import ProblemError
from apeval.hardening.minimax import exact_minimax, exact_rounds, policy_values
from apeval.problem.exact import exact_adversary, exact_values
from apeval.problem.tabular_model import SAFE_END, TabularModel, failure_code


def little(seed: int, horizon_kind: int = 0) -> TabularModel:
    """Three states, two actions, three outcomes, three decisions, all at random."""
    rng = np.random.default_rng(seed)
    ends = np.array([SAFE_END, failure_code(1), 0, 1, 2])
    return TabularModel(
        agent=rng.dirichlet(np.ones(2), 3),
        nominal=rng.dirichlet(np.ones(3), (3, 2)),
        successor=rng.choice(ends, (3, 2, 3)),
        start=0,
        horizon=3,
        horizon_kind=horizon_kind,
    )


def by_hand(model: TabularModel, policy: tuple[int, ...]) -> float:
    """The failure probability of a policy over (t, s), path by path."""
    T, (S, _, E) = model.horizon or 0, model.shape
    total = 0.0
    for path in product(range(E), repeat=T):
        s, p = model.start, 1.0
        for t, a_E in enumerate(path):
            a_A = policy[t * S + s]
            p *= model.nominal[s, a_A, a_E]
            after = int(model.successor[s, a_A, a_E])
            if after < 0:
                # the rest of the path is free: each end is met E^(T - 1 - t) times
                total += p * (after < SAFE_END) / E ** (T - 1 - t)
                break
            s = after
        else:
            total += p * bool(model.horizon_kind)
    return total


@pytest.mark.parametrize("horizon_kind", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_no_policy_of_all_fails_less(seed: int, horizon_kind: int) -> None:
    model = little(seed, horizon_kind)
    found = exact_minimax(model)
    least = min(by_hand(model, policy) for policy in product(range(2), repeat=9))
    assert found.value == pytest.approx(least, rel=1e-12, abs=1e-15)
    own = by_hand(model, tuple(int(a) for a in found.policy.ravel()))
    assert own == pytest.approx(least, rel=1e-12, abs=1e-15)
    assert policy_values(model, found.policy)[0, 0] == pytest.approx(found.value, rel=1e-12)


def test_equal_actions_leave_the_one_with_the_lowest_number() -> None:
    model = little(1)
    same = replace(
        model,
        nominal=np.repeat(model.nominal[:, :1], 2, axis=1),
        successor=np.repeat(model.successor[:, :1], 2, axis=1),
    )
    assert not exact_minimax(same).policy.any()


def test_weights_bring_the_zero_variance_adversary_back_to_the_nominal_world() -> None:
    """What the recursion minimises is the weighted failure under π_E*, which never misses."""
    model = apeval.make("minigrid-stuck").table
    assert model is not None
    v, pi = exact_values(model), exact_adversary(model)
    agent = np.tile(model.agent.argmax(axis=1), (model.horizon or 0, 1))
    assert policy_values(model, agent) == pytest.approx(v, rel=1e-12)
    after = np.where(model.successor >= 0, v[1][np.maximum(model.successor, 0)], 0.0)
    goes_wrong = (model.successor < SAFE_END) + after
    drawn = pi[0] > 0.0
    weighted = np.where(drawn, goes_wrong * model.nominal / np.where(drawn, pi[0], 1.0), 0.0)
    s = np.arange(model.shape[0])
    assert (pi[0] * weighted).sum(axis=2)[s, agent[0]] == pytest.approx(v[0], rel=1e-9)


@pytest.mark.parametrize("name", ["minigrid-s1", "minigrid-s2", "minigrid-stuck"])
def test_the_frozen_networks_fail_more_often_than_they_need(name: str) -> None:
    problem = apeval.make(name)
    assert problem.truth is not None
    found = apeval.exact_minimax(problem)
    rounds = exact_rounds(problem)
    assert found.value <= problem.truth().value
    assert rounds[0] == pytest.approx(problem.truth().value, rel=1e-12)
    assert rounds[-1] == pytest.approx(found.value, rel=1e-9)
    assert all(after <= before for before, after in pairwise(rounds))
    state_alone = replace(problem.table, agent=np.eye(3)[found.policy[0]])  # type: ignore[type-var]
    assert exact_values(state_alone)[0, state_alone.start] >= found.value


def test_what_has_no_exact_value_is_refused() -> None:
    with pytest.raises(ProblemError, match="horizon"):
        exact_minimax(apeval.make("walk"))
    with pytest.raises(ProblemError, match="transition tables"):
        exact_minimax(apeval.make("int-v1"))
    with pytest.raises(ProblemError, match="one of 2 actions for each of 3 decisions"):
        policy_values(little(0), np.full((3, 3), 2))
