"""Failure modes: found where they are, with right shares, and replayable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import apeval
from apeval.estimate.clusters import clusters
from apeval.estimate.sample import Sample
from apeval.estimate.share import share_of
from apeval.problem.draws import make_key
from apeval.problem.laws import Disturbance, Law
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray
from apeval.run import failure_log
from apeval.run.failure_log import Failure
from apeval.run.failure_modes import find_modes
from apeval.run.frozen_stage import FrozenStage, run_frozen_stage
from apeval.run.typical_push import NO_OUTCOME, NOTHING, typical_of
from apeval.simulate.adversary import Nominal, mixture
from apeval.simulate.replay import replay
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.intervals import Spoilt

T = 4


def two_ways(kinds: bool) -> Problem:
    """S_4 beyond ±6 (3 σ), as two kinds or as one."""
    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=lambda x: np.where(x[:, 0] > 6.0, 1, np.where(x[:, 0] < -6.0, 1 + kinds, 0)),
        judge_at_end=True,
        horizon=T,
        kinds=("up", "down") if kinds else ("out",),
    )


def frozen(problem: Problem, share_down: float = 0.3, episodes: int = 600) -> FrozenStage:
    up, one = np.full((T, 1), 1.5), np.ones((T, 1))
    parts = [Spoilt(up, one), Spoilt(-up, one), Nominal()]
    proposal = mixture(parts, [0.9 - share_down, share_down, 0.1])
    simulation = Simulation(problem, make_key(3), Budget(episodes=episodes))
    return run_frozen_stage(proposal, simulation, 0.95)


@pytest.mark.parametrize("kinds", [True, False])
def test_two_modes_are_found_with_their_shares(kinds: bool) -> None:
    """By symmetry each has half of the probability, although one is drawn half as often."""
    problem = two_ways(kinds)
    stage = frozen(problem)
    modes = find_modes(stage.failures, stage.sample, 0.95)
    assert len(modes) == 2
    assert sum(mode.share for mode in modes) == pytest.approx(1.0)
    assert sum(mode.failures for mode in modes) == int(stage.sample.failed.sum())
    assert sum(mode.probability for mode in modes) == pytest.approx(stage.estimate.value)
    for mode in modes:
        lo, hi = mode.share_interval
        assert lo < 0.5 < hi
        assert lo <= mode.share <= hi
        assert hi - lo < 0.4
        again = replay(problem, mode.most_likely)
        assert bool(again.failed[0])
        assert mode.push is not None
        assert abs(mode.push["size"]) == pytest.approx(3.1, abs=0.4)
    assert {np.sign(mode.push["size"]) for mode in modes if mode.push} == {-1.0, 1.0}


def test_the_most_likely_failure_is_the_one_nearest_to_the_nominal() -> None:
    stage = frozen(two_ways(True))
    mode = find_modes(stage.failures, stage.sample, 0.95)[0]
    mine = [f for f in stage.failures.kept if f.kind == {"up": 1, "down": 2}[mode.kind]]
    best = max(stage.sample.log_p[f.position] for f in mine)
    a_E = np.array(mode.most_likely["a_E"])
    assert -0.5 * float((a_E**2).sum()) - T * 0.5 * np.log(2.0 * np.pi) == pytest.approx(best)


def test_a_full_log_does_not_distort_the_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = frozen(two_ways(True), episodes=2_000)
    monkeypatch.setattr(failure_log, "_MOST", 150)
    part = frozen(two_ways(True), episodes=2_000)
    assert len(part.failures.kept) == 150
    seen = part.sample.failed[: part.failures.complete_to]
    assert int(seen.sum()) == 150
    assert part.estimate == whole.estimate
    modes = find_modes(part.failures, part.sample, 0.95)
    assert all(m.share_interval[0] < 0.5 < m.share_interval[1] for m in modes)


def test_one_wide_or_skewed_group_is_one_mode() -> None:
    rng = np.random.default_rng(0)
    for n in (12, 100, 400):
        for f in (1, 3, 20):
            assert clusters(rng.standard_normal((n, f)) * np.linspace(4.0, 1.0, f), 6).max() == 0
            assert clusters(1.5 * rng.exponential(size=(n, f)), 6).max() == 0


def test_groups_that_lie_apart_are_found_but_never_too_many() -> None:
    rng = np.random.default_rng(1)
    centre = 8.0 * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    which = np.repeat([0, 1, 2], [100, 60, 30])
    x = centre[which] + rng.standard_normal((190, 2))
    label = clusters(x, 6)
    assert np.bincount(label).tolist() == [100, 60, 30]
    assert np.array_equal(label, which)
    assert clusters(x, 2).max() == 1


def test_outcomes_are_described_by_their_frequency() -> None:
    result = apeval.evaluate(apeval.make("walk", top=6), steps=3_000, seed=0)
    assert len(result.modes) == 1
    assert "outcome 1" in result.modes[0].typical
    assert "nominally 33%" in result.modes[0].typical


@dataclass(frozen=True)
class UniformLaw(Law):
    """A law of the user's own, which apeval cannot whiten: uniform on (−half, half)."""

    half: FloatArray

    def sample(self, u: FloatArray) -> FloatArray:
        return (2.0 * u - 1.0) * self.half

    def log_prob(self, a: Array) -> FloatArray:
        inside = np.abs(a) <= self.half
        return np.where(inside, -np.log(2.0 * self.half), -np.inf).sum(axis=1)


class Uniform(Disturbance):
    dim = 1

    def given(self, x: Any, a_A: Any) -> Law:
        return UniformLaw(np.full((1, 1), 3.0))


def test_a_law_that_cannot_be_whitened_still_has_modes() -> None:
    """The end states tell them apart."""
    problem = replace(two_ways(False), nominal=Uniform())
    result = apeval.evaluate(problem, "mc", episodes=2_000, seed=0)
    assert len(result.modes) == 2
    assert all(mode.typical == "" and mode.push is None for mode in result.modes)
    assert "1. out" in str(result)


def test_the_result_reads_as_one_page() -> None:
    problem = apeval.make("gaussian-sum", beta=1.5, steps=4)
    result = apeval.evaluate(problem, "mc", steps=6_000, below=0.5, seed=0)
    text = str(result)
    assert "1. high" in text
    assert "shown at 95 % confidence, one-sided" in text
    assert "about 1 in" in text
    assert max(len(line) for line in text.splitlines()) <= 100
    assert result.trusted
    nothing = apeval.evaluate(apeval.make("walk"), "mc", steps=300, seed=0)
    assert not nothing.trusted
    assert str(nothing).splitlines()[1].startswith("  warning")


def test_kinds_and_modes_add_up() -> None:
    result = apeval.evaluate(apeval.make("minigrid-stuck"), steps=9_000, seed=0)
    assert sum(k.probability for k in result.kinds.values()) == pytest.approx(result.estimate)
    assert sum(k.failures for k in result.kinds.values()) == result.final.failures
    for kind in result.kinds.values():
        assert kind.interval[0] <= kind.probability <= kind.interval[1]
    assert {m.kind for m in result.modes} == set(result.kinds)
    data = result.as_json()
    assert data["modes"][0]["most_likely"]["a_E"]
    assert data["kinds"]["lava"]["interval"][0] <= data["kinds"]["lava"]["probability"]


def test_a_mode_that_was_never_seen_is_left_room_in_the_share() -> None:
    """A second mode with 3 % of the failures, of which 100 show none in about one sample of 20.
    400 samples; a 95 % interval covers in fewer than 90 % with probability < 1e-4."""
    rng = np.random.default_rng(0)
    covered = unseen = 0
    for _ in range(400):
        n, second = 100, 0.03
        other = rng.random(n) < second
        sample = Sample(  # 100 failures of equal weight
            component=np.zeros(n, np.int64),
            log_p=np.full(n, np.log(1e-4)),
            log_q=np.zeros((n, 1)),
            kind=np.ones(n, np.int64),
            unresolved=np.zeros(n, bool),
            length=np.ones(n, np.int64),
            margin=np.zeros(n),
        )
        _, (lo, hi) = share_of(sample, ~other, 0.95)
        covered += lo <= 1.0 - second <= hi
        unseen += not other.any()
    assert unseen >= 5
    assert covered >= 360


def test_where_everything_fails_no_disturbance_stands_out() -> None:
    """The mean of 300 standard normals exceeds 0.5 in size with probability < 1e-16."""
    (mode,) = apeval.evaluate(apeval.make("always"), "mc", episodes=300, seed=0).modes
    assert mode.typical == "no disturbance stands out"
    assert mode.push is None


def failing(z: FloatArray, p: FloatArray | None = None) -> Failure:
    """A failure with these whitened disturbances, or outcomes of nominal probabilities p."""
    none = np.zeros((len(z), 0))
    t = np.arange(len(z))
    return Failure(0, 1, t, z, none if p is None else p, none, 0, none, z)


@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
def test_chance_is_hardly_ever_named_as_a_push(spread: float) -> None:
    """Failures that no disturbance caused, a few of uneven weights, 240 means each: a right bound
    of 5 % names one in 24 or more of 200 with probability < 1e-4. The largest mean of 8 failures
    exceeds the old bound of 0.5 nearly always."""
    rng, named, large = np.random.default_rng(0), 0, 0
    for _ in range(200):
        z = rng.standard_normal((8, 80, 3))
        w = np.exp(spread * rng.standard_normal(8))
        words, push = typical_of([failing(it) for it in z], w, np.arange(8), 0.95)
        named += push is not None
        large += np.abs(np.average(z, axis=0, weights=w)).max() > 0.5
        assert (words == NOTHING) == (push is None)
    assert large == 200
    assert named < 24


def test_branches_of_one_episode_are_one_look_at_it() -> None:
    """Forty failures that came from two roots, alike but for their roots; bound as above."""
    rng, named = np.random.default_rng(1), 0
    for _ in range(200):
        z = np.repeat(rng.standard_normal((2, 40, 3)), 20, axis=0)
        members = [failing(it) for it in z]
        words, _ = typical_of(members, np.ones(40), np.repeat([0, 1], 20), 0.95)
        named += words != NOTHING
        assert typical_of(members, np.ones(40), np.arange(40), 0.95)[0] != NOTHING
    assert named < 24


@pytest.mark.parametrize("steady", [False, True])
def test_a_push_is_named_from_few_failures(steady: bool) -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((8, 80, 3))
    z[:, slice(None) if steady else 40, 1] += 0.5 if steady else 3.0
    words, push = typical_of([failing(it) for it in z], np.ones(8), np.arange(8), 0.95)
    assert push is not None
    assert push["component"] == 2
    assert push["decision"] == (0 if steady else 41)
    assert ("steadily" in words) == steady


def test_an_outcome_is_named_only_where_it_comes_more_often() -> None:
    """Bound as above: 5 % of 200."""
    rng, named = np.random.default_rng(0), 0
    p = np.tile([0.9, 0.05, 0.03, 0.02], (20, 1))
    for _ in range(200):
        drawn = [rng.choice(4, 20, p=p[0])[:, None] for _ in range(6)]
        chance = [replace(failing(p, p), a_E=it) for it in drawn]
        named += typical_of(chance, np.ones(6), np.arange(6), 0.95)[0] != NO_OUTCOME
    assert named < 24
    often = [replace(it, a_E=np.full((20, 1), 2)) for it in chance]
    assert typical_of(often, np.ones(6), np.arange(6), 0.95)[0].startswith("outcome 2 in 100%")
