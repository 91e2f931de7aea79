"""What user code gets is its own: in-place changes leave records and numbers as they are."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm

import apeval
from apeval.problem.argument_copies import own
from apeval.problem.draws import Draws, make_key
from apeval.problem.laws import Disturbance, Law


def walk(**parts: Any) -> apeval.Problem:
    """The sum of four standard normals above 6: Φ(−3)."""
    given: dict[str, Any] = {
        "nominal": apeval.Normal(0.0, 1.0),
        "reset": lambda draws: np.zeros((draws.n, 1)),
        "agent": lambda x: np.zeros((len(x), 1)),
        "step": lambda x, a_A, a_E, draws: x + a_A + a_E,
        "failed": lambda x: x[:, 0] > 6.0,
        "margin": lambda x: 6.0 - x[:, 0],
        "horizon": 4,
        "judge_at_end": True,
    }
    return apeval.Problem(**{**given, **parts})


def spoil(*arrays: Any) -> None:
    for array in arrays:
        array *= 3.0
        array += 1.0


def after(call: Callable[..., Any]) -> Callable[..., Any]:
    """The right answer, and then everything that was given is spoilt."""

    def spoiling(*given: Any) -> Any:
        answer = np.array(call(*given))
        spoil(*(value for value in given if isinstance(value, np.ndarray)))
        return answer

    return spoiling


def in_place(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    a_E += x
    a_E += a_A
    return a_E


right = walk()
CASES: dict[str, apeval.Problem] = {
    "step returns a_E": walk(step=in_place),
    "step": walk(step=after(lambda x, a_A, a_E, draws: x + a_A + a_E)),
    "agent": walk(agent=after(lambda x: np.zeros((len(x), 1)))),
    "failed": walk(failed=after(lambda x: x[:, 0] > 6.0)),
    "margin": walk(margin=after(lambda x: 6.0 - x[:, 0])),
    "done": walk(done=after(lambda x: np.zeros(len(x), bool))),
    "view": walk(views={"state": after(lambda x: x)}),
    "mean": walk(nominal=apeval.Normal(after(lambda x, a_A: np.zeros((len(x), 1))), 1.0, dim=1)),
}


@pytest.fixture(scope="module")
def kept() -> apeval.InMemory:
    run = apeval.InMemory(right)
    apeval.evaluate(right, episodes=1_500, seed=3, recorder=run)
    return run


@pytest.mark.parametrize("name", CASES)
def test_in_place_changes_change_no_bit(name: str, kept: apeval.InMemory) -> None:
    run = apeval.InMemory(CASES[name])
    result = apeval.evaluate(run.of, episodes=1_500, seed=3, recorder=run)
    assert result.estimate == kept.result.estimate
    assert result.interval == kept.result.interval
    assert np.array_equal(run.episodes.a_E, kept.episodes.a_E)
    assert np.array_equal(run.episodes.s, kept.episodes.s)
    assert kept.result.interval[0] < norm.sf(3.0) < kept.result.interval[1]


def test_a_changed_start_is_weighted_as_drawn() -> None:
    def reset(draws: Any, a_0: Any) -> Any:
        a_0 *= 0.5
        return a_0

    def problem(start: Any) -> apeval.Problem:
        law = apeval.Normal(0.0, 2.0)
        return walk(initial=law, reset=start)

    runs = []
    for start in (reset, lambda draws, a_0: 0.5 * a_0):
        runs.append(apeval.InMemory(problem(start)))
        apeval.evaluate(runs[-1].of, "mc", episodes=500, recorder=runs[-1])
    assert np.array_equal(runs[0].episodes.a_0, runs[1].episodes.a_0)
    assert runs[0].result.estimate == runs[1].result.estimate > 0.0


def test_buffers_that_are_used_again_do_not_reach_the_record() -> None:
    buffer = np.zeros((4_096, 1))

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        out = buffer[: len(x)]
        out[:] = x + a_A + a_E
        return out

    runs = []
    for problem in (walk(step=step), right):
        runs.append(apeval.InMemory(problem))
        apeval.evaluate(problem, "mc", episodes=600, recorder=runs[-1])
    assert np.array_equal(runs[0].episodes.s, runs[1].episodes.s)
    assert np.array_equal(runs[0].episodes.s_end, runs[1].episodes.s_end)


def test_a_nominal_is_what_it_was_when_it_was_made() -> None:
    std = np.array([1.0])
    nominal = apeval.Normal(0.0, std)
    std *= 3.0
    assert nominal.given(None, None).std.tolist() == [[1.0]]


def test_the_address_of_random_numbers_cannot_be_written() -> None:
    draws = Draws(make_key(0), np.arange(3))
    with pytest.raises(ValueError, match="read-only"):
        draws.ids[0] = 7
    with pytest.raises(ValueError, match="read-only"):
        draws.key[0] = 7


class Cart:
    """Gives its own state away as the observation, as some environments do."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.x = np.zeros(2)
        return self.x, {"x": self.x}

    def step(self, action: Any) -> Any:
        self.x[0] += float(action[0])
        return self.x, 0.0, False, False, {"x": self.x}


def normalising(obs: Any) -> Any:
    """A policy that normalises in place what it sees."""
    obs -= 0.5
    obs /= 2.0
    return obs[:1] * 0.1


def spoiling_judge(obs: Any, terminated: bool, truncated: bool, info: Any) -> Any:
    failed = obs[0] > 4.0
    obs[:] = 9.0
    info["x"][:] = 9.0
    return failed


def test_policies_and_judges_of_gymnasium_get_copies() -> None:
    def problem(policy: Any, failed: Any) -> apeval.Problem:
        return apeval.from_gymnasium(
            Cart, nominal=apeval.Normal(0.0, 1.0), agent=policy, failed=failed, horizon=4,
            apply=lambda env, a_A, a_E: env.step(a_A + a_E),
        )  # fmt: skip

    proper = problem(lambda obs: (obs[:1] - 0.5) / 2.0 * 0.1, lambda obs, *_: obs[0] > 4.0)
    runs = []
    for it in (problem(normalising, spoiling_judge), proper):
        runs.append(apeval.InMemory(it))
        apeval.evaluate(it, "mc", episodes=300, recorder=runs[-1])
    assert np.array_equal(runs[0].episodes.s_end, runs[1].episodes.s_end)
    assert runs[0].result.estimate == runs[1].result.estimate > 0.0


def test_own_copies_what_it_can() -> None:
    inner = np.zeros(1)
    handed = own({"a": [inner, (inner, 3)], "b": "text"})
    handed["a"][0][0] = handed["a"][1][0][0] = 5.0
    assert inner[0] == 0.0
    fortran = np.asfortranarray(np.ones((3, 2)))
    assert own(fortran).flags.f_contiguous
    thing = object()
    assert own(thing) is thing


class Pair(NamedTuple):
    a: Any
    b: int


def test_own_copies_ordered_and_named_observations() -> None:
    inner = np.zeros(1)
    ordered = own(OrderedDict(z=inner, a=Pair(inner, 3)))
    assert (type(ordered), list(ordered), type(ordered["a"])) == (OrderedDict, ["z", "a"], Pair)
    ordered["z"][0] = ordered["a"].a[0] = 5.0
    assert inner[0] == 0.0


@dataclass(frozen=True)
class Shifted(Law):
    """A normal law of the user's own, whose methods spoil what they get where it says so."""

    mean: Any
    spoils: Any

    def sample(self, u: Any) -> Any:
        a = self.mean + ndtri(u)
        spoil(*([u] if self.spoils[0, 0] else []))
        return a

    def log_prob(self, a: Any) -> Any:
        log_p = norm.logpdf(a - self.mean).sum(axis=1)
        spoil(*([a] if self.spoils[0, 0] else []))
        return log_p


class OfShifted(Disturbance):
    def __init__(self, spoils: bool) -> None:
        self.dim, self.spoils = 1, spoils

    def given(self, x: Any, a_A: Any) -> Law:
        n = 1 if x is None else len(x)
        return Shifted(np.full((n, 1), 0.5), np.full((n, 1), float(self.spoils)))


@pytest.mark.parametrize("part", ["nominal", "initial"])
def test_laws_of_the_users_own_get_copies(part: str) -> None:
    reset = {"reset": lambda draws, a_0: a_0} if part == "initial" else {}
    runs = []
    for spoils in (False, True):
        runs.append(apeval.InMemory(walk(**{part: OfShifted(spoils)}, **reset)))
        apeval.evaluate(runs[-1].of, "mc", episodes=3_000, recorder=runs[-1])
    assert np.array_equal(runs[0].sample.log_p, runs[1].sample.log_p)
    assert np.array_equal(runs[0].episodes.a_E, runs[1].episodes.a_E)
    assert runs[0].result.estimate == runs[1].result.estimate > 0.0
