"""Questions after a run: another nominal, another policy, more runs, a larger budget."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, norm
from typer.testing import CliRunner

import apeval
from apeval.cli.main import app
from apeval.errors import ApevalError
from apeval.estimate.binomial import clopper_pearson
from apeval.estimate.compare import compare as compare_sides
from apeval.estimate.interval import Estimate, estimate
from apeval.estimate.pooled_sample import pool
from apeval.estimate.reweigh import reweigh
from apeval.estimate.sample import Sample, combine
from apeval.problem.draws import make_key
from apeval.problem.law_change import parse_change
from apeval.problem.laws import Categorical, Normal, TruncatedNormal
from apeval.problem.problem import Problem
from apeval.run.completed_run import InMemory
from apeval.simulate.retrace import retrace
from apeval_bench import questions


def kept(problem: Problem, seed: int = 0, method: str | None = None, **budget: int) -> InMemory:
    problem = replace(problem, truth=None)  # which may take a while
    run = InMemory(problem, Path(f"run-{seed}"))
    apeval.evaluate(problem, method, seed=seed, recorder=run, **budget)  # type: ignore[arg-type]
    return run


@pytest.fixture(scope="module")
def sums() -> InMemory:
    return kept(apeval.make("gaussian-sum", steps=4), seed=1, episodes=1_000)


# -- changes of a law --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("std*1.2", [[0.6, 1.2]]),
        ("std+20%", [[0.6, 1.2]]),
        ("std-20%", [[0.4, 0.8]]),
        ("std / 2", [[0.25, 0.5]]),
        ("std[2]=0.3", [[0.5, 0.3]]),
        ("std×2", [[1.0, 2.0]]),
    ],
)
def test_a_change_says_what_it_does(text: str, after: list[list[float]]) -> None:
    law = Normal(0.0, [0.5, 1.0]).given(None, None)
    np.testing.assert_allclose(parse_change(text)(law).std, np.array(after))  # type: ignore[attr-defined]


def test_an_outcome_changes_and_the_others_keep_their_proportions() -> None:
    law = Categorical([0.1, 0.3, 0.6]).given(None, None)
    after = parse_change("probabilities[0]*2")(law)
    np.testing.assert_allclose(after.probabilities, np.array([[0.2, 0.8 / 3, 1.6 / 3]]))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("std**2", "std*1.2"),
        ("wider", "std*1.2"),
        ("std*nan", "std*1.2"),
        ("sd*2", "Did you mean 'std'"),
        ("std*-1", "positive"),
        ("std[3]*2", "components 1 … 2"),
        ("std*20%", "per cent"),
        ("low=9", "below high"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(text: str, said: str) -> None:
    law = TruncatedNormal(0.0, [0.5, 1.0], -3.0, 3.0).given(None, None)
    with pytest.raises(ApevalError, match=said.replace("*", r"\*")):
        parse_change(text)(law)


def test_what_the_old_law_never_takes_is_noticed() -> None:
    box = TruncatedNormal(0.0, 1.0, -3.0, 3.0).given(None, None)
    assert parse_change("high=4")(box).reaches_beyond(box, 1)
    assert not parse_change("high=2")(box).reaches_beyond(box, 1)
    never = Categorical([0.0, 1.0]).given(None, None)
    assert Categorical([0.1, 0.9]).given(None, None).reaches_beyond(never, 1)


def test_widening_is_the_second_moment_of_the_ratio() -> None:
    old, new = (Normal(0.0, [std, 1.0]).given(None, None) for std in (1.0, 1.2))
    x = np.linspace(-12, 12, 200_001)
    density = np.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)
    ratio = np.exp(-0.5 * x**2 * (1 / 1.44 - 1)) / 1.2
    moment = float((density * ratio**2).sum() * (x[1] - x[0]))
    assert new.widening(old)[0] == pytest.approx(math.log(moment), rel=1e-6)
    assert Normal(0.0, 1.5).given(None, None).widening(Normal().given(None, None))[0] == np.inf


# -- a run in memory ---------------------------------------------------------------------------


def test_a_recorder_in_memory_that_is_used_again_keeps_the_last_run_alone() -> None:
    """As where a cell of a notebook is run once more."""
    problem = apeval.make("one-step", beta=2.0)
    run, once = InMemory(problem), kept(problem, seed=2, episodes=200)
    for seed in (1, 2):
        apeval.evaluate(problem, episodes=200, seed=seed, recorder=run)
    assert run.episodes.n == run.sample.n == once.sample.n
    np.testing.assert_array_equal(run.episodes.a_E, once.episodes.a_E)
    again = apeval.reweight(run, "std*1.01")
    assert again.as_json() == apeval.reweight(once, "std*1.01").as_json()


def test_a_recorder_in_memory_of_another_problem_is_refused() -> None:
    run = InMemory(apeval.make("one-step", beta=3.0))
    with pytest.raises(ApevalError, match=r"for another problem .parameter beta"):
        apeval.evaluate(apeval.make("one-step", beta=2.0), episodes=200, recorder=run)


# -- reweight ----------------------------------------------------------------------------------


def test_the_unchanged_nominal_gives_the_same_answer(sums: InMemory) -> None:
    again = apeval.reweight(sums, "std*1")
    assert again.estimate == sums.result.estimate
    assert again.interval == pytest.approx(sums.result.interval, rel=0.05)


def test_a_target_run_is_reweighted_at_the_confidence_of_a_look() -> None:
    problem = apeval.make("gaussian-sum", steps=4)
    run = InMemory(problem)
    apeval.evaluate(problem, target_error=0.3, seed=2, recorder=run)
    wide, narrow = apeval.reweight(run, "mean+0"), reweigh(run.sample, run.sample.log_p, 0.95)
    assert wide.interval is not None
    assert wide.interval[0] < narrow.numbers.interval[0]


def test_too_wide_too_few_and_beyond_are_refused_with_a_reason(sums: InMemory) -> None:
    wide = apeval.reweight(sums, "std*2")
    assert wide.estimate is None
    assert wide.refused is not None
    assert "wider" in wide.refused
    few = apeval.reweight(kept(apeval.make("one-step", beta=2.0), 3, "mc", episodes=300), "std*1.1")
    assert few.refused is not None
    assert "effective" not in few.refused
    assert "worth" in few.refused
    int_v1 = kept(apeval.make("int-v1", box=1.5), seed=4, steps=1_500)
    outside = apeval.reweight(int_v1, ["high=2", "low=-2"])
    assert outside.refused is not None
    assert "never takes" in outside.refused


def test_frequent_failures_of_the_nominal_part_speak_for_themselves() -> None:
    """200 of 1,000 nominal episodes fail; a learned part that never fails takes nothing away."""
    n, rng = 2_000, np.random.default_rng(0)
    component = np.repeat([0, 1], n // 2)
    z = rng.normal(size=n) + 5.0 * component  # part 1 looks where nothing fails
    log_p, log_1 = norm.logpdf(z), norm.logpdf(z, 5.0)
    kind = (z < -0.84).astype(np.int64)
    zeros = np.zeros(n)
    sample = Sample(
        component,
        log_p,
        np.stack([log_p, log_1], axis=1),
        kind,
        zeros > 0,
        zeros.astype(int),
        zeros,
    )
    many = reweigh(sample, norm.logpdf(z, scale=1.1), 0.95)
    assert many.refused is None
    assert many.numbers.interval[0] < ndtr(-0.84 / 1.1) < many.numbers.interval[1]


def test_runs_of_edited_code_are_merged_with_a_warning(sums: InMemory) -> None:
    @dataclass
    class Stored(InMemory):
        provenance: dict[str, object] = field(default_factory=dict)

    runs = []
    for seed, code in ((31, "a"), (32, "b")):
        run = Stored(sums.of, provenance={"files": [{"name": "my.py", "sha256": code}]})
        apeval.evaluate(run.of, episodes=600, seed=seed, recorder=run)
        runs.append(run)
    merged = apeval.merge(runs)
    assert not merged.trusted
    assert "code is not the same" in merged.warnings[0]


def test_a_changed_problem_may_differ_in_its_nominal_only(sums: InMemory) -> None:
    with pytest.raises(ApevalError, match="more than its nominal"):
        apeval.reweight(sums, problem=apeval.make("gaussian-sum", steps=4, beta=4.4))
    walk = kept(apeval.make("walk", top=8), seed=5, steps=3_000)
    changed = apeval.make("walk", top=8, p_up=0.36)
    answer = apeval.reweight(walk, problem=changed)
    assert changed.truth is not None
    assert answer.interval is not None
    assert answer.interval[0] < changed.truth().value < answer.interval[1]
    with pytest.raises(ApevalError, match="more than its nominal"):
        apeval.reweight(walk, problem=apeval.make("walk", top=9))


@pytest.mark.parametrize("name", ["int-v1", "minigrid-s1", "queue", "ar1"])
def test_retracing_finds_the_recorded_laws_again(name: str) -> None:
    run = kept(apeval.make(name), seed=6, steps=1_500)
    again = retrace(run.of, make_key(6), run.episodes)
    assert again.differs is None
    one, other = (e.law.log_prob(run.episodes.a_E) for e in (again, run.episodes))
    np.testing.assert_array_equal(one, other)


# -- compare -----------------------------------------------------------------------------------


def counted(k: int, n: int) -> Estimate:
    sample = Sample(
        component=np.zeros(n, np.int64),
        log_p=np.zeros(n),
        log_q=np.zeros((n, 1)),
        kind=(np.arange(n) < k).astype(np.int64),
        unresolved=np.zeros(n, bool),
        length=np.ones(n, np.int64),
        margin=np.full(n, np.nan),
    )
    return estimate(sample, 0.95)


def test_swapping_the_runs_inverts_the_ratio() -> None:
    problem = apeval.make("one-step", beta=2.0)
    a, b = (kept(problem, seed, "mc", episodes=n) for seed, n in ((1, 800), (2, 1_500)))
    one, other = apeval.compare(a, b), apeval.compare(b, a)
    assert one.ratio_interval[1] is not None
    assert other.ratio_interval[0] == pytest.approx(1.0 / one.ratio_interval[1])
    assert other.difference_interval[0] == pytest.approx(-one.difference_interval[1])


def test_without_a_failure_only_one_side_is_bounded() -> None:
    some, none = apeval.make("one-step", beta=1.0), apeval.make("one-step", beta=6.0)
    a, b = kept(some, 1, "mc", episodes=500), kept(none, 2, "mc", episodes=500)
    found = apeval.compare(a, b)
    assert found.ratio is None
    assert found.ratio_interval[1] is None
    assert found.verdict == "more often"
    ends = clopper_pearson(a.result.failures, 500, 0.975)[0], clopper_pearson(0, 500, 0.975)[1]
    assert found.ratio_interval[0] == pytest.approx(ends[0] / ends[1])
    nothing = apeval.compare(b, kept(none, 3, "mc", episodes=500))
    assert nothing.verdict == "undecided"
    assert nothing.ratio_interval == (0.0, None)
    assert "∞" in str(nothing)


def test_few_counts_are_set_end_by_end_and_cover() -> None:
    """Bonferroni: the ratio of binomials is covered in at least 95 %, at any counts."""
    n, p, q = 200, 0.02, 0.01
    cache = {k: counted(k, n) for k in range(25)}
    missed = 0.0
    for i in range(20):
        for j in range(15):
            sides = [_side(cache[i], i, n), _side(cache[j], j, n)]
            lo, hi = compare_sides(sides[0], sides[1], 0.95).ratio_interval
            if not lo <= p / q <= hi:
                missed += binom.pmf(i, n, p) * binom.pmf(j, n, q)
    assert missed < 0.05


def _side(numbers: Estimate, k: int, n: int):  # type: ignore[no-untyped-def]
    return lambda c: replace(numbers, interval=clopper_pearson(k, n, c), confidence=c)


def test_runs_that_are_not_comparable_say_so() -> None:
    a = kept(apeval.make("int-v1"), 1, "mc", steps=600)
    b = kept(apeval.make("int-v1", std=0.6), 2, "mc", steps=600)
    found = apeval.compare(a, b)
    assert not found.comparable
    assert "nominal" in found.warnings[0]
    same = kept(apeval.make("int-v1", ego_speed=9.8), 1, "mc", steps=600)
    assert apeval.compare(a, same).comparable
    assert any("seed 1" in text for text in apeval.compare(a, same).warnings)


# -- merge and extend --------------------------------------------------------------------------


def test_merged_runs_count_by_budget_and_stay_unbiased() -> None:
    """With weights 1/error² the mean of many merged pairs would lie 3 % low here."""
    truth, rng = float(ndtr(-3.0)), np.random.default_rng(0)
    by_budget, by_error = [], []
    for _ in range(1_500):
        samples = [_shifted(rng, n) for n in (30, 60)]
        merged, shares = pool(samples, [1.0, 2.0])
        assert shares == pytest.approx((1 / 3, 2 / 3))
        found = [estimate(s, 0.95) for s in samples]
        by_budget.append(estimate(merged, 0.95).value)
        w = np.array([1.0 / max(e.standard_error, 1e-12) ** 2 for e in found])
        by_error.append(float(w @ [e.value for e in found] / w.sum()))
    error = float(np.std(by_budget)) / math.sqrt(len(by_budget))
    assert abs(np.mean(by_budget) - truth) < 4.0 * error
    assert np.mean(by_error) < truth - 4.0 * error


def _shifted(rng: np.random.Generator, n: int) -> Sample:
    """n episodes of one decision, from N(2.6, 0.9²) for N(0, 1) beyond 3."""
    z = rng.normal(2.6, 0.9, n)
    return Sample(
        component=np.zeros(n, np.int64),
        log_p=-0.5 * z**2,
        log_q=(-0.5 * ((z - 2.6) / 0.9) ** 2 - math.log(0.9))[:, None],
        kind=(z > 3.0).astype(np.int64),
        unresolved=np.zeros(n, bool),
        length=np.ones(n, np.int64),
        margin=3.0 - z,
    )


def test_shares_multiply_where_a_merged_run_counted_batches_of_its_own() -> None:
    rng = np.random.default_rng(1)
    a, b, c = (_shifted(rng, n) for n in (40, 50, 60))
    inner = combine([(0.25, a), (0.75, b)])
    whole, _ = pool([inner, c], [1.0, 3.0])
    means = [estimate(s, 0.95).value for s in (a, b, c)]
    wanted = 0.25 * (0.25 * means[0] + 0.75 * means[1]) + 0.75 * means[2]
    assert estimate(whole, 0.95).value == pytest.approx(wanted, rel=1e-12)


def test_monte_carlo_runs_add_up() -> None:
    problem = apeval.make("one-step", beta=2.0)
    a, b = (kept(problem, seed, "mc", episodes=400 * seed) for seed in (1, 2))
    merged = apeval.merge([a, b])
    k = a.result.final.failures + b.result.final.failures
    assert merged.estimate == k / 1_200
    assert merged.interval == counted(k, 1_200).interval


def test_the_same_episodes_are_never_counted_twice(sums: InMemory) -> None:
    with pytest.raises(ApevalError, match="same seed 1"):
        apeval.merge([sums, sums])
    with pytest.raises(ApevalError, match="beta"):
        apeval.merge([sums, kept(apeval.make("gaussian-sum", steps=4, beta=3.0), 9, episodes=300)])


def test_runs_that_disagree_are_not_trusted(sums: InMemory) -> None:
    other = kept(sums.of, seed=2, episodes=400)
    wrong = replace(other.result, estimate=3.0 * other.result.estimate)
    assert other.outcome is not None
    other.outcome = replace(other.outcome, result=wrong)
    merged = apeval.merge([sums, other])
    assert not merged.trusted
    assert "farther apart" in merged.warnings[0]


def test_an_extended_run_has_the_wider_interval_of_a_look(sums: InMemory) -> None:
    other = kept(sums.of, seed=2, episodes=500)
    planned, looked = (apeval.merge([sums, other], extended=e) for e in (False, True))
    assert looked.estimate == planned.estimate
    assert looked.interval[0] < planned.interval[0] < planned.interval[1] < looked.interval[1]


# -- plan --------------------------------------------------------------------------------------


def test_a_plan_tells_what_the_run_takes() -> None:
    problem = apeval.make("int-v1")
    plan = apeval.plan(problem, 0.05, seed=3)
    taken = apeval.evaluate(problem, target_error=0.05, seed=3)
    assert plan.steps_range is not None
    assert plan.steps_range[0] <= taken.steps <= plan.steps_range[1]
    assert plan.steps == pytest.approx(taken.steps, rel=0.3)  # batches of learning count, too
    assert plan.monte_carlo_episodes == pytest.approx(1.96**2 / (plan.estimate * 0.05**2), rel=1e-3)


def test_a_plan_takes_monte_carlo_where_it_costs_no_more() -> None:
    """Three in ten episodes fail, and no disturbance has to do with it."""
    problem = apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: draws.uniform(1),
        failed=lambda x: x[:, 0] < 0.3,
        judge_at_end=True,
        horizon=5,
    )
    plan = apeval.plan(problem, 0.1, pilot_steps=4_000, check=False)
    assert plan.steps is not None
    assert plan.recommended == "mc"
    assert 'method="mc"' in plan.command
    assert "so take it" in " ".join(str(plan).split())
    asked = apeval.plan(problem, 0.1, pilot_steps=4_000, method="ape", check=False)
    assert asked.recommended == "ape"
    assert any('`method="mc"`' in text for text in asked.warnings)
    short = apeval.plan(problem, 0.2, pilot_steps=250, check=False)
    assert short.steps is None
    assert short.recommended == "mc"
    assert "no more than a longer pilot" in " ".join(str(short).split())
    rare = apeval.plan(apeval.make("one-step", beta=4.0), 0.2, pilot_steps=2_000)
    assert rare.recommended == rare.method == "ape"


def test_a_small_target_error_can_be_reached() -> None:
    """The batches of learning that count must not keep their share of the error for ever."""
    result = apeval.evaluate(apeval.make("int-v1"), target_error=0.025, steps=200_000, seed=3)
    assert result.target is not None
    assert result.target.met


def test_a_pilot_without_failures_asks_for_a_longer_one() -> None:
    plan = apeval.plan(apeval.make("never"), 0.1, pilot_steps=200)
    assert plan.steps is None
    assert "apeval.plan(problem, " in plan.command
    assert "pilot_steps=2000" in plan.command


# -- the command line --------------------------------------------------------------------------


def test_the_commands_answer(tmp_path: Path) -> None:
    a, b, c = (str(tmp_path / name) for name in "abc")

    def call(*words: str, code: int = 0) -> dict[str, object]:
        result = CliRunner().invoke(app, [*words, "--json"])
        assert result.exit_code == code, result.output
        found: dict[str, object] = json.loads(result.stdout)
        return found

    run = ["run", "one-step", "--set", "problem.beta=3.0", "--episodes", "600"]
    call(*run, "--seed", "1", "--out", a)
    wider = call("reweight", a, "--nominal", "std*1.1")
    assert wider["interval"][0] < ndtr(-3.0 / 1.1) < wider["interval"][1]  # type: ignore[index]
    refused = call("reweight", a, "--nominal", "std*2", code=1)
    assert refused["estimate"] is None
    assert "apeval run one-step" in str(refused["remedy"])
    extended = call(*run, "--extend", a, "--out", b)
    assert [part["seed"] for part in extended["parts"]] == [1, 2]  # type: ignore[attr-defined]
    longer = call(*run, "--extend", b, "--out", c)
    assert [part["seed"] for part in longer["parts"]] == [1, 2, 3]  # type: ignore[attr-defined]
    assert call("merge", a, b, c)["extended"] is True
    assert call("compare", a, b)["verdict"] == "undecided"
    with pytest.raises(ApevalError, match="seed 2 would draw"):
        CliRunner().invoke(app, [*run, "--extend", b, "--seed", "2"], catch_exceptions=False)
    with pytest.raises(ApevalError, match=r"problem\.beta=3\.0"):
        CliRunner().invoke(app, ["run", "one-step", "--extend", a], catch_exceptions=False)


# -- coverage, in small ------------------------------------------------------------------------


def test_answers_cover_their_truths() -> None:
    """The experiment `questions` in small; more misses than allowed would happen in one of a
    thousand such tests, if each answer covers in 95 %."""
    truths = {"itself": float(ndtr(-2.0)), "other": float(ndtr(-2.3))}
    answers = questions.run({"problem": "counts", "seeds": [10_000, 10_019], "truths": truths})
    missed = sum(not a["covered"] for a in answers["answers"])
    assert missed <= binom.ppf(0.999, len(answers["answers"]), 0.05)
    problem, seen = apeval.make("gaussian-sum", steps=4), []
    for seed in range(10_000, 10_010):
        run = kept(problem, seed, episodes=600)
        for text, truth in (("std*1.2", ndtr(-4.5 / 1.2)), ("std*0.9", ndtr(-4.5 / 0.9)),
                            ("mean+0.2", ndtr(-4.5 + 0.4))):  # fmt: skip
            answer = apeval.reweight(run, text)
            if answer.interval is not None:
                seen.append(answer.interval[0] <= truth <= answer.interval[1])
    assert len(seen) >= 20
    assert sum(not covered for covered in seen) <= binom.ppf(0.999, len(seen), 0.05)
