"""What every method must keep, checked for each registered one on known truths."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.curtailed import at_least

import apeval
from apeval.learn.method import methods
from apeval.problem.problem import Problem
from apeval.problem.truth import Truth
from apeval.run.result import Result

BUDGET = {"walk": 1_200, "gauss": 1_200}


def problem_of(name: str) -> Problem:
    """A discrete and a continuous problem, both with a truth near 0.03."""
    if name == "walk":
        return apeval.make("walk", top=5)
    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=lambda x: x[:, 0] > 3.7617,  # S_4 > 1.8808·√4: Φ(−1.8808) = 0.03
        judge_at_end=True,
        margin=lambda x: 3.7617 - x[:, 0],
        horizon=4,
        name="gauss",
        truth=lambda: Truth(0.03, 0.0, "closed form"),
    )


def cases() -> list[Any]:
    return [
        pytest.param(method, name, id=f"{method.name}-{name}")
        for method in methods().values()
        for name in BUDGET
        if method.suits(problem_of(name)) is None
    ]


@cache
def run(method: str, name: str, seed: int) -> Result:
    """The run that several tests look at. What is looked over around a run has its own tests."""
    return apeval.evaluate(problem_of(name), method, steps=BUDGET[name], seed=seed, check=False)


def same(a: Result, b: Result) -> bool:
    ignored = ("problem", "truth", "seconds", "parameters")
    x, y = a.as_json(), b.as_json()
    return {k: v for k, v in x.items() if k not in ignored} == {
        k: v for k, v in y.items() if k not in ignored
    }


@pytest.mark.parametrize(("method", "name"), cases())
def test_a_renamed_copy_without_truth_gives_the_same_bits(method: Any, name: str) -> None:
    plain = run(method.name, name, 3)
    hidden = replace(problem_of(name), name="another", truth=None, description="", parameters={})
    renamed = apeval.evaluate(hidden, method.name, steps=BUDGET[name], seed=3, check=False)
    assert same(plain, renamed)
    assert plain.records == renamed.records
    assert renamed.truth is None
    assert not same(plain, run(method.name, name, 4))


@pytest.mark.parametrize(("method", "name"), cases())
def test_the_budget_holds_and_is_used(method: Any, name: str) -> None:
    by_steps = run(method.name, name, 0)
    assert 0.7 * BUDGET[name] <= by_steps.steps <= BUDGET[name]
    by_episodes = apeval.evaluate(problem_of(name), method.name, episodes=300, seed=0)
    if method.name == "splitting":  # a pilot of ten particles tells roughly what the rest costs
        assert 0.5 * 300 <= by_episodes.episodes <= 300
    else:
        assert by_episodes.episodes == 300
    assert by_steps.final.episodes <= by_steps.episodes
    assert by_steps.final.failures <= by_steps.failures


@pytest.mark.parametrize(("method", "name"), cases())
def test_the_estimate_covers_the_truth(method: Any, name: str) -> None:
    """20 seeds at 95 %: fewer than 16 covering has probability < 0.3 %. Of the slowest method 8
    seeds: fewer than 5 covering has probability < 0.05 %."""
    seeds, enough = (8, 5) if method.name == "ape-scalable" else (20, 16)

    def covers(seed: int) -> bool:
        result = run(method.name, name, seed)
        return result.interval[0] <= (result.truth or 0.0) <= result.interval[1]

    assert at_least(enough, range(seeds), covers)


@pytest.mark.parametrize(("method", "name"), cases())
def test_any_recorded_failure_replays_as_a_failure(method: Any, name: str) -> None:
    from apeval.simulate.replay import Record, replay

    problem = problem_of(name)
    result = run(method.name, name, 1)
    assert result.records
    for data in result.records[:3]:
        again = replay(problem, Record.from_json(data))
        assert bool(again.failed[0])
        assert again.a_E.tolist() == data["a_E"]
