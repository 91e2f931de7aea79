"""A run that Monte Carlo would have beaten says so, and names the tools that fit the problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import apeval
from apeval.adapt.entrance import entrance
from apeval.hardening.natures import widened
from apeval.learn import method as methods
from apeval.learn.mc import MonteCarlo
from apeval.problem.problem import Problem
from apeval.remedies import Option, in_shell, remedies
from apeval.simulate.adversary import Mixture

STEPS = 40


class Shaky(MonteCarlo):
    """A proposal that is much too wide for episodes of many decisions."""

    def __init__(self, problem: Problem, config: Any) -> None:
        super().__init__(problem, config)
        self.of = problem

    def proposal(self) -> Mixture:
        return widened(self.of, 1.3)


@pytest.fixture(autouse=True)
def shaky(monkeypatch: pytest.MonkeyPatch) -> None:
    mc = methods.find_method("mc")
    it = methods.Method("shaky", "for tests", mc.config, Shaky, lambda problem: None)
    monkeypatch.setitem(methods._METHODS, "shaky", it)


def noisy(limit: float = 1.5, **parts: Any) -> Problem:
    """The mean of new noise at every step, P = Φ(−limit)."""
    scale = np.sqrt(STEPS)
    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E / scale,
        failed=lambda x: x[:, 0] > limit,
        horizon=STEPS,
        judge_at_end=True,
        **parts,
    )


def told(problem: Problem, method: str = "shaky", **budget: int) -> list[str]:
    result = apeval.evaluate(problem, method, seed=0, check=False, **(budget or {"episodes": 2000}))
    return [text for text in result.warnings if "times as wide as plain Monte Carlo's" in text]


@pytest.mark.parametrize("budget", [{"episodes": 2_000}, {"steps": 2_000 * STEPS}])
def test_a_wide_interval_is_told_with_its_tools(budget: dict[str, int]) -> None:
    problem = noisy(margin=lambda x: 1.5 - x[:, 0])
    (text,) = told(problem, **budget)
    assert "(2,000 episodes)" in text
    assert remedies(text) == [Option("method", "mc"), Option("method", "splitting")]
    assert "--method splitting" in in_shell(text)
    assert "hold=" not in text


def test_without_a_margin_it_says_how_to_give_one() -> None:
    (text,) = told(noisy())
    assert "give a margin, Problem(…, margin=lambda x:" in text


def test_monte_carlo_itself_and_runs_that_beat_it_are_not_warned_of() -> None:
    problem = noisy(3.5, margin=lambda x: 3.5 - x[:, 0])
    assert not told(noisy(), "mc")
    assert not told(problem, "splitting")


def test_without_a_failure_splitting_is_named_where_it_fits() -> None:
    problem = noisy(9.0, margin=lambda x: 9.0 - x[:, 0])
    for it, named in ((problem, True), (noisy(9.0), False)):
        result = apeval.evaluate(it, "shaky", episodes=50, seed=0, check=False)
        assert any(Option("method", "splitting") in remedies(t) for t in result.warnings) is named


def test_the_tools_of_from_env_are_its_own() -> None:
    pytest.importorskip("gymnasium")

    def wind(hold: int) -> Problem:
        return apeval.from_env(
            "Pendulum-v1",
            policy=lambda obs: [0.0],
            disturb=apeval.ActionNoise(std=0.5, hold=hold),
            fails=lambda obs: obs[0] < 0.0,
            horizon=20,
        )

    assert entrance(wind(1)).can_hold
    assert not entrance(wind(2)).can_hold
    assert entrance(wind(1)).margin.startswith("from_env(…, margin=lambda obs:")
    assert entrance(apeval.make("walk")).call == "Problem"
