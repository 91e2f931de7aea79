"""Two policies in pairs: common random numbers, the control arm, and intervals that use them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm
from typer.testing import CliRunner

import apeval
from apeval.cli.main import app
from apeval.estimate.anytime import anytime_multiple
from apeval.estimate.paired import compare_pairs
from apeval.estimate.sample import Sample
from apeval.problem.problem import Problem
from apeval.run.paired_policies import paired_samples
from apeval.run.paired_stage import common_proposal
from apeval.simulate.adversary import Mixture, Nominal, only

EPISODES = 800


def steered(gain: float, start: float = 0.0, horizon: int = 2) -> Problem:
    """x' = x − gain·x + e for two steps: the policy is the gain."""
    return Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.full((draws.n, 1), start),
        step=lambda x, a_A, a_E, draws: x + a_A + a_E,
        agent=lambda x: -gain * x,
        failed=lambda x: x[:, 0] > 5.0,
        margin=lambda x: 5.0 - x[:, 0],
        horizon=horizon,
        name=f"gain {gain:g}",
    )


def pairs(n: int, beta_a: float, beta_b: float, seed: int) -> tuple[Sample, Sample]:
    """Failure is z > β: both policies meet the same z from a mixture around β."""
    component = Mixture((Nominal(),) * 2, (0.9, 0.1)).assign(np.arange(n))
    mean = np.where(component == 0, beta_a, 0.0)
    z = mean + np.random.default_rng(seed).normal(size=n)
    log_q = np.stack([norm.logpdf(z, beta_a), norm.logpdf(z)], axis=1)
    one, other = (
        Sample(
            component, norm.logpdf(z), log_q, (z > beta).astype(np.int64), np.zeros(n, bool),
            np.ones(n, np.int64), np.full(n, np.nan),
        )
        for beta in (beta_a, beta_b)
    )  # fmt: skip
    return one, other


def test_the_intervals_cover_what_is_known() -> None:
    """95 % intervals: of 150 at least 92 % cover, at one look; also at the worst of many looks."""
    beta = 4.0, 3.9
    ratio, difference = ndtr(-beta[0]) / ndtr(-beta[1]), ndtr(-beta[0]) - ndtr(-beta[1])
    covered = []
    for seed in range(150):
        a, b = pairs(300, *beta, seed)
        found = compare_pairs(a, b, 0.95)
        lo, hi = found.ratio_interval
        low, high = found.difference_interval
        looks = [a.first(k).n for k in range(60, 301, 40)]
        held = [compare_pairs(a.first(k), b.first(k), 0.95, 300).ratio_interval for k in looks]
        always = all(end[0] <= ratio <= end[1] for end in held)
        covered.append((lo <= ratio <= hi, low <= difference <= high, always))
    assert (np.mean(covered, axis=0) >= 0.92).all()


def test_pairs_narrow_the_ratio_where_policies_are_alike() -> None:
    a, b = pairs(300, 4.0, 3.97, 1)
    c, _ = pairs(300, 4.0, 3.97, 2)
    paired, mixed = compare_pairs(a, b, 0.95), compare_pairs(c, b, 0.95)
    width = [math.log(it.ratio_interval[1] / it.ratio_interval[0]) for it in (paired, mixed)]
    assert width[0] < 0.7 * width[1]
    assert paired.correlation is not None
    assert paired.correlation > 0.5  # less could not halve the variance
    assert paired.worth is not None
    assert paired.worth > 1.0 / 0.7**2


def test_a_policy_against_itself_is_not_known_to_be_the_same_for_certain() -> None:
    a, _ = pairs(300, 4.0, 4.0, 1)
    found = compare_pairs(a, a, 0.95)
    lo, hi = found.ratio_interval
    assert found.verdict == "undecided"
    assert found.ratio == 1.0
    assert lo < 1.0 < hi  # as many pairs as this may have missed one that differs
    w = a.weights[a.failed]
    count = 3.69 / (w.sum() ** 2 / (w @ w))  # Garwood's bound for none seen
    assert math.log(hi) == pytest.approx(count, rel=0.05)


def test_swapping_the_policies_inverts_the_ratio() -> None:
    a, b = pairs(300, 4.0, 3.8, 3)
    one, other = compare_pairs(a, b, 0.95), compare_pairs(b, a, 0.95)
    assert other.ratio_interval[0] == pytest.approx(1.0 / one.ratio_interval[1])
    assert other.difference_interval[1] == pytest.approx(-one.difference_interval[0])


def test_with_few_failures_there_is_each_policys_own_bound_and_at_any_time_none() -> None:
    a, b = pairs(12, 4.0, 6.5, 1)
    few, always = compare_pairs(a, b, 0.95), compare_pairs(a, b, 0.95, planned=1_000)
    assert few.ratio_interval[1] == math.inf
    assert always.ratio_interval == (0.0, math.inf)
    assert always.verdict == "undecided"


def test_the_boundary_holds_at_every_look() -> None:
    """A random walk leaves it in about 5 % of cases at most (Ville's inequality), where a single
    look's 1.96 is left by most."""
    n, planned = np.arange(1, 1_001), 1_000
    walk = np.random.default_rng(1).normal(size=(2_000, planned)).cumsum(axis=1) / np.sqrt(n)
    edge = np.array([anytime_multiple(k, planned, 0.95) for k in n])
    assert (np.abs(walk) > edge).any(axis=1).mean() < 0.05 + 2 * math.sqrt(0.05 * 0.95 / 2_000)
    assert (np.abs(walk) > 1.96).any(axis=1).mean() > 0.3


def test_both_policies_meet_the_same_disturbances() -> None:
    a, b = paired_samples(steered(0.2), steered(0.2), episodes=EPISODES, seed=3)
    assert np.array_equal(a.log_p, b.log_p)
    assert np.array_equal(a.kind, b.kind)
    assert a.failed.sum() > 20


def test_policies_are_compared_against_the_truth_within_the_budget() -> None:
    from apeval.environments.synthetic.ar1 import first_passage

    truth = first_passage(0.8, 5.0, 2, 400) / first_passage(0.7, 5.0, 2, 400)
    found = apeval.compare_policies(steered(0.2), steered(0.3), episodes=EPISODES, seed=4)
    lo, hi = found.ratio_interval
    assert hi is not None
    assert lo < truth < hi
    assert found.verdict == "more often"
    it = found.pairing
    assert it is not None
    assert it.episodes <= EPISODES
    assert it.pairs > 100
    assert it.failures_both <= min(it.failures_a, it.failures_b)
    assert it.control.episodes == 2
    assert it.control.failures_a == it.control.failures_b == 0
    assert found.comparable
    assert not found.warnings
    assert "neither fails without disturbances" in str(found)
    assert json.loads(json.dumps(found.as_json()))["pairing"]["pairs"] == it.pairs
    again = apeval.compare_policies(steered(0.2), steered(0.3), episodes=EPISODES, seed=4)
    assert again == found


def test_the_control_arm_tells_of_a_policy_that_needs_no_disturbance_to_fail() -> None:
    bad = steered(-1.0, start=1.0, horizon=3)  # 1, 2, 4, 8
    found = apeval.compare_policies(bad, steered(0.2, 1.0, 3), "mc", episodes=200)
    assert found.pairing is not None
    assert found.pairing.control.failures_a == found.pairing.control.episodes
    assert found.pairing.control.failures_b == 0


def test_any_look_may_be_the_last() -> None:
    problems = steered(0.2), steered(0.4)
    seen = []
    for found in apeval.compare_anytime(*problems, episodes=4 * EPISODES, seed=1):
        seen.append(found)
        if found.verdict != "undecided":
            break
    assert seen[-1].verdict == "more often"
    assert seen[-1].pairing is not None
    assert seen[-1].pairing.anytime
    assert seen[-1].pairing.episodes < 4 * EPISODES
    assert "at every look" in str(seen[-1])


def test_problems_that_differ_in_more_than_the_policy_are_refused_or_named() -> None:
    wide = Problem(
        nominal=apeval.Normal(0.0, 1.0, dim=2),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E[:, :1],
        failed=lambda x: x[:, 0] > 5.0,
        horizon=2,
    )
    with pytest.raises(apeval.ApevalError, match="`nominal` differ"):
        apeval.compare_policies(steered(0.2), wide, episodes=100)
    with pytest.raises(apeval.ApevalError, match="compare_anytime"):
        apeval.compare_policies(steered(0.2), steered(0.3), episodes=100, on_interrupt="finish")
    found = apeval.compare_policies(steered(0.2), steered(0.2, horizon=3), "mc", episodes=100)
    assert not found.comparable
    assert "horizons differ: 2 and 3" in found.warnings[0]


def test_the_nominal_of_both_is_one_component() -> None:
    shared = common_proposal(only(Nominal()), only(Nominal()))
    assert len(shared.components) == 1
    assert shared.shares == (1.0,)


def test_the_command_compares_and_stops_when_decided(tmp_path) -> None:  # type: ignore[no-untyped-def]
    out = tmp_path / "answer.json"
    words = ["compare-policies", "one-step", "one-step", "--set", "problem.beta=3"]
    words += ["--set-b", "problem.beta=3.3", "--episodes", "1000", "--until-decided"]
    answer = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert answer.exit_code == 0, answer.output
    assert "A fails more often than B" in answer.output
    assert json.loads(out.read_text())["pairing"]["anytime"] is True


def test_one_problem_with_two_settings_is_given_once() -> None:
    words = ["compare-policies", "one-step", "--set-a", "problem.beta=2", "--steps", "600"]
    answer = CliRunner().invoke(app, [*words, "--set-b", "problem.beta=3", "--json"])
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.output)["verdict"] == "more often"
    for same in ([], ["--set-b", "problem.beta=2"]):
        refused = CliRunner().invoke(app, [*words[: 4 if same else 2], *same, "--steps", "600"])
        assert "both policies are the same" in str(refused.exception)
