"""Estimates and intervals: unbiased, covering, and right at the edges."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

import apeval
from apeval.estimate.binomial import clopper_pearson
from apeval.estimate.diagnostics import detection_limit
from apeval.estimate.interval import effective_size, estimate
from apeval.estimate.sample import Sample, join
from apeval.estimate.warnings import sample_warnings
from apeval.problem.types import FloatArray
from apeval.run.result_text import in_words
from apeval.simulate.simulation import Budget

SPENT = Budget(steps=3_000)


def shifted_sample(rng: np.random.Generator, n: int, shift: float, threshold: float) -> Sample:
    """P(z > threshold) under N(0, 1), drawn from ¾ N(shift, 1) + ¼ N(0, 1), stratified."""
    component = (np.arange(n) % 4 == 3).astype(np.int64)
    z = rng.normal(np.where(component == 0, shift, 0.0))
    log_p: FloatArray = norm.logpdf(z)
    return Sample(
        component=component,
        log_p=log_p,
        log_q=np.stack([norm.logpdf(z, shift), log_p], axis=1),
        kind=(z > threshold).astype(np.int64),
        unresolved=np.zeros(n, bool),
        length=np.ones(n, np.int64),
        margin=threshold - z,
    )


def test_the_weighted_estimate_is_unbiased_and_its_interval_covers() -> None:
    """Truth Φ(−3.5); 400 repeats. The mean of the estimates lies within 4 of its own standard
    errors, and coverage of the 95 % interval at least 92 %: P(fewer | 95 %) < 0.7 %."""
    truth = float(norm.sf(3.5))
    rng = np.random.default_rng(7)
    results = [estimate(shifted_sample(rng, 400, 3.5, 3.5), 0.95) for _ in range(400)]
    values = np.array([r.value for r in results])
    assert abs(values.mean() - truth) < 4.0 * values.std(ddof=1) / np.sqrt(len(values))
    covered = sum(r.interval[0] <= truth <= r.interval[1] for r in results)
    assert covered >= 368
    assert binom.cdf(367, 400, 0.95) < 0.007
    ratio = np.mean([r.standard_error for r in results]) / values.std(ddof=1)
    assert 0.85 < ratio < 1.25


@pytest.mark.parametrize(("p", "n"), [(0.0, 50), (1.0, 50), (0.01, 200), (0.5, 30)])
def test_clopper_pearson_covers_exactly(p: float, n: int) -> None:
    """Coverage computed, not sampled: Σ_k P(k) 1{p in interval(k)} ≥ 95 %."""
    k = np.arange(n + 1)
    inside = [lo <= p <= hi for lo, hi in (clopper_pearson(int(i), n, 0.95) for i in k)]
    assert float(binom.pmf(k, n, p)[inside].sum()) >= 0.95


def test_no_failure_gives_an_upper_bound_and_not_zero_plus_minus_zero() -> None:
    sample = shifted_sample(np.random.default_rng(0), 400, -5.0, 9.0)
    result = estimate(sample, 0.95)
    assert result.value == 0.0
    assert result.interval == (0.0, clopper_pearson(0, 100, 0.95)[1])
    assert "no failure" in sample_warnings(sample, result, None, SPENT)[0].text


def test_one_failure_of_no_weight_does_not_tighten_the_bound() -> None:
    sample = shifted_sample(np.random.default_rng(0), 400, -5.0, 9.0)
    kind = np.zeros(400, np.int64)
    kind[int(np.argmin(sample.log_weights))] = 1
    lo, hi = estimate(replace(sample, kind=kind), 0.95).interval
    assert lo == 0.0
    assert hi >= clopper_pearson(0, 100, 0.95)[1]


def test_a_certain_failure_is_still_uncertain() -> None:
    """A proposal that always hits has no spread, yet the interval must not be a point."""
    n = 50
    sample = Sample(
        component=np.zeros(n, np.int64),
        log_p=np.full(n, -3.0),
        log_q=np.zeros((n, 1)),
        kind=np.ones(n, np.int64),
        unresolved=np.zeros(n, bool),
        length=np.ones(n, np.int64),
        margin=np.full(n, np.nan),
    )
    lo, hi = estimate(sample, 0.95).interval
    v = np.exp(-3.0)
    assert lo < 0.97 * v
    assert hi > 1.03 * v


def test_unresolved_episodes_widen_the_interval_upwards() -> None:
    sample = shifted_sample(np.random.default_rng(1), 400, 3.0, 3.0)
    known = estimate(sample, 0.95)
    cut = replace(sample, unresolved=(sample.kind == 0) & (sample.margin < 0.2))
    unknown = estimate(cut, 0.95)
    assert unknown.value == known.value
    assert unknown.interval[0] == known.interval[0]
    assert unknown.interval[1] > known.interval[1]
    assert unknown.unresolved_mass > 0.0


def test_zero_weight_episodes_count_in_n() -> None:
    sample = shifted_sample(np.random.default_rng(2), 200, 2.0, 2.0)
    nothing = replace(sample, kind=np.zeros(200, np.int64))
    both = join([sample, nothing])
    assert estimate(both, 0.95).value == pytest.approx(estimate(sample, 0.95).value / 2)


def test_a_missed_mode_is_warned_of() -> None:
    """Two modes, a proposal for one of them: what the nominal part finds is reported."""
    rng = np.random.default_rng(3)
    sample = shifted_sample(rng, 4_000, 2.5, 2.5)
    z_mirrored = 2.5 - sample.margin < -2.5
    two_sided = replace(sample, kind=sample.kind | z_mirrored.astype(np.int64))
    notes = sample_warnings(two_sided, estimate(two_sided, 0.95), None, SPENT)
    texts = " ".join(note.text for note in notes)
    assert "misses a failure mode" in texts
    clean = sample_warnings(sample, estimate(sample, 0.95), None, SPENT)
    assert not any("mode" in note.text for note in clean)


def test_an_adversary_that_is_the_nominal_misses_nothing() -> None:
    sample = shifted_sample(np.random.default_rng(5), 400, 0.0, 1.0)
    assert sample.nominal.all()
    assert sample_warnings(sample, estimate(sample, 0.95), None, SPENT) == []


def test_the_detection_limit_is_the_rule_of_three() -> None:
    sample = shifted_sample(np.random.default_rng(4), 4_000, 2.0, 2.0)
    limit = detection_limit(sample, 0.95)
    assert limit == pytest.approx(3.0 / 1_000, rel=0.01)


def test_effective_size_of_one_heavy_weight() -> None:
    assert effective_size(np.array([1e300, 1.0])) == pytest.approx(1.0)
    assert effective_size(np.array([])) == 0.0


def test_probabilities_in_words() -> None:
    assert in_words(0.75, 1.0) == "about 75% of episodes"
    assert in_words(3.1e-9, 1.0) == "about 1 in 320,000,000 episodes"


def test_mc_at_the_edges() -> None:
    """p = 0 and p = 1 give exact one-sided intervals and no crash."""
    for always in (False, True):
        problem = apeval.Problem(
            nominal=apeval.Normal(0.0, 1.0),
            reset=lambda draws: np.zeros((draws.n, 1)),
            step=lambda x, a_A, a_E, draws: x + a_E,
            failed=lambda x, always=always: np.full(len(x), always),
            horizon=2,
        )
        result = apeval.evaluate(problem, "mc", episodes=100, seed=0)
        assert result.estimate == float(always)
        assert result.standard_error == 0.0
        assert result.interval == clopper_pearson(100 if always else 0, 100, 0.95)


def test_one_episode_is_said_in_the_singular() -> None:
    text = " ".join(str(apeval.evaluate(apeval.make("walk"), "mc", episodes=1, seed=0)).split())
    assert "no failure in 1 episode of" in text
    assert "in 1 episode; the estimate" in text
    assert not re.search(r"\b1 (episodes|failures|decisions)", text)
