"""Problems of the Quantitative Verification Benchmark Set: closed forms against the simulators, and
both against what model checkers found."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import apeval
from apeval.problem.draws import NATURE, Draws, make_key
from apeval_public.model_checking import brp, cluster, zeroconf
from apeval_public.model_checking.cluster_chain import NONE, REPAIRED, distribution
from apeval_public.model_checking.philosophers_chain import deadlock_probability
from apeval_public.truth.enumeration import failure_probability
from apeval_public.truth.monte_carlo import agreement

PROBLEMS = ("brp", "cluster", "philosophers", "zeroconf")


@pytest.mark.parametrize(("size", "value"), brp.PUBLISHED.items())
def test_brp_has_the_published_value(size: tuple[str, int, int], value: float) -> None:
    assert brp.closed_form(*size) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("property", ["p1", "p2", "p4"])
def test_brp_s_simulator_has_the_closed_form(property: str) -> None:
    problem = apeval.make("brp", n=16, retransmissions=2, property=property)
    assert failure_probability(problem) == pytest.approx(problem.truth().value, rel=1e-12)


@pytest.mark.parametrize(("size", "value"), zeroconf.PUBLISHED.items())
def test_zeroconf_has_the_published_value(size: tuple[int, int], value: float) -> None:
    n, probes = size
    assert zeroconf.closed_form(n, probes) == pytest.approx(value, rel=1e-12)
    problem = apeval.make("zeroconf", n=n, probes=probes)
    assert failure_probability(problem) == pytest.approx(value, rel=1e-12)


def test_philosophers_have_the_published_value() -> None:
    assert deadlock_probability(12, 1.0) == pytest.approx(0.000759393967, rel=1e-9)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_philosophers_simulator_has_the_value_of_the_chain(n: int) -> None:
    exact = deadlock_probability(n, 1.0)
    assert failure_probability(apeval.make("philosophers", n=n)) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("n", [2, 4, 8])
def test_cluster_has_the_published_value(n: int) -> None:
    assert apeval.make("cluster", n=n).verify(False, 10_000)["agrees"]


def test_cluster_s_simulator_has_the_chain_s_law() -> None:
    """How many parts are broken at the end, 20,000 episodes: within 4 standard errors each."""
    n, episodes, problem = 4, 20_000, apeval.make("cluster", n=4)
    states, p = distribution(n, 20.0)
    whole = np.array([n, n, 1, 1, 1])
    draws = Draws(make_key(0), np.arange(episodes))
    x = np.asarray(problem.reset(draws))
    for t in range(problem.horizon):
        now = draws.at(t)
        a_E = problem.law(x, np.zeros((episodes, 0))).sample(now.stream(NATURE, 2))
        running = x[:, cluster.CLOCK] < 20.0
        after = np.asarray(problem.step(x, np.zeros((episodes, 0)), a_E, now))
        x = np.where(running[:, None], after, x)
    for part in range(5):
        exact = float(p[states[:, part] < whole[part]].sum())
        found = float((x[:, part] < whole[part]).mean())
        assert abs(found - exact) < 4.0 * np.sqrt(exact * (1.0 - exact) / episodes)
    busy = float(p[states[:, REPAIRED] != NONE].sum())
    found = float((x[:, REPAIRED] != NONE).mean())
    assert abs(found - busy) < 4.0 * np.sqrt(busy * (1.0 - busy) / episodes)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("brp", {"n": 4, "retransmissions": 0}),
        ("brp", {"n": 4, "retransmissions": 1, "property": "p2"}),
        ("zeroconf", {"n": 20_000, "probes": 1}),
    ],
)
def test_sampling_agrees_with_the_truth(name: str, parameters: dict[str, object]) -> None:
    problem = apeval.make(name, **parameters)
    assert agreement(problem, problem.truth(), 20_000, 10_000)["agrees"]


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_model_checking_problem_is_sound(name: str) -> None:
    report = apeval.check_problem(apeval.make(name))
    assert report.ok, report


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_truth_has_a_source(name: str) -> None:
    truth = apeval.make(name).truth()
    assert 0.0 < truth.value < 1e-3
    assert "qcomp.org" in truth.provenance["source"]


QVBS = os.environ.get("APEVAL_QVBS")
CASES = [
    ("dtmc/brp", "N=16,MAX=2", "P=? [ F s=5 ]", lambda: brp.closed_form("p1", 16, 2)),
    ("dtmc/brp", "N=64,MAX=5", "P=? [ F s=5 ]", lambda: brp.closed_form("p1", 64, 5)),
    ("dtmc/brp", "N=64,MAX=5", "P=? [ F s=5 & srep=2 ]", lambda: brp.closed_form("p2", 64, 5)),
    ("dtmc/brp", "N=64,MAX=5", "P=? [ F !(srep=0) & !recv ]", lambda: brp.closed_form("p4", 64, 5)),
    (
        "mdp/zeroconf",
        "N=20,K=4,reset=true",
        "Pmin=? [ F (l=4 & ip=1) ]",
        lambda: zeroconf.closed_form(20, 4),
    ),
    (
        "ctmc/cluster",
        "N=4",
        'P=? [ F[20,20] !"minimum" ]',
        lambda: cluster.PUBLISHED[4, 20.0],
    ),
]


@pytest.mark.skipif(QVBS is None, reason="APEVAL_QVBS names no checkout of the benchmark set")
@pytest.mark.parametrize(("model", "constants", "formula", "ours"), CASES)
def test_storm_finds_the_same_in_the_original_models(
    model: str, constants: str, formula: str, ours: Callable[[], float]
) -> None:
    stormpy = pytest.importorskip("stormpy")
    path = Path(str(QVBS)) / "benchmarks" / model / f"{model.split('/')[1]}.prism"
    program = stormpy.parse_prism_program(str(path), prism_compatibility=True)
    program, _ = stormpy.instantiate_constants(program, constants)
    formulas = stormpy.parse_properties(formula, program)
    timed = model.startswith("ctmc")
    built = stormpy.build_model[float if timed else stormpy.Rational](program, formulas)
    found = stormpy.model_checking(built, formulas[0]).get_value(built.initial_states[0])
    value = found if timed else float(Fraction(str(found)))
    assert value == pytest.approx(ours(), rel=1e-5 if timed else 1e-12)
