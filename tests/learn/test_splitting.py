"""`splitting`: unbiased, with ties, extinction and any end of the budget; an honest variance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apeval
from apeval.errors import ApevalError
from apeval.learn.population import MarginScore, Population
from apeval.problem.draws import make_key
from apeval.problem.lineage import Lineage, pairs_of
from apeval.problem.problem import Problem
from apeval.run.population_stage import PopulationStage
from apeval.run.second_opinion import SecondOpinion, opinion_notes
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.replay import Record, record, replay
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.splitting_accuracy import PROBLEMS, one_population

ERRORS = 4.0  # standard errors


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_populations_are_unbiased_and_know_their_variance(name: str) -> None:
    """The mean of many populations against the exact value, and the mean of their own variances
    against the variance between them, whose relative standard error is that of squares."""
    problem, truth = PROBLEMS[name]()
    found = np.array([one_population(problem, 12, seed) for seed in range(100)])
    value, variance = found[:, 0], found[:, 1]
    error = value.std(ddof=1) / np.sqrt(len(value))
    assert abs(value.mean() - truth) <= ERRORS * error
    squares = (value - truth) ** 2
    between = np.hypot(squares.std(), variance.std()) / np.sqrt(len(value))
    assert abs(squares.mean() - variance.mean()) <= ERRORS * between


def test_weights_of_all_episodes_add_up_to_one() -> None:
    problem, _ = PROBLEMS["ties"]()
    stage = stage_of(problem, Budget(steps=4_000), 20)
    sample = stage.samples()[0]
    assert sample.genealogy is not None
    assert sample.weights.mean() == pytest.approx(1.0, rel=1e-12)
    assert sample.steps == stage.simulation.steps <= 4_000


def stage_of(problem: Problem, budget: Budget, n: int) -> PopulationStage:
    from apeval.learn.method import PopulationPlan

    simulation = Simulation(problem.blind(), make_key(3), budget)
    plan = PopulationPlan(MarginScore(), 20.0, n, None)
    stage = PopulationStage(simulation, only(Nominal()), plan, open_end=False)
    while stage.next() is not None:
        pass
    return stage


@pytest.mark.parametrize("steps", [90, 160])
def test_a_budget_that_ends_a_population_leaves_it_unbiased(steps: int) -> None:
    """Which round is the last follows from what the rounds before it took."""
    problem, truth = PROBLEMS["uncontrolled"]()
    values = []
    for seed in range(120):
        simulation = Simulation(problem.blind(), make_key(seed), Budget(steps=steps))
        it = Population(simulation, only(Nominal()), 12, 0, MarginScore())
        it.advance()
        while not it.over:
            it.advance()
        assert simulation.steps <= steps
        values.append(np.exp(it.log_probability))
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    assert abs(np.mean(values) - truth) <= ERRORS * error


def test_copies_and_replays_are_the_same_episodes() -> None:
    """The states of an array are copied; the same problem behind an object is played again."""
    problem, _ = PROBLEMS["uncontrolled"]()
    played = _wrapped(problem)
    runs = []
    for it in (problem, played):
        simulation = Simulation(it.blind(), make_key(1), Budget(episodes=400))
        population = Population(simulation, only(Nominal()), 30, 0, MarginScore())
        batches = [population.advance()]
        while not population.over:
            batches.append(population.advance())
        runs.append((population, batches, simulation))
    (one, copied, cheap), (other, again, dear) = runs
    assert len(copied) > 3
    assert np.array_equal(one.log_weight, other.log_weight)
    for a, b in zip(copied, again, strict=True):
        for name in ("ids", "s", "a_E", "kind", "margin", "length", "t", "s_end"):
            assert np.array_equal(getattr(a, name), getattr(b, name)), name
        assert a.trace is not None
        assert b.trace is not None
        assert np.array_equal(a.trace.drawn, b.trace.drawn)
        assert b.trace.x is None
    assert cheap.steps < dear.steps
    assert not other.strayed


class _Hidden:
    """A state that is no array."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __getitem__(self, mask: Any) -> _Hidden:
        return _Hidden(self.x[mask])


def _wrapped(problem: Problem) -> Problem:
    inner = problem
    return replace(
        problem,
        reset=lambda draws: _Hidden(inner.reset(draws)),
        step=lambda x, a_A, a_E, draws: _Hidden(inner.step(x.x, a_A, a_E, draws)),
        failed=lambda x: inner.failed(x.x),  # type: ignore[operator]
        margin=lambda x: inner.margin(x.x),  # type: ignore[misc]
        views={"state": lambda x: x.x},
    )


def test_every_branch_replays_from_its_record() -> None:
    problem, _ = PROBLEMS["uncontrolled"]()
    simulation = Simulation(problem.blind(), make_key(5), Budget(episodes=200))
    population = Population(simulation, only(Nominal()), 20, 0, MarginScore())
    population.advance()
    while not population.over:
        last = population.advance()
    for i in range(last.n):
        it = Record.from_json(record(last, i, make_key(5)).as_json())
        again = replay(problem, it)
        assert np.array_equal(again.s, last.s[last.rows_of(i)])
        assert int(again.kind[0]) == int(last.kind[i])
    assert any(len(last.pairs(i)) > 1 for i in range(last.n))


def test_a_lineage_says_whose_numbers_are_drawn() -> None:
    first = Lineage.own(np.array([4, 5]))
    second = first.take(np.array([1, 0])).branched(np.array([3, 1]), np.array([8, 9]))
    third = second.branched(np.array([2, 6]), np.array([10, 11]))
    assert second.pairs(0) == ((5, 0), (8, 3))
    assert third.pairs(0) == ((5, 0), (10, 2))  # it left before its parent did
    assert third.pairs(1) == ((4, 0), (9, 1), (11, 6))
    assert pairs_of(third.at(np.arange(8))[1]) == third.pairs(1)


def test_no_failure_gives_the_bound_of_the_roots() -> None:
    from apeval.estimate.binomial import clopper_pearson

    result = apeval.evaluate(apeval.make("never", steps=5), "splitting", steps=3_000, seed=0)
    assert result.estimate == 0.0
    assert not result.trusted
    roots = round(np.log(0.05) / np.log1p(-(result.detection_limit or 1.0)))
    assert result.interval == (0.0, pytest.approx(clopper_pearson(0, roots, 0.95)[1]))


def test_what_splitting_cannot_treat_is_refused_with_a_remedy() -> None:
    with pytest.raises(ApevalError, match="margin"):
        apeval.evaluate(apeval.make("discontinuous"), "splitting", steps=1_000)
    with pytest.raises(ApevalError, match="a single one"):
        apeval.evaluate(apeval.make("one-step"), "splitting", steps=1_000)


def test_certain_failure_is_plain_counting() -> None:
    result = apeval.evaluate(apeval.make("always"), "splitting", steps=2_000, seed=0)
    assert result.estimate == 1.0
    assert 0.9 < result.interval[0] < result.interval[1] == 1.0


def test_a_folder_keeps_all_of_it(tmp_path: Path) -> None:
    problem = apeval.make("ar1", threshold=8.0, steps=20)
    asked: dict[str, Any] = {"steps": 8_000, "seed": 2}
    result = apeval.evaluate(
        problem, "splitting", **asked, recorder=apeval.Recorder(tmp_path / "run")
    )
    run = apeval.load(tmp_path / "run")
    assert run.result.estimate == result.estimate
    assert run.sample.genealogy is not None
    assert run.episodes.trace is not None
    from apeval.results.failure_replay import replay_failure

    assert replay_failure(run, 1, run.problem()).outcome == "passed"
    wider = apeval.reweight(run, "std*1.05")
    assert wider.refused is not None or (wider.estimate or 0.0) > result.estimate
    other = apeval.InMemory(problem)
    apeval.evaluate(problem, "mc", steps=8_000, seed=3, recorder=other)
    merged = apeval.merge([run, other])
    assert merged.interval[0] < merged.estimate < merged.interval[1]


def test_a_second_opinion_has_its_part_of_the_budget_and_is_stored(tmp_path: Path) -> None:
    problem = apeval.make("ar1", threshold=6.0, steps=10)
    result = apeval.evaluate(
        problem, "mc", steps=10_000, seed=1, second_opinion=True,
        recorder=apeval.Recorder(tmp_path / "run"),
    )  # fmt: skip
    opinion = result.second_opinion
    assert opinion is not None
    assert 8_000 >= result.final.steps >= 7_900
    assert result.steps <= 10_000
    assert opinion.interval[0] <= opinion.estimate <= opinion.interval[1]
    assert opinion.agrees
    assert "second opinion" in str(result)
    run = apeval.load(tmp_path / "run")
    assert run.result.second_opinion == opinion
    assert run.episodes.trace is None
    assert run.learning is not None  # those of the second opinion do not count


def test_a_second_opinion_without_a_failure_confirms_nothing() -> None:
    problem = apeval.make("ar1")
    result = apeval.evaluate(problem, "mc", steps=5_000, seed=1, second_opinion=True)
    assert result.estimate == 0.0
    text = " ".join(str(result).split())
    assert "splitting saw no failure either, so nothing is confirmed" in text
    assert "agrees" not in text


def test_a_budget_that_is_left_is_told() -> None:
    """A pilot that comes to no failure makes particles look dear."""
    problem = apeval.make("gaussian-sum", beta=1.0, steps=4)
    result = apeval.evaluate(problem, "splitting", episodes=1_000, seed=0)
    left = 1_000 - result.episodes
    told = [text for text in result.warnings if "of the budget were not used" in text]
    assert len(told) == (left > 50)
    assert left > 50
    assert f"{left:,} of 1,000 episodes" in told[0]


def test_a_second_opinion_that_disagrees_is_said() -> None:
    other = SecondOpinion("splitting", 0.2, 1e-3, (5e-4, 2e-3), 40, 0.1, (0.05, 0.2), False)
    (note,) = opinion_notes(other)
    assert note.serious
    assert opinion_notes(replace(other, agrees=True)) == []
    with pytest.raises(ApevalError, match="no second opinion"):
        apeval.evaluate(apeval.make("one-step"), steps=1_000, second_opinion=True)
    with pytest.raises(ApevalError, match="first one here"):
        apeval.evaluate(apeval.make("ar1"), "splitting", steps=1_000, second_opinion=True)
