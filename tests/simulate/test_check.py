"""`check_problem`: every kind of wrong problem is found, right ones pass, nothing escapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from apeval.environments import make
from apeval.errors import ProblemError
from apeval.problem.agent import Stochastic
from apeval.problem.draws import Draws
from apeval.problem.gym import from_gymnasium
from apeval.problem.laws import (
    Categorical,
    CategoricalLaw,
    Disturbance,
    Normal,
    NormalLaw,
    TruncatedNormal,
)
from apeval.problem.problem import Problem
from apeval.run.evaluate import evaluate
from apeval.simulate.check import check_problem
from apeval.simulate.check.density import bernstein, empirical_bernstein


def gusts(**changes: Any) -> Problem:
    """A right problem; `changes` make it wrong."""
    right: dict[str, Any] = {
        "nominal": Normal(0.0, 1.0),
        "reset": lambda draws: np.zeros((draws.n, 1)),
        "step": lambda x, a_A, a_E, draws: 0.9 * x + a_A + a_E,
        "agent": lambda x: -0.1 * x,
        "failed": lambda x: x[:, 0] > 4.0,
        "margin": lambda x: np.where(x[:, 0] > 4.0, 0.0, 1.0) * (4.0 - x[:, 0]),
        "horizon": 12,
    }
    return Problem(**{**right, **changes})


@dataclass(frozen=True)
class Swing:
    """A pendulum-like environment without Gymnasium: nature pushes, the agent lives inside."""

    state: Any = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        object.__setattr__(self, "rng", np.random.default_rng(seed))
        object.__setattr__(self, "state", self.rng.normal(0.0, 0.05, 2))  # type: ignore[attr-defined]
        return self.state.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        angle, speed = self.state
        torque = -2.0 * angle - speed + float(action[0])
        speed += 0.2 * (np.sin(angle) + torque) + 0.01 * self.rng.normal()  # type: ignore[attr-defined]
        object.__setattr__(self, "state", np.array([angle + 0.2 * speed, speed]))
        return self.state.copy(), 0.0, bool(abs(self.state[0]) > 1.0), False, {}


def swing() -> Problem:
    return from_gymnasium(
        Swing,
        nominal=Normal(0.0, 1.5),
        failed=lambda obs, terminated, truncated, info: terminated,
        margin=lambda obs, terminated, truncated, info: np.nextafter(1.0, 2.0) - abs(obs[0]),
        horizon=15,
    )


def state_dependent() -> Problem:
    """Two components, a truncated law and a controlled start, all moving with the state."""
    return gusts(
        nominal=TruncatedNormal(
            lambda x, a_A: np.repeat(0.1 * x, 2, axis=1), 0.5, [-1.0, -0.5], [1.0, 2.0]
        ),
        initial=Normal(0.0, [0.1, 0.2]),
        reset=lambda draws, a_0: a_0[:, :1].copy(),
        step=lambda x, a_A, a_E, draws: x + a_E.sum(axis=1, keepdims=True),
    )


def biased_walk() -> Problem:
    """Discrete and state-dependent, with a stochastic agent, chance in f_E, and no horizon."""

    def law(x: Any, a_A: Any) -> Any:
        up = np.where(x[:, 0] > 3, 0.2, 0.4) + 0.05 * a_A[:, 0]
        return np.stack([1.0 - up, up], axis=1)

    return Problem(
        nominal=Categorical(law, outcomes=2),
        agent=Stochastic(lambda x: np.full((len(x), 2), 0.5)),
        reset=lambda draws: np.where(draws.uniform() < 0.5, 1, 2),
        step=lambda x, a_A, a_E, draws: x + 2 * a_E - 1,
        failed=lambda x: x[:, 0] >= 9,
        done=lambda x: x[:, 0] <= 0,
        margin=lambda x: 9.0 - x[:, 0],
        horizon=None,
    )


RIGHT: dict[str, Callable[[], Problem]] = {
    "walk": lambda: make("walk"),
    "minigrid": lambda: make("minigrid-stuck"),
    "gusts": gusts,
    "gym": swing,
    "state-dependent": state_dependent,
    "biased walk": biased_walk,
    "at the end": lambda: gusts(
        judge_at_end=True,
        failed=lambda x: x[:, 0] > 1.0,
        margin=lambda x: np.nextafter(1.0, 2.0) - x[:, 0],
    ),
    "stuck at the horizon": lambda: gusts(horizon_kind=1),
    "uniform-like": lambda: gusts(nominal=TruncatedNormal(0.0, 50.0, [-1.0] * 3, [1.0] * 3),
                                  step=lambda x, a_A, a_E, draws: x + a_E[:, :1]),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_problems_pass(name: str) -> None:
    report = check_problem(RIGHT[name](), episodes=100)
    assert report.ok, str(report)
    assert report.complete
    report.raise_if_bad()
    found = {f.name for f in report.findings}
    assert {"shapes", "finite states", "density", "repeatable", "batching", "ends"} <= found
    assert ("initial density" in found) == (name == "state-dependent")


def test_failures_are_seen_although_they_are_rare() -> None:
    """The episodes driven to extremes: nominally the event has probability below 1e-3."""
    report = check_problem(gusts(failed=lambda x: x[:, 0] > 8.0, margin=lambda x: 10.0 - x[:, 0]))
    (bad,) = report.bad
    assert bad.name == "margin"


@dataclass(frozen=True)
class Mismatched(NormalLaw):
    """Samples with another std than the density's."""

    def sample(self, u: Any) -> Any:
        return self.mean + 1.1 * (super().sample(u) - self.mean)


@dataclass(frozen=True)
class Shifted(NormalLaw):
    def sample(self, u: Any) -> Any:
        return super().sample(u) + 0.1 * self.std


@dataclass(frozen=True)
class Unnormalised(NormalLaw):
    def log_prob(self, a: Any) -> Any:
        return super().log_prob(a) + 0.05


@dataclass(frozen=True)
class Clipped(NormalLaw):
    def sample(self, u: Any) -> Any:
        return np.clip(super().sample(u), -2.0, 2.0)


@dataclass(frozen=True)
class Outside(NormalLaw):
    """Unclipped samples, truncated density."""

    def log_prob(self, a: Any) -> Any:
        return np.where(np.abs(a[:, 0]) > 2.0, -np.inf, super().log_prob(a))


@dataclass(frozen=True)
class PerComponent(NormalLaw):
    def log_prob(self, a: Any) -> Any:
        return -0.5 * a * a


@dataclass(frozen=True)
class Reversed(CategoricalLaw):
    def sample(self, u: Any) -> Any:
        return self.probabilities.shape[1] - 1 - super().sample(u)


class Wrapped(Disturbance):
    """Another disturbance's parameters with a wrong law."""

    def __init__(self, base: Any, law: Any) -> None:
        self.base, self.law, self.dim = base, law, base.dim

    def given(self, x: Any, a_A: Any) -> Any:
        right = self.base.given(x, a_A)
        return self.law(*vars(right).values())


class WrappedDiscrete(Wrapped):
    discrete = True


MOVING = Normal(lambda x, a_A: 0.1 * x, lambda x, a_A: 1.0 + 0.1 * np.abs(x), dim=1)
DRIFT = Categorical(lambda x, a_A: np.array([[0.45, 0.55]]) + 0.0 * x, outcomes=2)


class Hidden:
    """A simulator with randomness of its own."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def step(self, x: Any, a_A: Any, a_E: Any, draws: Draws) -> Any:
        return x + a_E + self.rng.normal(size=x.shape)


def in_place(x: Any, a_A: Any, a_E: Any, draws: Draws) -> Any:
    x += a_E
    return x


def explode(x: Any, a_A: Any, a_E: Any, draws: Draws) -> Any:
    return np.where(np.abs(x) > 1.0, np.nan, x + a_E)


def scalar_thinking(x: Any, a_A: Any, a_E: Any, draws: Draws) -> Any:
    return x + 1.0 if x[:, 0] > 0.0 else x - 1.0


# what is wrong, in which check it shows, and words of the cause and of the remedy
WRONG: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "reset forgets the batch": (
        {"reset": lambda draws: np.zeros((1, 1))}, "shapes", ["1 episodes", "first axis"]),
    "reset returns nothing": (
        {"reset": lambda draws: None}, "shapes", ["`reset`", "NoneType", "return"]),
    "reset returns a list": (
        {"reset": lambda draws: [0.0] * draws.n}, "shapes", ["list", "NumPy array"]),
    "reset lacks a_0": (
        {"initial": Normal(0.0, 1.0)}, "exception", ["`reset with a_0`", "reset(draws, a_0)"]),
    "step drops an episode": (
        {"step": lambda x, a_A, a_E, draws: x[:-1]}, "shapes", ["`step`", "first axis"]),
    "step for one episode": (
        {"step": scalar_thinking}, "exception", ["ambiguous", "test_check.py", "n episodes"]),
    "view too deep": (
        {"views": {"deep": lambda x: x[:, :, None]}}, "shapes", ["view 'deep'", "(50, 1, 1)"]),
    "view of another width": (
        {"views": {"v": lambda x: np.zeros((len(x), 1 + (np.abs(x).max() > 0)))}},
        "shapes", ["view 'v'", "2 columns", "must not change"]),
    "agent returns None": ({"agent": lambda x: None}, "agent", ["`agent`", "None", "return"]),
    "agent returns words": (
        {"agent": lambda x: np.array(["left"] * len(x))}, "agent", ["`agent`", "of numbers"]),
    "agent returns one action": (
        {"agent": lambda x: 0.0}, "agent", ["`agent`", "()", "batch"]),
    "agent gives NaN": (
        {"agent": lambda x: x * np.nan}, "agent", ["`agent`", "NaN"]),
    "agent's probabilities": (
        {"agent": Stochastic(lambda x: np.full((len(x), 2), 0.4))},
        "agent", ["do not sum to 1", "divide"]),
    "failed keeps an axis": (
        {"failed": lambda x: x > 4.0}, "shapes", ["`failed`", "(50, 1)", "drop the last axis"]),
    "failed is a number": (
        {"failed": lambda x: x[:, 0] - 4.0}, "shapes", ["`failed`", "floating-point", "compare"]),
    "failed has unknown kinds": (
        {"failed": lambda x: np.where(x[:, 0] > 1.0, 2, 0)}, "shapes", ["kind 2", "kinds="]),
    "failed for one episode": (
        {"failed": lambda x: bool(x[0, 0] > 4.0)}, "shapes", ["`failed`", "shape ()", "x[:, 0]"]),
    "done is a number": (
        {"done": lambda x: np.zeros(len(x))}, "shapes", ["`done`", "booleans"]),
    "margin keeps an axis": (
        {"margin": lambda x: 4.0 - x}, "shapes", ["`margin`", "(50, 1)", "drop the last axis"]),
    "margin is NaN": (
        {"margin": lambda x: x[:, 0] * np.nan}, "margin", ["`margin`", "NaN"]),
    "margin of the wrong sign": (
        {"margin": lambda x: x[:, 0] - 4.0}, "margin", ["≤ 0 in", "without failure", "sign"]),
    "margin with another zero": (
        {"margin": lambda x: 30.0 - x[:, 0]}, "margin", ["> 0 in", "failed = margin"]),
    "dim too large": (
        {"nominal": Normal([0.0, 0.0], 1.0, dim=1)}, "exception", ["`nominal`", "n rows"]),
    "dim too small": (
        {"nominal": Normal(lambda x, a_A: np.zeros((len(x), 3)), 1.0)},
        "shapes", ["`dim` is 1", "give dim="]),
    "parameter rows": (
        {"nominal": Normal(lambda x, a_A: np.zeros((7, 1)), 1.0)},
        "shapes", ["`mean`", "(7, 1)", "one row"]),
    "std below zero": (
        {"nominal": Normal(0.0, lambda x, a_A: np.full((len(x), 1), np.nan))},
        "density", ["NaN", "std must be > 0"]),
    "samples too wide": (
        {"nominal": Wrapped(Normal(0.0, 1.0), Mismatched)}, "density", ["does not match"]),
    "samples too wide, state-dependent": (
        {"nominal": Wrapped(MOVING, Mismatched)}, "density", ["does not match", "same parameters"]),
    "samples shifted": (
        {"nominal": Wrapped(MOVING, Shifted)}, "density", ["lower half", "does not match"]),
    "density unnormalised": (
        {"nominal": Wrapped(MOVING, Unnormalised)}, "density", ["integrates to 1"]),
    "samples clipped": (
        {"nominal": Wrapped(Normal(0.0, 1.0), Clipped)}, "density", ["clip", "TruncatedNormal"]),
    "samples outside": (
        {"nominal": Wrapped(Normal(0.0, 1.0), Outside)}, "density", ["same support"]),
    "density per component": (
        {"nominal": Wrapped(Normal(0.0, 1.0), PerComponent)}, "density", ["log_prob", "sum over"]),
    "initial samples too wide": (
        {"initial": Wrapped(Normal(0.0, 1.0), Mismatched), "reset": lambda draws, a_0: a_0.copy()},
        "initial density", ["initial law", "does not match"]),
    "outcomes reversed": (
        {"nominal": WrappedDiscrete(DRIFT, Reversed)}, "density", ["outcome 0", "does not match"]),
    "probabilities unnormalised": (
        {"nominal": Categorical(lambda x, a_A: np.full((len(x), 4), 0.3), outcomes=4)},
        "density", ["sum to 1.2", "divide"]),
    "outcomes miscounted": (
        {"nominal": Categorical(lambda x, a_A: np.full((len(x), 4), 0.25), outcomes=2)},
        "density", ["has 2 outcomes", "outcomes="]),
    "states explode": (
        {"step": explode}, "finite states", ["NaN", "end the episode"]),
    "randomness of its own": (
        {"step": Hidden().step}, "repeatable", ["same seed", "`draws`"]),
    "rows mixed": (
        {"step": lambda x, a_A, a_E, draws: 0.9 * x + a_E - 0.1 * x.mean()},
        "batching", ["the next state", "mix rows"]),
    "endless": ({"horizon": None, "cap": 300}, "ends", ["cap of 300", "horizon="]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_problems_are_found(name: str) -> None:
    changes, check, words = WRONG[name]
    if name == "endless":
        changes = {**changes, "failed": lambda x: x[:, 0] > 1e9, "margin": None}
    report = check_problem(gusts(**changes), episodes=100)
    assert not report.ok, str(report)
    bad = report.bad[0]
    assert bad.name == check, str(report)
    for word in words:
        assert word in bad.message, bad.message
    with pytest.raises(ProblemError, match="^" + check):
        report.raise_if_bad()
    assert "BAD" in str(report)
    assert bad.message in str(report)


@pytest.mark.parametrize(
    ("part", "value", "says"),
    [
        ("agent", 3, "`agent` is a int, expected a function"),
        ("failed", None, "`failed` is None, expected a function"),
        ("nominal", np.random.default_rng(0), "Normal, TruncatedNormal"),
        ("initial", 3, "`initial` is a int"),
        ("horizon", 2.5, "`horizon` must be a whole number"),
        ("horizon", 2**70, "`horizon` must be a whole number"),
        ("chunk", 0, "`chunk` must be a whole number of at least 1"),
        ("views", {}, "`views` is a dict, expected names with functions"),
        ("views", {"a": None}, "view 'a'"),
        ("kinds", "crash", r"kinds=\('crash',\)"),
        ("kinds", ("a", "a"), "none twice"),
        ("judge_at_end", "x", "True or False"),
        ("name", None, "`name` is None"),
        ("truth", 0.5, "`truth` is a float, expected a function"),
    ],
)
def test_parts_of_the_wrong_kind_are_refused_when_the_problem_is_written(
    part: str, value: object, says: str
) -> None:
    with pytest.raises(ProblemError, match=says):
        gusts(**{part: value})


def test_an_endless_problem_is_found_before_a_far_cap() -> None:
    problem = gusts(horizon=None, failed=lambda x: x[:, 0] > 1e9, margin=None)
    (bad,) = check_problem(problem, episodes=10, seconds=1.0).bad
    assert bad.name == "ends"
    assert "none of 5 episodes ended" in bad.message


def test_rounding_by_batch_size_is_told_and_not_blamed() -> None:
    """What a matrix library may do: last digits that depend on the number of rows."""
    problem = gusts(agent=lambda x: -0.1 * x * (1.0 + 1e-15 * len(x)))
    report = check_problem(problem)
    assert report.ok, str(report)
    (batching,) = (f for f in report.findings if f.name == "batching")
    assert "up to rounding" in batching.message


def test_a_broken_part_is_reported_once_and_the_rest_waits() -> None:
    report = check_problem(gusts(step=lambda x, a_A, a_E, draws: x[:-1]))
    assert not report.complete
    assert len(report.bad) == 1
    assert "once this is mended" in str(report)


def test_several_findings_are_told_together() -> None:
    problem = gusts(margin=lambda x: x[:, 0] - 4.0, step=Hidden().step)
    with pytest.raises(ProblemError, match=r"margin: .*; repeatable: "):
        check_problem(problem).raise_if_bad()


def test_a_slow_simulator_is_checked_on_less() -> None:
    import time

    def slow(x: Any, a_A: Any, a_E: Any, draws: Draws) -> Any:
        time.sleep(2e-3 * len(x))
        return x + a_E

    began = time.monotonic()
    report = check_problem(gusts(step=slow, chunk=8, horizon=1_000, margin=None), seconds=0.5)
    assert report.ok, str(report)
    assert time.monotonic() - began < 20.0  # in full, it would be 400 s


def test_nothing_is_simulated_twice_by_hidden_side_effects() -> None:
    """The check leaves a problem as it was: a second check says the same."""
    problem = swing()
    assert str(check_problem(problem, episodes=20)) == str(check_problem(problem, episodes=20))


def test_thresholds_hold_their_level() -> None:
    """Both bounds at a level that can be seen: at most 5 % of 2,000 means stray farther."""
    rng = np.random.default_rng(0)
    coins = (rng.random((2_000, 300)) < 0.1).astype(float)
    gap = np.abs(coins.sum(axis=1) - 30.0)
    assert (gap > bernstein(np.array(300 * 0.09), 1.0, 0.05)).mean() <= 0.05
    stray = empirical_bernstein(coins, 1.0, 0.05)
    assert (np.abs(coins.mean(axis=1) - 0.1) > stray).mean() <= 0.05
    assert stray.max() < 0.2  # and they are not empty


def test_a_name_is_in_the_report() -> None:
    assert str(check_problem(replace(gusts(), name="mine"), episodes=4)).startswith(
        "problem 'mine': 8 checks, passed"
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "none of 4 episodes fails without disturbance"),
        ({"agent": lambda x: np.full((len(x), 1), 2.0)}, "4 of 4 episodes fail also without"),
        ({"judge_at_end": True, "agent": lambda x: x + 1.0}, "4 of 4 episodes fail also without"),
        ({"horizon_kind": 1}, "4 of 4 episodes fail also without"),
        (
            {"nominal": Categorical([0.9, 0.1]), "agent": lambda x: 0.3 + 0.0 * x},
            "none of 4 episodes fails without disturbance",
        ),
    ],
)
def test_it_is_told_whether_a_policy_fails_by_itself(changes: dict[str, Any], says: str) -> None:
    report = check_problem(gusts(**changes), episodes=8)
    (found,) = (f for f in report.findings if f.name == "undisturbed")
    assert found.ok
    assert says in found.message
    assert found.remark == ("fail also" in says)


def test_a_disturbed_start_is_taken_in_its_middle() -> None:
    off = gusts(initial=Normal(9.0, 0.1), reset=lambda draws, a_0: a_0)
    report = check_problem(off, episodes=8)
    assert "4 of 4 episodes fail also" in str(report)


def test_a_missing_margin_is_told_in_the_words_of_the_door() -> None:
    plain = check_problem(gusts(margin=None), episodes=8)
    assert plain.ok
    assert "note margin: there is none" in str(plain)
    assert "Problem(…, margin=lambda x:" in str(plain)
    swing = from_gymnasium(
        Swing, nominal=Normal(0.0, 0.3), failed=lambda obs, term, trunc, info: term, horizon=8
    )
    assert "from_gymnasium(…, margin=lambda obs, " in str(check_problem(swing, episodes=8))
    wrong = from_gymnasium(
        Swing,
        nominal=Normal(0.0, 0.3),
        failed=lambda obs, term, trunc, info: term,
        margin=lambda obs, term, trunc, info: -1.0,
        horizon=8,
    )
    (bad,) = check_problem(wrong, episodes=8).bad
    assert "failed=lambda obs: margin(obs) <= 0" in bad.message
    assert "failed(x)" not in bad.message


def test_a_result_says_that_the_policy_fails_by_itself() -> None:
    falls = gusts(agent=lambda x: np.full((len(x), 1), 2.0))
    result = evaluate(falls, "mc", episodes=20)
    assert any("fail also without disturbance" in text for text in result.warnings)
    assert not any(
        "without disturbance" in t for t in evaluate(gusts(), "mc", episodes=20).warnings
    )
