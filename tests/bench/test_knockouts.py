"""What the default method is made of: knock-outs that hit what they aim at, and what they are
judged by."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from apeval.environments import make
from apeval.errors import ApevalError
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray
from apeval.simulate.adversary import Adversary, Mixture, Nominal, Situation, only
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.knockouts import problems, reference, report, speed
from apeval_bench.knockouts.heuristics import KNOCK_OUTS, MAIN, find
from apeval_bench.knockouts.plan import asks
from apeval_bench.knockouts.problems import PROBLEMS, dropouts, landing, regulator
from apeval_bench.knockouts.replacing import AS_IT_IS, PACKAGE, KnockOut, applied, located, put, use
from apeval_bench.knockouts.statistics import (
    DOES_NOT,
    HARMS,
    IDLE,
    MIXED,
    PAYS,
    UNDECIDED,
    compared,
    log_ratios,
    verdict,
    where_error_comes_from,
)
from apeval_bench.registry import ExperimentRequest

SEEDS = 4.0  # standard errors


# -- knock-outs --------------------------------------------------------------------------------


@pytest.mark.parametrize("knock_out", KNOCK_OUTS.values(), ids=lambda k: k.name)
def test_a_knock_out_replaces_what_it_names_and_puts_it_back(knock_out: KnockOut) -> None:
    places = [located(knock_out.name, change.target) for change in knock_out.changes]
    before = [vars(owner)[name] for owner, name in places]
    with applied(knock_out):
        assert all(vars(o)[n] is not was for (o, n), was in zip(places, before, strict=True))
    assert all(vars(o)[n] is was for (o, n), was in zip(places, before, strict=True))
    assert knock_out.changes or knock_out.settings or not knock_out.margin


@pytest.mark.parametrize(
    "change",
    [
        put("no_such_module.X", 1),
        put("learner._NO_SUCH_NUMBER", 1),
        put("learner.NoSuchClass._x", 1),
        put("learner._ELITES", (5,)),  # a tuple for a number
        put("learner._ELITES", 10),  # what stands there already
        use("learner.ApeLearner._lower_level", lambda was: lambda self, more: None, ""),
    ],
    ids=lambda change: f"{change.target} {change.says}",
)
def test_a_knock_out_that_does_not_fit_is_an_error(change: object) -> None:
    with (
        pytest.raises(ApevalError, match="knock-out 'broken'"),
        applied(
            KnockOut("broken", "", "", (change,))  # type: ignore[arg-type]
        ),
    ):
        pass


def test_an_error_inside_puts_everything_back() -> None:
    module = importlib.import_module(f"{PACKAGE}.learner")
    before = module._ELITES
    inside: list[int] = []

    def stumble() -> None:
        with applied(find("ten elites")):
            inside.append(module._ELITES)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stumble()
    assert inside == [3]
    assert before == module._ELITES


def test_every_knock_out_has_a_problem_that_can_tell() -> None:
    for knock_out in KNOCK_OUTS.values():
        able = [p for p in PROBLEMS.values() if asks(p, knock_out)]
        beyond = knock_out.needs & {problems.OFTEN, problems.LARGE}
        assert able or beyond, knock_out.name
    assert set(KNOCK_OUTS) >= MAIN


# -- tuning problems ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "build",
    [
        partial(regulator, limit=5.5, steps=20),
        partial(landing, beta=1.5),
        partial(dropouts, q=0.2, number=3, steps=12),
    ],
    ids=["regulator", "landing", "dropouts"],
)
def test_truths_agree_with_monte_carlo(build: Callable[[], Problem]) -> None:
    problem, n = build(), 40_000
    batch = Simulation(problem, make_key(3), Budget(episodes=n)).run(only(Nominal()), n, 0)
    assert problem.truth is not None
    p = problem.truth().value
    assert abs(batch.failed.mean() - p) < SEEDS * np.sqrt(p * (1.0 - p) / n)


# -- what to expect of a run -------------------------------------------------------------------


@dataclass(frozen=True)
class Shifted(Adversary):
    """N(m, 1)."""

    m: float

    def sample(self, now: Situation, u: FloatArray) -> Array:
        return np.asarray(ndtri(u) + self.m)

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        z = a_E[:, 0]
        return np.asarray(now.law.log_prob(a_E) + self.m * z - 0.5 * self.m**2)


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> float:
    """A reference of true failures of one decision beyond β; gives β."""
    beta, n = 1.5, 60_000
    problem = make("one-step", beta=beta)
    batch = Simulation(problem, make_key(5), Budget(episodes=n)).run(only(Nominal()), n, 0)
    failing = batch.take(batch.failed)
    mass = np.full(failing.n, 1.0 / failing.n)
    known = reference.Reference(failing, mass, float(ndtr(-beta)), 0.0, 0.0, 0.0)
    monkeypatch.setattr(reference, "reference", lambda name: known)
    return beta


def test_the_variance_of_monte_carlo_is_exact(failures: float) -> None:
    v = float(ndtr(-failures))
    found = reference.expected("", only(Nominal()), [], 1_000)
    assert found.variance == pytest.approx((1.0 - v) / v / 1_000)
    assert found.lost == 0.0
    assert found.effective == pytest.approx(1_000)


def test_the_variance_of_a_shifted_proposal_is_that_of_theory(failures: float) -> None:
    """E_q[w² 1{z > β}] = exp(m²) Φ(−β − m), and E_p[w² 1] bounds the reference's own error."""
    m, n, v = 1.0, 500, float(ndtr(-failures))
    moment = np.exp(m * m) * ndtr(-failures - m)
    fourth = np.exp(3.0 * m * m) * ndtr(-failures - 2.0 * m)  # E_p[w² 1{z > β}], w = p/q
    found = reference.expected("", only(Shifted(m)), [], n)
    number = 60_000 * v
    error = np.sqrt(max(fourth / v - (moment / v) ** 2, 0.0) / number) * v
    assert abs(found.variance * n * v**2 - (moment - v**2)) < SEEDS * error


def test_failures_that_a_run_hardly_meets_are_lost(failures: float) -> None:
    """One failure from the nominal part would be worth more than the whole estimate."""
    away = Mixture((Shifted(-6.0), Nominal()), (1.0 - 1e-6, 1e-6))
    found = reference.expected("", away, [], 100)
    assert found.lost == pytest.approx(1.0)
    assert found.square == pytest.approx(1.0)


def test_strata_take_their_means_out_of_the_variance(failures: float) -> None:
    mixed = Mixture((Shifted(1.5), Nominal()), (0.5, 0.5))
    densities = reference._Densities(reference.reference("").failures)
    mass = reference.reference("").mass * float(ndtr(-failures))
    apart, _ = reference._moments(densities, mass, mixed, np.inf)
    as_one, _ = reference._moments(densities, mass, mixed, np.inf, strata=False)
    assert apart < as_one


# -- statistics --------------------------------------------------------------------------------


def outcome(square: float, lost: float = 0.0) -> dict[str, float | bool]:
    return {
        "error": square**0.5, "lost": lost, "variance": square, "covered": True, "trusted": True,
        "seconds": 1.0, "episodes": 100, "effective": 50.0,
    }  # fmt: skip


def test_equal_runs_have_a_ratio_of_one_and_touch_nothing() -> None:
    runs = [outcome(x) for x in (0.1, 0.2, 0.3)]
    row = compared(runs, runs, 0)
    assert (row["ratio"], row["interval"], row["touched"]) == (1.0, [1.0, 1.0], False)


def test_pairs_take_out_what_seeds_have_in_common() -> None:
    base = np.exp(np.random.default_rng(0).normal(0.0, 1.0, 30))
    logs = log_ratios(list(1.3 * base), list(base), 0)
    assert np.allclose(logs, np.log(1.3))


@pytest.mark.parametrize(
    ("rows", "together", "expected"),
    [
        ([(1.5, 1.2, 1.9), (1.0, 0.9, 1.1)], (1.2, 1.1, 1.3), PAYS),
        ([(0.6, 0.5, 0.8)], (0.6, 0.5, 0.8), HARMS),
        ([(1.5, 1.2, 1.9), (0.6, 0.5, 0.8)], (1.0, 0.9, 1.1), MIXED),
        ([(1.02, 0.9, 1.2)], (1.02, 0.97, 1.07), DOES_NOT),
        ([(1.3, 0.8, 2.0)], (1.3, 0.9, 1.8), UNDECIDED),
        ([(1.15, 0.98, 1.3)], (1.15, 1.11, 1.2), PAYS),
    ],
)
def test_verdicts(
    rows: list[tuple[float, float, float]], together: tuple[float, float, float], expected: str
) -> None:
    as_rows = [{"ratio": r, "interval": [low, high]} for r, low, high in rows]
    ratio, low, high = together
    assert verdict(as_rows, {"ratio": ratio, "interval": [low, high]}) == expected
    assert verdict([], None) == IDLE


def test_the_parts_of_the_error_add_up() -> None:
    parts = where_error_comes_from([outcome(0.1, 0.2), outcome(0.2)], best=0.02)
    assert sum(parts.values()) == pytest.approx(0.15 + 0.02)
    assert parts["floor"] == pytest.approx(0.02)
    assert parts["learning"] == pytest.approx(0.02)


# -- the experiment ----------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """One problem with a small budget, and no measurement of speed."""
    tiny = replace(PROBLEMS["sum-two"], episodes=200, lavish=2)
    monkeypatch.setitem(PROBLEMS, "sum-two", tiny)
    monkeypatch.setattr(speed, "cells", list)
    monkeypatch.setattr(speed, "CASES", ())
    reference.reference.cache_clear()


def test_the_experiment_gives_a_verdict_for_every_knock_out(small: None) -> None:
    wanted = ("sum-two", "averaging", "kept of π_E,gt", "choice")
    found = report.report(ExperimentRequest(1, 0, rows=wanted))
    by_name = {k["name"]: k for k in found.data["knock_outs"]}
    assert set(by_name) == {"averaging", "kept of π_E,gt", "choice"}
    assert by_name["kept of π_E,gt"]["verdict"] == IDLE  # nothing discrete here
    assert by_name["choice"]["kind"] == "group"
    (row,) = by_name["averaging"]["problems"]
    assert row["touched"]
    assert row["runs"] == 1
    (problem,) = found.data["problems"]
    assert problem["reference"]["failures"] >= reference._FEWEST
    assert "| sum-two |" in found.text
    assert "taken out" in found.text
    again = report.report(ExperimentRequest(1, 0, rows=wanted))
    rows = [[(p["ratio"], p["rmse"]) for k in r.data["knock_outs"] for p in k["problems"]]
            for r in (found, again)]  # fmt: skip
    assert rows[0] == rows[1]


def test_reporting_seeds_are_refused(command: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = command("bench", "ablation", "--methods", "ape")
    assert code == 2
    assert "--tuning" in err
    code, _, err = command("bench", "ablation", "--methods", "ape,mc", "--tuning")
    assert code == 2
    assert "one method" in err
    code, _, err = command("bench", "ablation", "--methods", "ape", "--tuning", "--rows", "wavez")
    assert code == 2
    assert "wavez" in err
    assert find("as it is") is AS_IT_IS
