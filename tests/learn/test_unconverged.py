"""A proposal that is built on values which have not converged is not trusted.

`brp`, of the quantitative verification benchmark set: a file of N chunks is sent, each attempt is
lost with probability q, and MAX + 1 losses of one chunk in a row are a failure. An adversary that
has found the failure of the first chunks fails there in every episode, so that nothing is learned
of the later ones, and the estimate lacks their probability."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import apeval
from apeval.environments import make
from apeval.estimate.interval import Estimate
from apeval.estimate.warnings import unconverged
from apeval.learn.ape_tabular.implied_adversaries import UNKNOWN, planned_basis, value_bounds
from apeval.learn.method import methods
from apeval.problem.exact import exact_values, start_value
from apeval.problem.tabular_model import SAFE_END, TabularModel, failure_code
from apeval.remedies import in_shell

Q = 0.02 + 0.98 * 0.01


def brp(N: int, MAX: int, horizon: int | None = None) -> apeval.Problem:
    """State: chunk · (MAX + 1) + losses in a row; nature: arrives or is lost."""
    S = N * (MAX + 1)
    s = np.arange(S)
    arrives = (s // (MAX + 1) + 1) * (MAX + 1)
    successor = np.empty((S, 1, 2), np.int64)
    successor[:, 0, 0] = np.where(arrives < S, arrives, SAFE_END)
    successor[:, 0, 1] = np.where(s % (MAX + 1) < MAX, s + 1, failure_code(1))
    model = TabularModel(
        agent=np.ones((S, 1)),
        nominal=np.tile([1.0 - Q, Q], (S, 1, 1)),
        successor=successor,
        start=0,
        horizon=horizon,
    )
    return apeval.tabular_problem(model)


def truth(N: int, MAX: int) -> float:
    return float(-np.expm1(N * np.log1p(-(Q ** (MAX + 1)))))


def test_the_problem_is_the_benchmark() -> None:
    assert truth(64, 5) == pytest.approx(4.482058791e-8, rel=1e-9)
    model = brp(64, 5).table
    assert model is not None
    assert start_value(model, exact_values(model)) == pytest.approx(truth(64, 5), rel=1e-9)


@pytest.mark.parametrize(
    ("size", "how"),
    [
        ((64, 5), {}),
        ((64, 4), {}),
        ((64, 5), {"horizon": 500}),
        ((64, 5), {"table": None}),
    ],
)
def test_what_was_learned_of_the_first_chunks_alone_is_not_trusted(
    size: tuple[int, int], how: dict[str, Any]
) -> None:
    """About 15 times too low, with an interval of 0.2 %."""
    problem = brp(*size, horizon=how.get("horizon"))
    if "table" in how:
        problem = replace(problem, table=None)  # the plain loop
    off = {"unknown": 1e12}  # no exploration of what was never tried
    result = apeval.evaluate(problem, "ape-tabular", episodes=300, seed=0, settings=off)
    assert result.interval[1] < truth(*size) / 5.0
    assert not result.trusted
    assert "learning never tried" in result.warnings[0]
    assert "--method ape with --set learner=feedback" in in_shell(result.warnings[0])
    assert not any("not from it" in text for text in result.warnings)


@pytest.mark.parametrize(
    "how", [{}, {"horizon": 500}, {"table": None}, {"seed": 1}, {"seed": 2}, {"in_time": True}]
)
def test_transitions_that_were_never_tried_are_explored(how: dict[str, Any]) -> None:
    """Failures of all 64 chunks are in the estimate: 4 standard errors, each below 5 %."""
    problem = brp(64, 5, horizon=500 if "in_time" in how else how.get("horizon"))
    if "table" in how:
        problem = replace(problem, table=None)  # the plain loop
    settings = {"time_in_state": True} if "in_time" in how else {}
    result = apeval.evaluate(
        problem, "ape-tabular", episodes=3_000, seed=how.get("seed", 0), settings=settings
    )
    assert abs(result.estimate - truth(64, 5)) < 4.0 * result.standard_error
    assert result.standard_error < 0.05 * truth(64, 5)
    assert result.trusted


def test_bounds_hold_the_truth_and_meet_where_all_is_known() -> None:
    model = brp(4, 2).table
    assert model is not None
    memory, known = model.successor.copy(), start_value(model, exact_values(model))
    assert value_bounds(model, memory, {0: 1}) == pytest.approx((known, known), rel=1e-12)
    for place in np.random.default_rng(0).permutation(memory.size):
        memory.flat[place] = UNKNOWN
        lowest, highest = value_bounds(model, memory, {0: 1})
        assert lowest <= known * (1.0 + 1e-12)
        assert highest >= known * (1.0 - 1e-12)
    assert (lowest, highest) == (0.0, 1.0)


def test_what_was_learned_throughout_is_trusted() -> None:
    result = apeval.evaluate(brp(16, 2), "ape-tabular", episodes=3_000, seed=0)
    assert result.interval[0] <= truth(16, 2) <= result.interval[1]
    assert result.trusted


@pytest.mark.parametrize(("name", "steps"), [("walk", 20_000), ("minigrid-s1", 9_000)])
def test_a_right_estimate_stays_trusted_although_td_lags_behind(name: str, steps: int) -> None:
    """The planned proposal is not built on TD's v(s0), which is 50 times off on the walk."""
    result = apeval.evaluate(make(name), "ape-tabular", steps=steps, seed=0)
    assert result.trusted


def test_without_a_plan_the_proposal_is_built_on_the_value_of_td() -> None:
    result = apeval.evaluate(
        brp(64, 5), "ape-tabular", episodes=300, seed=0, settings={"planned": False}
    )
    assert not result.trusted
    assert any("the learned v(s0) is" in text for text in result.warnings)


def test_what_is_planned_on_lies_above_the_truth_and_reaches_it() -> None:
    """With all transitions known it is v*(s0); each one that is forgotten can only raise it."""
    model = brp(4, 2).table
    assert model is not None
    memory, before = model.successor.copy(), start_value(model, exact_values(model))
    assert planned_basis(model, memory, {0: 1}).value == pytest.approx(before, rel=1e-12)
    for place in np.random.default_rng(0).permutation(memory.size):
        memory.flat[place] = UNKNOWN
        now = planned_basis(model, memory, {0: 1}).value
        assert now >= before * (1.0 - 1e-12)
        before = now
    assert before == 1.0


@pytest.mark.parametrize(
    ("name", "settings", "built"),
    [
        ("mc", {}, False),
        ("cem", {}, False),
        ("ape", {"learner": "feedback"}, False),
        ("ape", {}, True),  # which learns in tables here
        ("ape-tabular", {}, True),
        ("ape-tabular", {"planned": False}, True),
    ],
)
def test_methods_declare_what_their_proposal_is_built_on(
    name: str, settings: dict[str, Any], built: bool
) -> None:
    problem, found = make("walk", top=5), methods()[name]
    learner = found.start(problem, found.config(**settings))
    assert (learner.basis() is not None) is built


def test_near_is_an_interval_or_a_factor_of_ten() -> None:
    found = Estimate(
        value=1e-6, standard_error=1e-8, interval=(0.9e-6, 1.1e-6), confidence=0.95, ess=100.0,
        unresolved_mass=0.0,
    )  # fmt: skip
    wide = replace(found, interval=(1e-9, 1e-3))
    for value, far in ((1e-6, False), (9e-6, False), (1.2e-7, False), (2e-5, True), (5e-8, True)):
        assert bool(unconverged(found, "v(s0)", value)) is far
        assert not unconverged(wide, "v(s0)", value)
    assert unconverged(found, "v(s0)", 2e-5)[0].serious
    assert not unconverged(replace(found, value=0.0), "v(s0)", 0.5)  # said otherwise
