"""A law of `scipy.stats` as nature's: the whole program takes it with no code of its own."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats as stats
from scipy.integrate import quad
from scipy.special import ndtr
from tests.curtailed import at_least

import apeval
from apeval.errors import ApevalError, ProblemError
from apeval.problem.law_change import parse_change
from apeval.problem.laws.scipy_stats import FromScipy, ScipyLaw
from apeval.results.report import write_report

STUDENT = stats.t(df=3, scale=0.2)
FAMILIES = [
    *(STUDENT, stats.laplace(1.0, 0.5), stats.logistic(), stats.gumbel_r(), stats.lognorm(0.5)),
    *(stats.gamma(2.0), stats.weibull_min(1.5), stats.uniform(-1.0, 2.0), stats.beta(2.0, 5.0)),
]
BOUNDED_ABOVE = ("uniform", "beta")
LIMIT = 2.0  # t(3)·0.2 beyond it with probability 1.1e-3 at each of two sides


def law_of(*distributions: object) -> ScipyLaw:
    return FromScipy(*distributions).given(None, None)


@pytest.mark.parametrize("frozen", FAMILIES, ids=lambda f: f.dist.name)
def test_density_samples_and_tails_are_scipys(frozen: stats.distributions.rv_frozen) -> None:
    law, u = law_of(frozen), np.linspace(0.001, 0.999, 97)[:, None]
    a = law.sample(u)
    assert a[:, 0] == pytest.approx(frozen.ppf(u[:, 0]), rel=1e-12)
    assert law.log_prob(a) == pytest.approx(frozen.logpdf(a[:, 0]), rel=1e-12)
    assert ndtr(law.to_z(a)) == pytest.approx(u, rel=1e-9)
    z = np.linspace(-8.0, 8.0, 65)[:, None]
    if frozen.dist.name in BOUNDED_ABOVE:  # near an end that is not 0 doubles lie too far apart
        z = np.clip(z, -5.0, 5.0)
    there = law.to_action(z)
    low, high = frozen.support()
    assert np.all((there > low) & (there < high))
    assert law.to_z(there) == pytest.approx(z, abs=1e-6)
    assert frozen.logcdf(there[:1, 0]) == pytest.approx(stats.norm.logcdf(z[:1, 0]), rel=1e-9)
    assert frozen.logsf(there[-1:, 0]) == pytest.approx(stats.norm.logsf(z[-1:, 0]), rel=1e-9)


def test_components_have_families_of_their_own() -> None:
    law = law_of(STUDENT, stats.beta(2, 5, loc=-1.0), stats.norm([0.0, 3.0], 0.5))
    a = law.sample(np.full((3, 4), 0.25))
    parts = [STUDENT, stats.beta(2, 5, loc=-1.0), stats.norm(0.0, 0.5), stats.norm(3.0, 0.5)]
    assert a[0] == pytest.approx([part.ppf(0.25) for part in parts])
    expected = sum(part.logpdf(v) for part, v in zip(parts, a[0], strict=True))
    assert law.log_prob(a) == pytest.approx([expected] * 3)


def test_parameters_may_depend_on_the_state() -> None:
    def wind(x: np.ndarray, a_A: np.ndarray) -> object:
        return stats.t(df=3, scale=1.0 + x[:, 0])

    law = FromScipy(wind).given(np.array([[0.0], [1.0]]), np.zeros((2, 0)))
    a = law.sample(np.full((2, 1), 0.9))
    assert a[:, 0] == pytest.approx(stats.t.ppf(0.9, 3) * np.array([1.0, 2.0]))
    assert law.take(np.array([1])).log_prob(a[1:]) == pytest.approx(
        stats.t.logpdf(a[1:, 0], 3, scale=2.0)
    )


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (stats.poisson(3.0), "use Categorical"),
        (stats.t, "frozen distribution"),
        (3.0, "frozen distribution"),
        (stats.t(df=-1.0), "no density"),
        (stats.norm(0.0, 0.0), "no density"),
        (stats.skewnorm(3.0), "do not agree"),
    ],
)
def test_what_has_no_density_or_no_tails_is_refused(given: object, why: str) -> None:
    with pytest.raises(ProblemError, match=why):
        FromScipy(given).given(None, None)


def test_changes_name_scipys_parameters() -> None:
    law = law_of(STUDENT, stats.beta(2, 5))
    assert law.parameters() == ["loc", "scale", "df", "a", "b"]
    wide = parse_change("scale[1]*1.5")(law)
    assert wide.scale.tolist() == [[pytest.approx(0.3), 1.0]]  # type: ignore[attr-defined]
    heavy = parse_change("df=2.5")(law)
    a = np.array([[1.0, 0.5]])
    expected = stats.t.logpdf(1.0, 2.5, scale=0.2) + stats.beta.logpdf(0.5, 2, 5)
    assert heavy.log_prob(a)[0] == pytest.approx(expected)
    for text, why in (
        ("df=-1", "range"), ("df[2]=4", "no df"), ("scale=0", "positive"), ("std*2", "parameter"),
    ):  # fmt: skip
        with pytest.raises(ApevalError, match=why):
            parse_change(text)(law)


def test_widening_is_the_second_moment_of_the_ratio() -> None:
    """Of a Gaussian the formula is known; a shift is no widening."""
    old, new = (law_of(stats.norm(0.0, s)) for s in (1.0, 1.2))
    assert new.widening(old)[0] == pytest.approx(0.108, abs=5e-4)
    shifted = law_of(stats.norm(0.5, 1.0))
    assert shifted.widening(old)[0] == pytest.approx(0.0, abs=1e-9)


def gust(limit: float = LIMIT, steps: int = 1) -> apeval.Problem:
    """Steps of Student's t; |sum| beyond the limit fails."""
    return apeval.Problem(
        nominal=apeval.FromScipy(STUDENT),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=lambda x: np.abs(x[:, 0]) > limit,
        margin=lambda x: limit - np.abs(x[:, 0]),
        horizon=steps,
        judge_at_end=True,
        name="gust",
    )


@pytest.mark.parametrize("method", ["ape", "cem", "cem-discrete", "ape-discrete", "mc"])
def test_a_method_finds_what_it_finds_for_the_gaussian_that_it_sees(method: str) -> None:
    """One decision in whitened coordinates is N(0, 1), whatever its law."""
    limit = -float(stats.norm.ppf(STUDENT.sf(LIMIT)))
    problems = (gust(), replace(gust(limit), nominal=apeval.Normal()))
    one, other = (
        apeval.evaluate(replace(p, margin=None), method, episodes=1_500, seed=4, check=False)
        for p in problems
    )
    assert one.failures == other.failures > 0
    assert one.estimate == pytest.approx(other.estimate, rel=1e-6)
    assert one.standard_error == pytest.approx(other.standard_error, rel=1e-6)


@pytest.mark.parametrize("method", ["ape", "cem", "mc"])
def test_intervals_cover_the_truth(method: str) -> None:
    """20 intervals at 95 %: fewer than 15 hits would be an event of 1 in 4,000 (binomial)."""
    truth = 2.0 * float(STUDENT.sf(LIMIT))

    def covers(seed: int) -> bool:
        found = apeval.evaluate(gust(), method, episodes=1_500, seed=seed, check=seed == 0)
        return found.interval[0] <= truth <= found.interval[1]

    assert at_least(15, range(20), covers)


def test_a_sum_of_two_has_the_probability_of_its_convolution() -> None:
    def beyond(y: np.ndarray) -> np.ndarray:
        return STUDENT.pdf(y) * (STUDENT.sf(LIMIT - y) + STUDENT.sf(LIMIT + y))

    truth = 2.0 * quad(beyond, 0.0, math.inf, limit=500)[0]
    found = apeval.evaluate(gust(steps=2), episodes=4_000, seed=3)
    lo, hi = found.interval
    assert lo <= truth <= hi


def test_reweight_report_and_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    apeval.evaluate(gust(), episodes=4_000, seed=1, recorder=apeval.Recorder(folder))
    run = apeval.load(folder)
    assert isinstance(run.episodes.law, ScipyLaw)
    assert run.identity["nominal"]["words"] == "t(df=3, scale=0.2)"
    answer = apeval.reweight(run, "scale*1.2")
    assert answer.interval is not None
    truth = 2.0 * float(stats.t.sf(LIMIT, 3, scale=0.24))
    assert answer.interval[0] <= truth <= answer.interval[1]
    assert "t(df=3, scale=0.2)" in write_report([folder], tmp_path / "report.html").read_text()


def test_a_bounded_law_keeps_to_its_support() -> None:
    """The sum of four uniforms beyond 3.8: (0.2)⁴/4! by Irwin and Hall."""
    problem = apeval.Problem(
        nominal=apeval.FromScipy(stats.uniform()),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=lambda x: x[:, 0] > 3.8,
        margin=lambda x: 3.8 - x[:, 0],
        horizon=4,
        judge_at_end=True,
    )
    apeval.check_problem(problem)
    truth = 0.2**4 / math.factorial(4)

    def covers(seed: int) -> bool:
        lo, hi = apeval.evaluate(problem, episodes=2_000, seed=seed, check=False).interval
        return lo <= truth <= hi

    assert at_least(7, range(10), covers)  # fewer: 1 in 900 at 95 %
