"""Diagnostics, stopping and verdicts: right numbers, and words only where they are warranted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

import apeval
from apeval.estimate.diagnostics import diagnose
from apeval.estimate.explored import Explored, missed, unseen_kinds
from apeval.estimate.interval import estimate, one_sided
from apeval.estimate.pareto import fit_shape, pareto_k
from apeval.estimate.precision_target import PrecisionTarget, half_width
from apeval.estimate.sample import Sample
from apeval.estimate.tail import tail_curve
from apeval.estimate.verdict import REFUTED, SHOWN, UNDECIDED, judge
from apeval.estimate.warnings import joined, raised, sample_warnings
from apeval.learn.mc import MonteCarlo
from apeval.learn.method import Exploration
from apeval.problem.draws import make_key
from apeval.problem.types import FloatArray
from apeval.remedies import Option
from apeval.run.frozen_stage import reduce
from apeval.simulate.adversary import only
from apeval.simulate.rollout import rollout
from apeval.simulate.simulation import Budget
from apeval_bench.intervals import Spoilt, run

BUDGET = Budget(steps=3_000)
BETA = 4.0
TRUTH = float(norm.sf(BETA))


def tilted(
    rng: np.random.Generator, n: int, shift: float = BETA, scale: float = 1.0, dim: int = 1
) -> Sample:
    """P(z_1 > β), z ~ N(0, I), from 0.9·N(shift·e_1, scale²·I) + 0.1·N(0, I), stratified."""
    component = (np.arange(n) % 10 == 9).astype(np.int64)
    learned = component == 0
    z = rng.standard_normal((n, dim))
    z = np.where(learned[:, None], scale * z, z)
    z[:, 0] += np.where(learned, shift, 0.0)
    log_p: FloatArray = norm.logpdf(z).sum(axis=1)
    mean = np.r_[shift, np.zeros(dim - 1)]
    log_q = norm.logpdf(z, mean, scale).sum(axis=1)
    return Sample(
        component=component,
        log_p=log_p,
        log_q=np.stack([log_q, log_p], axis=1),
        kind=(z[:, 0] > BETA).astype(np.int64),
        unresolved=np.zeros(n, bool),
        length=np.ones(n, np.int64),
        margin=BETA - z[:, 0],
    )


@pytest.mark.parametrize("k", [-0.4, 0.2, 0.7, 1.2])
def test_the_shape_of_a_generalised_pareto_law_is_found(k: float) -> None:
    """Asymptotic standard error (1 + k)/√n for k > −½; the prior draws by at most 5/n."""
    n = 4_000
    u = np.random.default_rng(0).random(n)
    x = (u**-k - 1.0) / k
    assert abs(fit_shape(x) - k) < 4.0 * (1.0 + k) / np.sqrt(n) + 5.0 / n


def test_the_tail_of_few_or_equal_weights_is_not_judged() -> None:
    assert pareto_k(np.ones(1_000)) is None
    assert pareto_k(np.arange(1.0, 20.0)) is None


def test_healthy_samples_are_not_warned_of() -> None:
    """100 samples from a good proposal: more than 10 warnings have probability < 0.3 % where 5 %
    of samples are warned of."""
    rng = np.random.default_rng(1)
    samples = [tilted(rng, 300) for _ in range(100)]
    warned = sum(bool(sample_warnings(s, estimate(s, 0.95), None, BUDGET)) for s in samples)
    assert warned <= 10
    assert binom.sf(11, 100, 0.05) < 0.005


def test_a_narrow_proposal_shows_in_the_tail_index() -> None:
    """Of weights p/q with q narrower by s in d dimensions, 1/k moments are finite: k = 1 − s²,
    here 0.84, cut off far out by the nominal part."""
    sample = tilted(np.random.default_rng(2), 20_000, scale=0.4, dim=4)
    numbers = estimate(sample, 0.95)
    d = diagnose(sample, numbers).numbers
    assert d.pareto_k is not None
    assert d.pareto_k > 0.6
    notes = sample_warnings(sample, numbers, None, BUDGET)
    assert "`steps=" in joined(notes, BUDGET)[-1].text


def test_remedies_are_what_a_user_would_type() -> None:
    assert raised(Budget(episodes=1_000), 2.5) == Option("episodes", 2_500)
    assert raised(Budget(steps=3_000), 100.0) == Option("steps", 300_000)


def explored(far: bool) -> tuple[Explored, Sample]:
    """Failures above β and below −β found by exploring with N(0, 3²); a frozen proposal for the
    first alone (`far`) or for both."""
    rng = np.random.default_rng(3)
    z = 3.0 * rng.standard_normal(600)
    z = z[np.abs(z) > BETA]
    sample = tilted(rng, 900)
    sides = [norm.pdf(z, BETA)] if far else [norm.pdf(z, BETA), norm.pdf(z, -BETA)]
    q = 0.9 * np.mean(sides, axis=0) + (1e-12 if far else 0.1) * norm.pdf(z)
    log_p: FloatArray = norm.logpdf(z)
    found = Explored(
        kind=np.where(z > 0.0, 1, 2),
        log_weight=log_p - norm.logpdf(z, 0.0, 3.0),
        log_frozen=log_p - np.log(q),
        episodes=600,
    )
    return found, sample


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_weights_beyond_all_numbers_hide_nothing() -> None:
    """A failure whose weight is e⁻⁸⁰⁰ under both proposals made the sums NaN, and the report of
    missed failures with them."""
    found, sample = explored(far=True)
    more = Explored(
        kind=np.append(found.kind, 1),
        log_weight=np.append(found.log_weight, -800.0),
        log_frozen=np.append(found.log_frozen, -800.0),
        episodes=found.episodes,
    )
    lost = missed(more, sample)
    assert lost is not None
    assert np.isfinite(lost.expected)


def test_explored_failures_that_the_frozen_proposal_hardly_produces_are_reported() -> None:
    found, sample = explored(far=True)
    lost = missed(found, sample)
    assert lost is not None
    assert 0.25 < lost.share < 0.75
    assert lost.expected < 3.0
    numbers = estimate(sample, 0.95)
    assert unseen_kinds(found, sample) == [2]
    notes = sample_warnings(
        sample, numbers, None, BUDGET, diagnose(sample, numbers, found), ("above", "under")
    )
    assert notes[0].serious
    assert "'under'" in notes[0].text
    same_kind = diagnose(sample, numbers, replace(found, kind=np.ones_like(found.kind)))
    texts = [n.text for n in sample_warnings(sample, numbers, None, BUDGET, same_kind)]
    assert any("hardly produces" in text for text in texts)


def test_explored_failures_that_the_frozen_proposal_produces_are_not() -> None:
    found, sample = explored(far=False)
    assert missed(found, sample) is None


def test_exploration_that_saw_more_than_the_interval_allows_is_reported() -> None:
    found, sample = explored(far=False)
    numbers = estimate(sample, 0.95)
    more = replace(found, log_weight=found.log_weight + np.log(10.0), kind=np.ones(len(found.kind)))
    notes = sample_warnings(sample, numbers, None, BUDGET, diagnose(sample, numbers, more))
    assert any("learning saw" in note.text for note in notes)


def test_what_a_learner_explored_reaches_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner that explored with steps of three standard deviations, then a Monte Carlo stage
    too short to see any failure."""
    problem = apeval.make("gaussian-sum-two", beta=4.0, steps=4)
    n, wide = 2_000, only(Spoilt(np.zeros((4, 1)), np.full((4, 1), 2.0)))
    drawn = rollout(problem, wide, make_key(9), np.arange(n), np.arange(n))
    found = Exploration(drawn, reduce(drawn, wide).log_weights, n)
    monkeypatch.setattr(MonteCarlo, "exploration", lambda self: found)
    result = apeval.evaluate(problem, "mc", episodes=500, seed=0)
    d = result.diagnostics
    assert d.explored_failures == int(drawn.failed.sum())
    assert d.explored_estimate == pytest.approx(2.0 * TRUTH, abs=4.0 * d.explored_standard_error)
    assert d.missed_share == pytest.approx(1.0)
    assert sum("learning met failures of the kind" in text for text in result.warnings) == 2
    assert not result.trusted


def test_one_sided_bounds_cover_at_their_own_confidence() -> None:
    """400 samples; fewer than 92 % at 95 % has probability < 0.7 % (as for the interval)."""
    rng = np.random.default_rng(4)
    found = [one_sided(tilted(rng, 300), 0.95) for _ in range(400)]
    assert sum(hi >= TRUTH for _, hi in found) >= 368
    assert sum(lo <= TRUTH for lo, _ in found) >= 368
    assert sum(hi < TRUTH or lo > TRUTH for lo, hi in found) >= 8  # each end misses now and then


def test_verdicts() -> None:
    sample = tilted(np.random.default_rng(5), 2_000)
    numbers = estimate(sample, 0.95)
    shown = judge(sample, numbers, 2.0 * TRUTH, 0.95)
    assert shown.verdict == SHOWN
    assert shown.upper < numbers.interval[1]
    assert judge(sample, numbers, TRUTH / 2.0, 0.95).verdict == REFUTED
    near = judge(sample, numbers, 1.03 * numbers.value, 0.95)
    assert near.verdict == UNDECIDED
    assert near.times is not None
    assert near.times > 2.0
    assert judge(sample, numbers, 1.001 * numbers.value, 0.95).times is None


def test_a_verdict_without_failures_rests_on_the_rule_of_three() -> None:
    result = apeval.evaluate(apeval.make("walk"), "mc", episodes=1_000, below=1e-4, seed=0)
    assert result.below is not None
    assert result.below.verdict == UNDECIDED
    assert result.below.upper == pytest.approx(3.0 / 1_000, rel=0.01)
    assert result.below.budget == pytest.approx(30_000, rel=0.05)


def test_the_budget_that_an_undecided_verdict_asks_for_decides() -> None:
    """Learning takes its part of a larger budget too: a frozen stage so much longer needs a whole
    budget so much larger. Twice the asked precision would be shown at twice that budget only."""
    problem = apeval.make("never")
    asked = apeval.evaluate(problem, episodes=400, below=5e-3, seed=0).below
    assert asked is not None
    assert asked.verdict == UNDECIDED
    assert asked.budget is not None
    for budget, below, verdict in ((1.1, 1.0, SHOWN), (1.0, 0.5, UNDECIDED)):
        n = int(budget * asked.budget)
        again = apeval.evaluate(problem, episodes=n, below=below * 5e-3, seed=1).below
        assert again is not None
        assert again.verdict == verdict


def test_without_failures_the_bound_of_monte_carlo_is_named() -> None:
    """3/n at 95 % for one side; 3.7/n for the upper end of an interval."""
    adaptive = apeval.evaluate(apeval.make("never"), episodes=1_000, seed=0)
    counted = apeval.evaluate(apeval.make("never"), "mc", episodes=1_000, seed=0)
    assert f"it shows at most {counted.interval[1]:.1e}" in adaptive.warnings[0]
    assert "mc" not in counted.warnings[0]


def test_the_tail_curve_holds_the_estimate_and_grows() -> None:
    sample = tilted(np.random.default_rng(6), 2_000)
    curve = tail_curve(sample, 0.95)
    at_zero = next(point for point in curve if point.margin == 0.0)
    assert at_zero.probability == estimate(sample, 0.95).value
    assert at_zero.interval == estimate(sample, 0.95).interval
    values = [point.probability for point in curve]
    assert values == sorted(values)
    inside = [
        p.interval[0] <= norm.sf(BETA - p.margin) <= p.interval[1] for p in curve if p.margin < 3.0
    ]
    assert np.mean(inside) > 0.7  # neighbouring points are the same episodes
    assert tail_curve(replace(sample, margin=np.full(sample.n, np.nan)), 0.95) == ()


def test_looks_are_few_and_go_where_the_last_one_points() -> None:
    target = PrecisionTarget(0.1)
    numbers = estimate(tilted(np.random.default_rng(7), 1_000), target.confidence(0.95))
    assert target.next_look(0, 0, None) < target.next_look(100, 3, None) < 130
    needed = 1_000 * (half_width(numbers) / 0.1) ** 2
    assert target.next_look(1_000, 400, numbers) == pytest.approx(1.05 * needed, abs=1)
    assert target.confidence(0.95) == pytest.approx(1.0 - 0.05 / 1.5)


def test_a_target_ends_the_run_where_it_is_reached_whatever_the_batches() -> None:
    problem = apeval.make("gaussian-sum", beta=1.5, steps=4)
    by_chunks = [
        apeval.evaluate(replace(problem, chunk=c), "mc", target_error=0.2, seed=1)
        for c in (100, 4096)
    ]
    one, other = by_chunks
    assert one.interval == other.interval
    assert one.episodes == other.episodes
    assert one.target is not None
    assert one.target.met
    assert (one.interval[1] - one.interval[0]) / (2.0 * one.estimate) <= 0.2
    assert one.steps < 50_000


def test_a_target_out_of_reach_says_what_would_do() -> None:
    problem = apeval.make("gaussian-sum", beta=1.5, steps=4)
    result = apeval.evaluate(problem, "mc", steps=3_000, target_error=0.05, seed=1)
    assert result.target is not None
    assert not result.target.met
    assert result.target.budget is not None
    assert 50_000 < result.target.budget < 200_000  # about 4·(2.13/0.05)²·(1 − p)/p = 101,000
    assert any("before the wanted" in text for text in result.warnings)


def test_a_stopped_interval_covers() -> None:
    """80 runs with target 0.3 from a proposal of the right kind; fewer than 70 covering has
    probability < 0.3 % at 95 %."""
    cell = {"problem": "gaussian-sum", "push": 1.0, "spread": 1.0, "target": 0.3}
    runs = run({**cell, "seeds": [0, 79]})["runs"]
    assert all(r["met"] for r in runs)
    assert sum(r["covered"] for r in runs) >= 70
    assert binom.cdf(69, 80, 0.95) < 0.003


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ({"target_error": 0.0}, "target_error"),
        ({"target_error": 2.0}, "target_error"),
        ({"below": 0.0}, "below must"),
        ({"below": 1e-3, "confidence": 0.4}, "confidence"),
    ],
)
def test_senseless_questions_are_refused(question: dict[str, float], says: str) -> None:
    with pytest.raises(apeval.ApevalError, match=says):
        apeval.evaluate(apeval.make("walk"), "mc", steps=100, **question)  # type: ignore[arg-type]
