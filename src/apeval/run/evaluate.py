"""`evaluate`: from a problem to a number."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from apeval import validate
from apeval.environments import find_entry
from apeval.estimate.diagnostics import detection_limit, diagnose
from apeval.estimate.explored import Explored
from apeval.estimate.interval import Estimate, bounds, probability
from apeval.estimate.sample import AUTO, Sample
from apeval.estimate.tail import tail_curve
from apeval.estimate.warnings import joined, sample_warnings, unconverged
from apeval.learn.method import Exploration, Learner
from apeval.plugins import is_ours
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.remedies import Note, Option
from apeval.run.answers import TargetAnswer, answer_below, answer_target, spending
from apeval.run.frozen import Frozen, reduce, run_frozen_stage
from apeval.run.interrupt import interrupts
from apeval.run.modes import find_modes
from apeval.run.progress import Listener, Teller
from apeval.run.recorder import IDENTITY, Outcome, Recorder
from apeval.run.request import LONGEST, Request, default_method, request
from apeval.run.result import FinalStage, Kind, Result
from apeval.run.threads import one_thread
from apeval.simulate.adversary import Mixture
from apeval.simulate.audit import SECONDS, SHARE, Kept
from apeval.simulate.backends import Backend, find_backend
from apeval.simulate.backends.serial import Serial
from apeval.simulate.check.door import explained, look, refuse
from apeval.simulate.faults import Policy
from apeval.simulate.identity.identity import holds_users_code, identify
from apeval.simulate.identity.reference import Reference
from apeval.simulate.isolate import look_apart
from apeval.simulate.simulation import Budget, Simulation
from apeval.simulate.source import Source, StoppedError

__all__ = ["LONGEST", "default_method", "evaluate", "reduce", "run_frozen_stage"]

_STEPS_TO_LEARN, _EPISODES_TO_LEARN = 10_000, 3_000  # a target's run learns as for these


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
    backend: str | Backend = "serial",
    workers: int | None = None,
    address: str | None = None,
    block: int | None = None,
    on_fault: str = "stop",
    retries: int = 1,
    time_limit: float | None = None,
    on_interrupt: str = "raise",
    check: bool = True,
    estimator: str = AUTO,
) -> Result:
    """Estimate the problem's failure probability within a budget.

    A simulator that raises, dies, returns values that are not finite or takes too long is tried
    again with the same random numbers; then `on_fault` decides.

    Args:
        problem: What to evaluate.
        method: The name of a method; by default the best there is for the problem.
        steps: The budget in decisions of nature, for learning and estimating together.
        episodes: The budget in episodes, instead of `steps`.
        target_error: The run ends as soon as the interval's half-width is at most this part of the
            estimate; the budget is then the most it may take (1,000,000 steps where none is given).
        below: The result says whether the probability is shown to lie below this bound.
        seed: Of all random numbers. Below 1,000 for tuning, from 10,000 on for reporting.
        confidence: Of every interval.
        settings: Settings of the method that differ from its defaults.
        listener: Is told the run's `Progress` after every batch.
        recorder: Keeps every episode, the sample and the result: `apeval.Recorder("runs/x")` in a
            folder, `apeval.InMemory(problem)` in memory.
        backend: Who simulates: "serial", "processes" or "ray". The result does not depend on it.
        workers: How many processes or Ray workers; by default one per core.
        address: Of a Ray cluster; by default an embedded one is started.
        block: Episodes that a worker simulates together, by default `problem.chunk`.
        on_fault: What happens to an episode that does not come back: "stop" ends the run,
            "unresolved" counts it as unresolved.
        retries: How often an episode is tried again.
        time_limit: Seconds that an episode may take; needs workers.
        on_interrupt: What a first Ctrl-C does: "raise", or "finish", which ends the run early with
            a valid smaller result.
        estimator: How the interval is made: "auto" (what fits how the episodes were drawn),
            "log-t", "weighted-count", or one of your own. The estimate is the same with all.
        check: Whether a problem that is not apeval's own is looked over before the run (refused
            with a remedy where it would give a wrong number; not where `on_fault` or `time_limit`
            expect it to raise or hang), and episodes of the run are simulated once more after it: a
            result whose episodes do not repeat themselves is not trusted. Both take at most 2
            seconds or 2 % of the run together, or what single decisions and episodes take where
            these are slower.

    Returns:
        The estimate with its interval, and what it rests on.

    Raises:
        ApevalError: An argument is wrong, or the method does not treat the problem.
        ProblemError: The problem would give a wrong number.
        SimulationError: The simulator failed, and `on_fault` is "stop".

    Examples:
        >>> from apeval.environments import make
        >>> result = evaluate(make("walk", top=5), steps=2_000, seed=0)
        >>> result.interval[0] < 0.0323 < result.interval[1]
        True
    """
    asked = request(
        problem,
        method,
        steps=steps,
        episodes=episodes,
        target_error=target_error,
        below=below,
        seed=seed,
        confidence=confidence,
        settings=settings,
        block=block,
        faults=Policy(on_fault, retries, time_limit),
        check=check,
        estimator=estimator,
    )
    hiring = find_backend(backend, workers, address)
    if recorder is not None:
        what = "what keeps a run: an apeval.Recorder or an apeval.InMemory"
        validate.having("recorder", recorder, what, "begin", "recorded", "batch", "close")
    try:
        with one_thread():
            first: list[Kept] = []
            identity = identify(asked.problem, lambda: _asked(asked, hiring, first))
            with interrupts(on_interrupt) as stop:
                blind = asked.problem.blind()
                source = Source(blind, make_key(asked.seed), hiring, recorder, asked.faults, stop)
                source.audit.first += first
                try:
                    with explained(asked.problem):
                        return _conduct(asked, identity, source, listener, recorder)
                finally:
                    try:
                        source.flush()
                    finally:
                        source.close()
    finally:
        if recorder is not None:
            recorder.close()


def _is_ours(problem: Problem) -> bool:
    """A problem that comes with apeval, as it comes: it has its tests."""
    entry = find_entry(problem.name)
    ours = entry is not None and is_ours(entry.factory.__module__)
    return ours and not holds_users_code(problem)


def _asked(asked: Request, backend: Backend, first: list[Kept]) -> Reference | None:
    """What the problem does, after a look for mistakes. It is not asked where the user does not
    want it, or where it may raise, hang or die; with workers, it is asked in a process of its
    own. Decisions that are to be repeated after the run are put into `first`."""
    problem, ours = asked.problem, _is_ours(asked.problem)
    if not asked.check or asked.faults.expected:
        return None
    apart = not isinstance(backend, Serial) and not ours
    key = make_key(asked.seed)
    looked = look_apart(problem, key, check=True) if apart else look(problem, key, check=not ours)
    if looked is None:
        return None
    refuse(problem, looked.bad)
    first += looked.first
    return looked.answers


def _conduct(
    asked: Request,
    identity: Mapping[str, Any],
    source: Source,
    listener: Listener | None,
    recorder: Recorder | None,
) -> Result:
    """Learn, freeze, estimate, answer."""
    started = time.perf_counter()
    if recorder is not None:
        recorder.begin({**asked.as_json(), IDENTITY: identity})
    problem, budget, target = source.problem, asked.budget, asked.target
    planned = budget if target is None else to_learn(budget, problem)
    simulation = Simulation(problem, source.key, planned, source=source)
    learner = asked.method.start(problem, asked.config)
    if not _learn(learner, simulation, listener) and recorder is not None:
        recorder.detour()
    left = None if target is None else simulation.affordable()
    simulation.budget = budget
    proposal = learner.proposal()
    frozen = run_frozen_stage(
        proposal, simulation, asked.confidence, listener, target, learner.counted(), left,
        asked.estimator,
    )  # fmt: skip
    explored = _explored(learner.exploration(), proposal, frozen.sample)
    differs = _not_repeated(asked, source, time.perf_counter() - started)
    answer = _answer(learner, simulation, frozen, explored, asked, differs)
    truth = asked.problem.known_truth()
    seconds = time.perf_counter() - started
    known = None if truth is None else truth.value
    result = Result(**asked.identity(), truth=known, **answer, seconds=seconds)
    if recorder is not None:
        recorder.finish(Outcome(result, frozen.sample, frozen.ids, proposal))
    return result


def to_learn(budget: Budget, problem: Problem) -> Budget:
    """How much a run that may end early plans for: learning must not grow with its upper limit."""
    if budget.steps is None:
        return Budget(episodes=min(budget.episodes or 1, _EPISODES_TO_LEARN))
    enough = max(_STEPS_TO_LEARN, _EPISODES_TO_LEARN * min(problem.horizon or 1, 100) // 10)
    return Budget(steps=min(budget.steps, enough))


def _learn(learner: Learner, simulation: Simulation, listener: Listener | None) -> bool:
    """Whether learning came to its own end, before anybody asked to stop."""
    teller = Teller(listener, simulation)
    teller.tell(learner.phase())
    try:
        while learner.advance(simulation):
            teller.tell(learner.phase(), learner.value())
            simulation.pause()
    except StoppedError:
        return False
    teller.tell(learner.phase(), learner.value())
    return True


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
    asked: Request,
    differs: list[Note],
) -> dict[str, Any]:
    sample, numbers, kinds = frozen.sample, frozen.estimate, simulation.problem.kinds
    failures = int(sample.failed.sum())
    spent = spending(simulation, frozen, asked.target)
    target = None if asked.target is None else answer_target(asked.target, frozen, spent)
    findings = diagnose(sample, numbers, explored)
    basis, budget = learner.basis(), simulation.budget
    notes = [] if basis is None else unconverged(numbers, basis.what, basis.value)
    value = None if notes else learner.value()  # said already
    notes = differs + notes + learner.warnings()
    notes += _interrupted_note(frozen, simulation) or _target_note(target, budget)
    notes += sample_warnings(sample, numbers, value, budget, findings, kinds)
    notes = joined(notes, budget, target.error if target is not None and target.met else None)
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
            steps=int(sample.length.sum()),
            episodes=sample.n,
            failures=failures,
            failure_rate=failures / sample.n,
            ess=numbers.ess,
            given_up=frozen.given_up,
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
        "interrupted": frozen.interrupted,
        "checked": asked.check,
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


def _not_repeated(asked: Request, source: Source, seconds: float) -> list[Note]:
    """Whether episodes of the run come out the same once more; where nobody looks, it is said."""
    if not asked.check:
        unchecked = Option("check", False)
        text = f"the problem was not checked ({unchecked}): nobody has looked whether it repeats"
        return [Note(f"{text} itself", serious=False)]
    if _is_ours(asked.problem):
        return []
    differs = source.repeats(max(SECONDS, SHARE * seconds))
    if differs is None:
        return []
    return [
        Note(
            f"the simulation does not repeat itself: simulated once more, {differs}. Something is "
            "kept between episodes (in the policy, the simulator, a view or the margin), or comes "
            "from the clock, from other episodes or from random numbers other than `draws`; the "
            "number cannot be trusted"
        )
    ]


def _interrupted_note(frozen: Frozen, simulation: Simulation) -> list[Note]:
    if not frozen.interrupted:
        return []
    return [
        Note(
            f"the run was stopped after {simulation.steps:,} decisions, before its budget of "
            f"{simulation.budget.in_words()} was spent: the interval is wider than it would be",
            serious=False,
        )
    ]


def _target_note(target: TargetAnswer | None, budget: Budget) -> list[Note]:
    if target is None or target.met or target.budget is None or target.reached is None:
        return []
    return [
        Note(
            f"the budget ended at ± {target.reached:.0%}, before the wanted ± {target.error:.0%}",
            serious=False,
            more=target.budget / (budget.steps or budget.episodes or 1),
        )
    ]
