"""`evaluate`: from a problem to a number."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.estimate.interval import Estimate, estimate, stratified
from apeval.estimate.sample import Sample, join
from apeval.estimate.warnings import detection_limit, sample_warnings
from apeval.learn.method import Learner, find_method
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.problem.settings import build
from apeval.run.result import FinalStage, Result
from apeval.simulate.adversary import Mixture, Nominal
from apeval.simulate.episodes import Episodes
from apeval.simulate.replay import record
from apeval.simulate.simulation import Budget, Simulation

_RECORDS_KEPT = 100


@dataclass(frozen=True)
class Progress:
    """What a run shows while it works."""

    phase: str
    done: int
    total: int
    episodes: int
    failures: int
    estimate: float | None = None
    interval: tuple[float, float] | None = None


Listener = Callable[[Progress], None]


def default_method(problem: Problem) -> str:
    """The best method there is for the problem."""
    return "ape-tabular" if problem.table is not None else "mc"


def evaluate(
    problem: Problem,
    method: str | None = None,
    *,
    steps: int | None = None,
    episodes: int | None = None,
    seed: int = 0,
    confidence: float = 0.95,
    settings: Mapping[str, Any] | None = None,
    listener: Listener | None = None,
) -> Result:
    """Estimate the problem's failure probability within a budget.

    The budget (decisions of nature, or episodes) covers learning and estimating together.

    >>> from apeval.environments import make
    >>> result = evaluate(make("walk", top=5), steps=2_000, seed=0)
    >>> result.interval[0] < 0.0323 < result.interval[1]
    True
    """
    if not isinstance(problem, Problem):
        raise ApevalError(
            f"evaluate wants a Problem, got {type(problem).__name__}: apeval.make(name) builds one"
        )
    for what, number in (("steps", steps), ("episodes", episodes), ("seed", seed)):
        if number is not None and not isinstance(number, int | np.integer):
            raise ApevalError(f"{what} must be a whole number; got {number!r}")
    if seed is None or not isinstance(confidence, float):
        raise ApevalError("seed must be a whole number and confidence a number below 1")
    if not 0.0 < confidence < 1.0:
        raise ApevalError(f"confidence must lie strictly between 0 and 1; got {confidence}")
    if seed < 0:
        raise ApevalError(f"the seed must be a whole number ≥ 0; got {seed}")
    chosen = find_method(method or default_method(problem))
    reason = chosen.suits(problem)
    if reason:
        raise ApevalError(reason)
    config = build(chosen.config, settings or {})
    started = time.perf_counter()
    blind = problem.blind()
    simulation = Simulation(blind, make_key(seed), Budget(steps, episodes))
    learner = chosen.start(blind, config)
    _learn(learner, simulation, listener)
    final = run_frozen_stage(learner.proposal(), simulation, confidence, listener)
    return _result(problem, chosen.name, seed, config, learner, simulation, final, started)


@dataclass(frozen=True)
class Frozen:
    """The frozen stage's sample and estimate, and its first failures' records."""

    sample: Sample
    estimate: Estimate
    records: tuple[Mapping[str, Any], ...]


def _learn(learner: Learner, simulation: Simulation, listener: Listener | None) -> None:
    learning = True
    while learning:
        learning = learner.advance(simulation)
        _tell(listener, "learning", simulation, learner.value(), None)


def run_frozen_stage(
    proposal: Mixture, simulation: Simulation, confidence: float, listener: Listener | None = None
) -> Frozen:
    """Spend what is left of the budget on episodes from the frozen proposal."""
    samples: list[Sample] = []
    records: list[Mapping[str, Any]] = []
    position = 0
    simulation.begin_stage()
    while (n := min(simulation.problem.chunk, simulation.affordable())) > 0:
        batch = simulation.run(proposal, n, position)
        position += n
        samples.append(reduce(batch, proposal))
        for i in np.flatnonzero(batch.failed)[: _RECORDS_KEPT - len(records)]:
            kind = simulation.problem.kinds[int(batch.kind[i]) - 1]
            it = record(batch, int(i), simulation.key)
            records.append({"kind": kind, **it.as_json()})
        if listener:
            so_far = estimate(join(samples), confidence)
            _tell(listener, "estimating", simulation, so_far.value, so_far.interval)
    if not samples:
        raise ApevalError(
            f"the budget leaves no episode for the estimate ({simulation.steps:,} decisions "
            f"used, an episode may need {simulation.problem.longest:,}): raise it"
        )
    sample = join(samples)
    return Frozen(sample, estimate(sample, confidence), tuple(records))


def reduce(batch: Episodes, proposal: Mixture) -> Sample:
    """What the estimate needs of a batch: densities and outcomes."""
    return Sample(
        component=batch.component,
        log_p=batch.log_density(Nominal()),
        log_q=np.stack([batch.log_density(q) for q in proposal.components], axis=1),
        kind=batch.kind,
        unresolved=batch.unresolved,
        length=batch.length,
        margin=batch.margin,
    )


def _tell(
    listener: Listener | None,
    phase: str,
    simulation: Simulation,
    value: float | None,
    interval: tuple[float, float] | None,
) -> None:
    if listener is None:
        return
    budget = simulation.budget
    done, total = (
        (simulation.steps, budget.steps)
        if budget.steps is not None
        else (simulation.episodes, budget.episodes)
    )
    listener(
        Progress(phase, done, total or 0, simulation.episodes, simulation.failures, value, interval)
    )


def _result(
    problem: Problem,
    method: str,
    seed: int,
    config: Any,
    learner: Learner,
    simulation: Simulation,
    final: Frozen,
    started: float,
) -> Result:
    sample, numbers = final.sample, final.estimate
    failures = int(sample.failed.sum())
    w = sample.weights
    kinds = {
        name: stratified(sample, w * (sample.kind == k))[0]
        for k, name in enumerate(problem.kinds, start=1)
    }
    return Result(
        problem=problem.name,
        view=problem.view,
        method=method,
        seed=seed,
        settings=dataclasses.asdict(config),
        parameters=dict(problem.parameters),
        estimate=numbers.value,
        value=learner.value(),
        standard_error=numbers.standard_error,
        interval=numbers.interval,
        confidence=numbers.confidence,
        steps=simulation.steps,
        episodes=simulation.episodes,
        failures=simulation.failures,
        failure_rate=simulation.failures / simulation.episodes,
        final=FinalStage(
            int(sample.length.sum()), sample.n, failures, failures / sample.n, numbers.ess
        ),
        kinds=kinds,
        unresolved={
            "episodes": int(sample.unresolved.sum()),
            "probability": numbers.unresolved_mass,
        },
        detection_limit=detection_limit(sample, numbers.confidence),
        warnings=tuple(
            learner.warnings()
            + sample_warnings(sample, numbers, learner.value(), simulation.budget.in_words())
        ),
        seconds=time.perf_counter() - started,
        truth=None if problem.truth is None else problem.truth().value,
        curve=tuple(learner.curve()),
        records=final.records,
    )
