"""`evaluate`: from a problem to a number."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from apeval import validate
from apeval.environments import find_entry
from apeval.estimate.diagnostics import detection_limit, diagnose
from apeval.estimate.explored import Explored
from apeval.estimate.interval import bounds, probability
from apeval.estimate.plain_monte_carlo import worth
from apeval.estimate.sample import Sample
from apeval.estimate.tail import tail_curve
from apeval.estimate.warnings import joined, sample_warnings, unconverged
from apeval.learn.method import Exploration, Learner
from apeval.plugins import is_ours
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.remedies import Note, Option
from apeval.run.changed_meanwhile import RESTLESS, changed_meanwhile
from apeval.run.failure_modes import find_modes
from apeval.run.frozen_stage import FrozenStage, run_frozen_stage
from apeval.run.interrupt import interrupts
from apeval.run.population_stage import population_notes
from apeval.run.progress import Listener, ProgressReporter
from apeval.run.reduction import reduce
from apeval.run.request import Request, request
from apeval.run.result import FinalStage, Kind, Result
from apeval.run.run_options import RunKeywords, RunOptions, check_names, with_options
from apeval.run.run_recorder import IDENTITY, FinishedRun, RunRecorder
from apeval.run.second_opinion import SecondOpinion, ask, first_part, opinion_notes
from apeval.run.target_answers import TargetAnswer, answer_below, answer_target, spending
from apeval.run.threads import one_thread
from apeval.run.wider_than_counting import wider_note
from apeval.simulate.adversary import Mixture
from apeval.simulate.audit import SECONDS, SHARE, Kept
from apeval.simulate.backends import Backend, find_backend
from apeval.simulate.backends.serial import Serial
from apeval.simulate.check.precheck import explained, look, refuse
from apeval.simulate.episode_source import EpisodeSource, RunStoppedError
from apeval.simulate.identity.identity import changes_by_itself, holds_users_code, identify
from apeval.simulate.identity.reference import Reference
from apeval.simulate.isolation import look_apart
from apeval.simulate.simulation import Budget, Simulation

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "comes_with_apeval",
    "evaluate",
    "evaluate_with",
    "reduce",
    "run_frozen_stage",
    "to_learn",
]

_STEPS_TO_LEARN, _EPISODES_TO_LEARN = 10_000, 3_000  # a target's run learns as for these


@with_options(RunKeywords)
def evaluate(
    problem: Problem,
    method: str | None = None,
    *,
    listener: Listener | None = None,
    recorder: RunRecorder | None = None,
    **options: Unpack[RunKeywords],
) -> Result:
    """Estimate the problem's failure probability within a budget.

    Args:
        problem: What to evaluate.
        method: The name of a method; by default the best there is for the problem.
        listener: Is told the run's `Progress` after every batch.
        recorder: Keeps every episode, the sample and the result: `apeval.Recorder("runs/x")` in a
            folder, `apeval.InMemory(problem)` in memory.
        **options: How long the run is (`steps` or `episodes`, `target_error`), what it is asked
            (`below`, `confidence`), its `seed`, who simulates, and more: see `RunKeywords`.

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
    check_names(options, RunKeywords)
    return evaluate_with(problem, RunOptions(method, **options), listener, recorder)


def evaluate_with(
    problem: Problem,
    options: RunOptions,
    listener: Listener | None,
    recorder: RunRecorder | None,
    notes: Sequence[Note] = (),
) -> Result:
    """`evaluate` with options that are put together already, and remarks that are known before."""
    asked = request(problem, options)
    chosen = find_backend(options.backend, options.workers, options.address)
    if recorder is not None:
        what = "what keeps a run: an apeval.Recorder or an apeval.InMemory"
        validate.having("recorder", recorder, what, "begin", "recorded", "batch", "close")
    try:
        with one_thread():
            first: list[Kept] = []
            said: list[Note] = []
            identity = identify(asked.problem, lambda: _asked(asked, chosen, first, said))
            with interrupts(options.on_interrupt) as stop:
                blind, key = asked.problem.blind(), make_key(options.seed)
                source = EpisodeSource(blind, key, chosen, recorder, options.faults, stop)
                source.audit.first += first
                try:
                    with explained(asked.problem):
                        known = [*notes, *said]
                        return _conduct(asked, identity, source, listener, recorder, known)
                finally:
                    try:
                        source.flush()
                    finally:
                        source.close()
    finally:
        if recorder is not None:
            recorder.close()


def comes_with_apeval(problem: Problem) -> bool:
    """A problem that comes with apeval, as it comes: it has its tests."""
    entry = find_entry(problem.name)
    ours = entry is not None and is_ours(entry.factory.__module__)
    return ours and not holds_users_code(problem)


def _asked(
    asked: Request, backend: Backend, first: list[Kept], said: list[Note]
) -> Reference | None:
    """What the problem does, after a look for mistakes. It is not asked where the user does not
    want it, or where it may raise, hang or die; with workers, it is asked in a process of its
    own. Decisions that are to be repeated after the run are put into `first`, remarks into
    `said`."""
    problem, ours = asked.problem, comes_with_apeval(asked.problem)
    if not asked.options.check:
        return None
    apart = not isinstance(backend, Serial) and not ours
    if apart and changes_by_itself(problem):
        refuse(problem, f"repeatable: {RESTLESS}.")
    if asked.options.faults.expected:
        return None
    key = make_key(asked.options.seed)
    looked = look_apart(problem, key, check=True) if apart else look(problem, key, check=not ours)
    if looked is None:
        return None
    refuse(problem, looked.bad)
    first += looked.first
    if looked.undisturbed is not None:
        said.append(Note(looked.undisturbed, serious=False))
    return looked.answers


def _conduct(
    asked: Request,
    identity: Mapping[str, Any],
    source: EpisodeSource,
    listener: Listener | None,
    recorder: RunRecorder | None,
    notes: Sequence[Note],
) -> Result:
    """Learn, freeze, estimate, answer."""
    started = time.perf_counter()
    if recorder is not None:
        recorder.begin({**asked.as_json(), IDENTITY: identity})
    options, problem = asked.options, source.problem
    budget, target = options.budget, options.target
    whole = budget
    budget = first_part(whole) if options.second_opinion else whole
    planned = budget if target is None else to_learn(budget, problem)
    simulation = Simulation(problem, source.key, planned, source=source)
    learner = asked.method.start(problem, asked.config)
    if not _learn(learner, simulation, listener) and recorder is not None:
        recorder.detour()
    left = None if target is None else simulation.affordable()
    simulation.budget = budget
    proposal = learner.proposal()
    frozen = run_frozen_stage(
        proposal, simulation, options.confidence, listener, target, learner.counted(), left,
        options.estimator, learner.populations(),
    )  # fmt: skip
    explored = _explored(learner.exploration(), proposal, frozen.sample)
    simulation.budget = whole
    opinion = None
    if options.second_opinion and not frozen.interrupted:
        opinion = ask(simulation, frozen.sample, options.confidence, target is not None)
    differs = _not_repeated(asked, identity, source, time.perf_counter() - started)
    answer = _answer(learner, simulation, frozen, explored, asked, [*notes, *differs], opinion)
    truth = asked.problem.known_truth()
    seconds = time.perf_counter() - started
    known = (None, 0.0) if truth is None else (truth.value, truth.standard_error)
    memory = asked.problem.policy_memory
    result = Result(
        **asked.identity(), truth=known[0], truth_error=known[1], **answer, seconds=seconds,
        policy_memory=memory,
    )  # fmt: skip
    if recorder is not None:
        recorder.finish(FinishedRun(result, frozen.sample, frozen.ids, proposal))
    return result


def to_learn(budget: Budget, problem: Problem) -> Budget:
    """How much a run that may end early plans for: learning must not grow with its upper limit."""
    if budget.steps is None:
        return Budget(episodes=min(budget.episodes or 1, _EPISODES_TO_LEARN))
    enough = max(_STEPS_TO_LEARN, _EPISODES_TO_LEARN * min(problem.horizon or 1, 100) // 10)
    return Budget(steps=min(budget.steps, enough))


def _learn(learner: Learner, simulation: Simulation, listener: Listener | None) -> bool:
    """Whether learning came to its own end, before anybody asked to stop."""
    teller = ProgressReporter(listener, simulation)
    teller.tell(learner.phase())
    try:
        while learner.advance(simulation):
            teller.tell(learner.phase(), learner.value())
            simulation.pause()
    except RunStoppedError:
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
    frozen: FrozenStage,
    explored: Explored | None,
    asked: Request,
    known: list[Note],
    opinion: SecondOpinion | None,
) -> dict[str, Any]:
    sample, numbers, kinds = frozen.sample, frozen.estimate, simulation.problem.kinds
    failures, wanted, below = int(sample.failed.sum()), asked.options.target, asked.options.below
    spent = spending(simulation, frozen, wanted)
    target = None if wanted is None else answer_target(wanted, frozen, spent)
    findings = diagnose(sample, numbers, explored)
    basis, budget = learner.basis(), simulation.budget
    notes = [] if basis is None else unconverged(numbers, basis.what, basis.value)
    value = None if notes else learner.value()  # said already
    notes = known + notes + learner.warnings() + opinion_notes(opinion)
    notes += population_notes(frozen.populations)
    notes += _interrupted_note(frozen, simulation) or _target_note(target, budget)
    notes += sample_warnings(sample, numbers, value, budget, findings, kinds)
    notes += wider_note(asked.problem, asked.method.name, simulation, frozen)
    notes = joined(notes, budget, target.error if target is not None and target.met else None)
    return {
        "estimate": numbers.value,
        "value": learner.value(),
        "value_function": learner.value_function(numbers.value),
        "standard_error": numbers.standard_error,
        "interval": numbers.interval,
        "confidence": numbers.confidence,
        "monte_carlo_episodes": worth(numbers),
        "target": target,
        "below": None
        if below is None
        else answer_below(below, sample, numbers, asked.level, spent),
        "steps": simulation.steps,
        "episodes": simulation.episodes,
        "failures": simulation.failures,
        "failure_rate": simulation.failures / simulation.episodes,
        "final": FinalStage(
            steps=sample.steps,
            episodes=sample.n,
            failures=failures,
            failure_rate=failures / sample.n,
            ess=numbers.ess,
            ended_by_roulette=frozen.ended_by_roulette,
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
        "checked": asked.options.check,
        "second_opinion": opinion,
        "curve": tuple(learner.curve()),
        "records": frozen.records,
    }


def _kind(sample: Sample, kind: int, confidence: float) -> Kind:
    hit = np.asarray(sample.kind == kind)
    return Kind(probability(sample, hit), bounds(sample, hit, confidence), int(hit.sum()))


def _not_repeated(
    asked: Request, identity: Mapping[str, Any], source: EpisodeSource, seconds: float
) -> list[Note]:
    """Whether episodes of the run come out the same once more; where nobody looks, it is said."""
    if not asked.options.check:
        unchecked = Option("check", False)
        text = f"the problem was not checked ({unchecked}): nobody has looked whether it repeats"
        return [Note(f"{text} itself", serious=False)]
    if comes_with_apeval(asked.problem):
        return []
    differs = source.repeats(max(SECONDS, SHARE * seconds))
    if differs is None:
        apart = not isinstance(source.backend, Serial)
        return changed_meanwhile(asked.problem, identity, source) if apart else []
    return [
        Note(
            f"the simulation does not repeat itself: simulated once more, {differs}. Something is "
            "kept between episodes (in the policy, the simulator, a view or the margin), or comes "
            "from the clock, from other episodes or from random numbers other than `draws`; the "
            "number cannot be trusted"
        )
    ]


def _interrupted_note(frozen: FrozenStage, simulation: Simulation) -> list[Note]:
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
