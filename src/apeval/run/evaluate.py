"""`evaluate`: from a problem to a number."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.estimate.diagnostics import detection_limit, diagnose
from apeval.estimate.explored import Explored
from apeval.estimate.interval import Estimate, bounds, probability
from apeval.estimate.sample import Sample
from apeval.estimate.tail import tail_curve
from apeval.estimate.target import Target
from apeval.estimate.verdict import check_bound
from apeval.estimate.warnings import Note, sample_warnings
from apeval.learn.method import Exploration, Learner, find_method
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.problem.settings import build
from apeval.run.answers import TargetAnswer, answer_below, answer_target, spending
from apeval.run.frozen import Frozen, reduce, run_frozen_stage
from apeval.run.modes import find_modes
from apeval.run.progress import Listener, Teller
from apeval.run.recorder import Outcome, Recorder
from apeval.run.result import FinalStage, Kind, Result
from apeval.simulate.adversary import Mixture
from apeval.simulate.check.door import explained
from apeval.simulate.simulation import Budget, Simulation

__all__ = ["default_method", "evaluate", "reduce", "run_frozen_stage"]

LONGEST = 1_000_000
"""Steps that a run with a target error and no budget may take."""
_STEPS_TO_LEARN, _EPISODES_TO_LEARN = 10_000, 3_000  # a target's run learns as for these


def default_method(problem: Problem) -> str:
    """The best method there is for the problem."""
    return "ape" if find_method("ape").suits(problem) is None else "mc"


def evaluate(
    problem: Problem,
    method: str | None = None,
    *,
    steps: int | None = None,
    episodes: int | None = None,
    target_error: float | None = None,
    below: float | None = None,
    seed: int = 0,
    confidence: float = 0.95,
    settings: Mapping[str, Any] | None = None,
    listener: Listener | None = None,
    recorder: Recorder | None = None,
) -> Result:
    """Estimate the problem's failure probability within a budget.

    The budget (decisions of nature, or episodes) covers learning and estimating together. With
    `target_error` the run ends as soon as the interval's half-width is at most that part of the
    estimate, and the budget is the most it may take (1,000,000 steps where none is given). With
    `below` the result says whether the probability is shown to lie below that bound. A `recorder`
    (`apeval.Recorder("runs/x")`) keeps every episode, the sample and the result in a run folder.

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
    target = None if target_error is None else Target(target_error)
    if below is not None:
        check_bound(below, confidence)
    if target is not None and steps is None and episodes is None:
        steps = LONGEST
    chosen = find_method(method or default_method(problem))
    reason = chosen.suits(problem)
    if reason:
        raise ApevalError(reason)
    config = build(chosen.config, settings or {})
    truth = problem.known_truth()
    started = time.perf_counter()
    blind = problem.blind()
    budget = Budget(steps, episodes)
    planned = budget if target is None else to_learn(budget, blind)
    simulation = Simulation(blind, make_key(seed), planned, journal=recorder)
    learner = chosen.start(blind, config)
    with explained(problem):
        _learn(learner, simulation, listener)
    left = None if target is None else simulation.affordable()
    simulation.budget = budget
    proposal = learner.proposal()
    counted = learner.counted()
    with explained(problem):
        frozen = run_frozen_stage(proposal, simulation, confidence, listener, target, counted, left)
    explored = _explored(learner.exploration(), proposal, frozen.sample)
    asked = _Asked(target, below, confidence)
    identity: dict[str, Any] = {
        "problem": problem.name,
        "view": problem.view,
        "method": chosen.name,
        "seed": seed,
        "settings": dataclasses.asdict(config),
        "parameters": dict(problem.parameters),
        "budget": {"episodes": episodes} if steps is None else {"steps": steps},
        "truth": None if truth is None else truth.value,
    }
    answer = _answer(learner, simulation, frozen, explored, asked)
    result = Result(**identity, **answer, seconds=time.perf_counter() - started)
    if recorder is not None:
        recorder.finish(Outcome(result, frozen.sample, frozen.ids, proposal))
    return result


@dataclasses.dataclass(frozen=True)
class _Asked:
    """What the user wants to know."""

    target: Target | None
    below: float | None
    confidence: float

    @property
    def level(self) -> float:
        """The confidence of a single look at the sample."""
        return self.confidence if self.target is None else self.target.confidence(self.confidence)


def to_learn(budget: Budget, problem: Problem) -> Budget:
    """How much a run that may end early plans for: learning must not grow with its upper limit."""
    if budget.steps is None:
        return Budget(episodes=min(budget.episodes or 1, _EPISODES_TO_LEARN))
    enough = max(_STEPS_TO_LEARN, _EPISODES_TO_LEARN * min(problem.horizon or 1, 100) // 10)
    return Budget(steps=min(budget.steps, enough))


def _learn(learner: Learner, simulation: Simulation, listener: Listener | None) -> None:
    teller = Teller(listener, simulation)
    teller.tell(learner.phase())
    learning = True
    while learning:
        learning = learner.advance(simulation)
        teller.tell(learner.phase(), learner.value())


def _explored(found: Exploration | None, proposal: Mixture, sample: Sample) -> Explored | None:
    """Learning's failures, with the weights that the frozen stage would have given them."""
    if found is None:
        return None
    again = reduce(found.episodes, proposal)
    failed = again.failed
    counts = sample.counts[-len(proposal.components) :]
    with np.errstate(divide="ignore"):
        log_share = np.log(counts / counts.sum())
    log_q = np.logaddexp.reduce(again.log_q + log_share, axis=1)
    log_frozen = again.log_p - log_q
    return Explored(again.kind[failed], found.log_weights[failed], log_frozen[failed], found.drawn)


def _answer(
    learner: Learner,
    simulation: Simulation,
    frozen: Frozen,
    explored: Explored | None,
    asked: _Asked,
) -> dict[str, Any]:
    sample, numbers, kinds = frozen.sample, frozen.estimate, simulation.problem.kinds
    failures = int(sample.failed.sum())
    spent = spending(simulation, frozen)
    target = None if asked.target is None else answer_target(asked.target, frozen, spent)
    findings = diagnose(sample, numbers, explored)
    notes = [Note(text, serious=False) for text in learner.warnings()] + _target_note(target)
    notes += sample_warnings(sample, numbers, learner.value(), simulation.budget, findings, kinds)
    notes.sort(key=lambda note: not note.serious)
    return {
        "estimate": numbers.value,
        "value": learner.value(),
        "value_function": learner.value_function(numbers.value),
        "standard_error": numbers.standard_error,
        "interval": numbers.interval,
        "confidence": numbers.confidence,
        "monte_carlo_episodes": _worth(numbers),
        "target": target,
        "below": None
        if asked.below is None
        else answer_below(asked.below, frozen, asked.level, spent),
        "steps": simulation.steps,
        "episodes": simulation.episodes,
        "failures": simulation.failures,
        "failure_rate": simulation.failures / simulation.episodes,
        "final": FinalStage(
            int(sample.length.sum()), sample.n, failures, failures / sample.n, numbers.ess
        ),
        "kinds": {name: _kind(sample, k, asked.level) for k, name in enumerate(kinds, start=1)},
        "modes": find_modes(frozen.failures, sample, asked.level),
        "tail": tail_curve(sample, asked.level),
        "unresolved": {
            "episodes": int(sample.unresolved.sum()),
            "probability": numbers.unresolved_mass,
        },
        "detection_limit": detection_limit(sample, numbers.confidence),
        "diagnostics": findings.numbers,
        "trusted": not any(note.serious for note in notes),
        "warnings": tuple(note.text for note in notes),
        "curve": tuple(learner.curve()),
        "records": frozen.records,
    }


def _kind(sample: Sample, kind: int, confidence: float) -> Kind:
    hit = np.asarray(sample.kind == kind)
    return Kind(probability(sample, hit), bounds(sample, hit, confidence), int(hit.sum()))


def _worth(numbers: Estimate) -> float | None:
    """Episodes after which Monte Carlo would have the same standard error."""
    if not 0.0 < numbers.value < 1.0 or numbers.standard_error <= 0.0:
        return None
    return numbers.value * (1.0 - numbers.value) / numbers.standard_error**2


def _target_note(target: TargetAnswer | None) -> list[Note]:
    if target is None or target.met or target.budget is None or target.reached is None:
        return []
    return [
        Note(
            f"the budget ended at ± {target.reached:.0%}, before the wanted ± {target.error:.0%}: "
            f"raise --{target.unit} to about {target.budget:,}",
            serious=False,
        )
    ]
