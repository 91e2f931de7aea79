"""Two policies against the same disturbances: episodes in pairs, with common random numbers."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apeval.errors import ApevalError
from apeval.estimate.diagnostics import diagnose
from apeval.estimate.interval import Estimate, estimate
from apeval.estimate.paired import compare_pairs
from apeval.estimate.sample import Sample
from apeval.estimate.warnings import sample_warnings
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.run.evaluate import comes_with_apeval
from apeval.run.paired_record import PairedRecord
from apeval.run.paired_stage import Arms, common_proposal
from apeval.run.pairing import ControlArm, Pairing
from apeval.run.policy_comparison import PolicyComparison, equal_laws, numbers
from apeval.run.request import Request, request
from apeval.run.run_options import (
    RAISE,
    ComparisonKeywords,
    RunOptions,
    check_names,
    with_options,
)
from apeval.run.threads import one_thread
from apeval.simulate.adversary import Mixture
from apeval.simulate.audit import SECONDS, SHARE
from apeval.simulate.backends import Backend, find_backend
from apeval.simulate.check.precheck import explained, require_sound
from apeval.simulate.episode_source import EpisodeSource
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Budget, Simulation

if TYPE_CHECKING:
    from typing_extensions import Unpack

_LEARNING = 0.25  # of the budget, for each policy: half of it is left for pairs
_LEARNED_A, _LEARNED_B, _PAIRED = 1, 2, 3  # of the seed's streams
_MUST_AGREE = {
    "horizon": "horizons",
    "kinds": "kinds of failure",
    "horizon_kind": "failures at the horizon",
    "judge_at_end": "times at which failure is judged",
}


@with_options(ComparisonKeywords)
def compare_policies(
    a: Problem, b: Problem, method: str | None = None, **options: Unpack[ComparisonKeywords]
) -> PolicyComparison:
    """Simulate two policies against the same disturbances, and compare how often they fail.

    An adversary is learned for each policy. Then episodes are drawn in pairs from the mixture of
    both, frozen: the two episodes of a pair have the same random numbers, so that they meet the
    same disturbances as long as they are in the same states. What the policies have in common drops
    out of the ratio and of the difference. A control arm tells how they fare without disturbances.

    Args:
        a: The problem with policy A.
        b: The same problem with policy B: nothing else may differ.
        method: What learns, by name; by default the best there is for each.
        **options: The budget of both together (`steps` or `episodes`), the `seed`, the
            `confidence`, who simulates, and more: see `ComparisonKeywords`.

    Returns:
        The verdict, with intervals that use the pairs; `pairing` says what it rests on.

    Raises:
        ApevalError: An argument is wrong, or the problems do not have the same disturbances.
        ProblemError: A problem would give a wrong number.
        SimulationError: A simulator failed, and `on_fault` is "stop".

    Examples:
        >>> import apeval
        >>> old, new = (apeval.make("one-step", beta=beta) for beta in (3.0, 3.1))
        >>> compare_policies(old, new, episodes=1_000, seed=1).verdict
        'more often'
    """
    check_names(options, ComparisonKeywords)
    run = _PairedRun.begin(a, b, RunOptions(method, **options))
    try:
        *_, samples = run.looks()
        return run.answer(*samples, run.not_repeated())
    finally:
        run.arms.close()


@with_options(ComparisonKeywords)
def compare_anytime(
    a: Problem, b: Problem, method: str | None = None, **options: Unpack[ComparisonKeywords]
) -> Iterator[PolicyComparison]:
    """`compare_policies` look by look, with intervals that hold at all looks at once.

    Stop whenever you like, for whatever reason, such as a verdict: the intervals stay valid. They
    are an asymptotic confidence sequence (Waudby-Smith et al., 2024), about 1.7 times as wide as
    the interval of a single look, and say nothing before both policies have 20 effective failures.

    Args:
        a: The problem with policy A.
        b: The same problem with policy B: nothing else may differ.
        method: What learns, by name; by default the best there is for each.
        **options: As for `compare_policies`; the budget is the most that it may take.

    Returns:
        An iterator over the comparison so far, look by look until the budget is spent.

    Raises:
        ApevalError: An argument is wrong, or the problems do not have the same disturbances.
        ProblemError: A problem would give a wrong number.
        SimulationError: A simulator failed, and `on_fault` is "stop".

    Examples:
        >>> import apeval
        >>> old, new = (apeval.make("one-step", beta=beta) for beta in (3.0, 3.2))
        >>> for found in compare_anytime(old, new, episodes=2_000, seed=1):
        ...     if found.verdict != "undecided":
        ...         break
        >>> found.verdict, found.pairing.episodes < 2_000
        ('more often', True)
    """
    check_names(options, ComparisonKeywords)
    run = _PairedRun.begin(a, b, RunOptions(method, **options))
    planned = run.arms.expected()
    doubts: list[str] | None = None
    try:
        for samples in run.looks():
            doubts = run.not_repeated() if doubts is None else doubts
            yield run.answer(*samples, doubts, planned)
    finally:
        run.arms.close()


def paired_samples(
    a: Problem, b: Problem, method: str | None = None, **options: Unpack[ComparisonKeywords]
) -> tuple[Sample, Sample]:
    """What `compare_policies` compares: the episodes of both in pairs, reduced to their weights."""
    run = _PairedRun.begin(a, b, RunOptions(method, **options))
    try:
        *_, samples = run.looks()
        return samples
    finally:
        run.arms.close()


@dataclass
class _PairedRun:
    """Both adversaries learned, the control arm simulated, pairs to come."""

    options: RunOptions
    asked: tuple[Request, Request]
    arms: Arms
    proposal: Mixture
    learning: tuple[int, int]
    """Decisions and episodes that learning took."""
    control: ControlArm
    differences: list[str]
    started: float

    @staticmethod
    def begin(a: Problem, b: Problem, options: RunOptions) -> _PairedRun:
        started = time.perf_counter()
        if options.on_interrupt != RAISE:
            raise ApevalError(
                "a comparison that may be stopped early is `apeval.compare_anytime`: Ctrl-C raises"
            )
        share = options.budget.share(_LEARNING)
        learning = dataclasses.replace(options, steps=share.steps, episodes=share.episodes)
        asked = request(a, learning), request(b, learning)
        _refuse_different(a, b)
        backend = find_backend(options.backend, options.workers, options.address)
        for it in asked:
            if options.check and not options.faults.expected and not comes_with_apeval(it.problem):
                require_sound(it.problem)
        with _in_order(*asked):
            one = _learn(asked[0], backend, make_key(options.seed, _LEARNED_A))
            other = _learn(asked[1], backend, make_key(options.seed, _LEARNED_B))
        steps, episodes = one[1].steps + other[1].steps, one[1].episodes + other[1].episodes
        arms = Arms(
            (asked[0].problem.blind(), asked[1].problem.blind()),
            make_key(options.seed, _PAIRED),
            backend,
            options.faults,
            _rest(options.budget, steps, episodes),
        )
        try:
            with _in_order(*asked):
                pair = arms.undisturbed()
        except BaseException:
            arms.close()
            raise
        return _PairedRun(
            options=options,
            asked=asked,
            arms=arms,
            proposal=common_proposal(one[0], other[0]),
            learning=(steps, episodes),
            control=ControlArm(pair[0].n, int(pair[0].failed.sum()), int(pair[1].failed.sum())),
            differences=_differences(a, b, *pair),
            started=started,
        )

    def looks(self) -> Iterator[tuple[Sample, Sample]]:
        """Both samples so far, again and again."""
        pairs = self.arms.pairs(self.proposal)
        while True:
            with _in_order(*self.asked):
                samples = next(pairs, None)
            if samples is None:
                return
            yield samples

    def not_repeated(self) -> list[str]:
        """Whether episodes come out the same once more."""
        if not self.options.check:
            return []
        seconds = max(SECONDS, SHARE * (time.perf_counter() - self.started))
        return [
            f"the simulation of {name} does not repeat itself: simulated once more, {differs}; the "
            "comparison cannot be trusted"
            for name, it, source in zip("AB", self.asked, self.arms.sources, strict=True)
            if not comes_with_apeval(it.problem) and (differs := source.repeats(seconds))
        ]

    def answer(
        self, a: Sample, b: Sample, doubts: list[str], planned: int | None = None
    ) -> PolicyComparison:
        """The comparison of two samples in pairs; at any time where `planned` is given."""
        confidence, estimator = self.options.confidence, self.asked[0].options.estimator
        a, b = (dataclasses.replace(it, estimator=estimator) for it in (a, b))
        found = compare_pairs(a, b, confidence, planned)
        at_a, at_b = estimate(a, confidence), estimate(b, confidence)
        doubts = doubts + _serious("A", a, at_a, self.asked[0])
        doubts += _serious("B", b, at_b, self.asked[1])
        return PolicyComparison(
            a=_named(self.asked[0].problem, self.asked[1].problem),
            b=_named(self.asked[1].problem, self.asked[0].problem),
            **numbers(found, at_a, at_b, confidence),
            comparable=not self.differences,
            warnings=tuple(self.differences + doubts),
            pairing=Pairing(
                pairs=a.n,
                failures_a=int(a.failed.sum()),
                failures_b=int(b.failed.sum()),
                failures_both=int((a.failed & b.failed).sum()),
                correlation=found.correlation,
                worth=found.worth,
                anytime=planned is not None,
                control=self.control,
                steps=self.learning[0] + self.arms.steps,
                episodes=self.learning[1] + self.arms.episodes,
                seed=self.options.seed,
            ),
            record=PairedRecord(a, b, planned),
        )


def _learn(asked: Request, backend: Backend, key: IntArray) -> tuple[Mixture, Simulation]:
    """The frozen proposal of one policy."""
    problem = asked.problem.blind()
    source = EpisodeSource(problem, key, backend, None, asked.options.faults)
    try:
        simulation = Simulation(problem, key, asked.options.budget, source=source)
        learner = asked.method.start(problem, asked.config)
        while learner.advance(simulation):
            pass
        return learner.proposal(), simulation
    finally:
        source.close()


def _rest(budget: Budget, steps: int, episodes: int) -> Budget:
    """What learning has left."""
    if budget.steps is None:
        return Budget(episodes=max(1, (budget.episodes or 0) - episodes))
    return Budget(steps=max(1, budget.steps - steps))


@contextmanager
def _in_order(a: Request, b: Request) -> Iterator[None]:
    """One thread for linear algebra, and errors that say whose they are."""
    with one_thread(), explained(a.problem), explained(b.problem):
        yield


def _refuse_different(a: Problem, b: Problem) -> None:
    """Pairs need the same disturbances."""
    for name, of in (("`nominal`", a.nominal), ("`initial`", a.initial)):
        other = b.nominal if of is a.nominal else b.initial
        if (of is None) != (other is None) or (
            of is not None
            and other is not None
            and (of.dim, of.discrete) != (other.dim, other.discrete)
        ):
            raise ApevalError(
                f"the problems' {name} differ in kind or in width: two policies meet the same "
                "disturbances only where the problems differ in the policy alone"
            )


def _differences(a: Problem, b: Problem, one: Episodes, other: Episodes) -> list[str]:
    """Why the numbers are not those of two policies on one problem."""
    if one.s.shape[1] != other.s.shape[1]:
        raise ApevalError(
            f"a method sees {one.s.shape[1]} columns of A's state and {other.s.shape[1]} of B's: "
            "give both problems a view of the same width, `views=`"
        )
    said = []
    if not equal_laws(one, other):
        said.append("the problems have different nominal disturbances")
    for what, words in _MUST_AGREE.items():
        x, y = getattr(a, what), getattr(b, what)
        if x != y:
            said.append(f"the problems' {words} differ: {x} and {y}")
    if said:
        said[-1] += ". Compare problems that differ in the policy alone"
    return said


def _serious(name: str, sample: Sample, numbers: Estimate, asked: Request) -> list[str]:
    """The first thing that makes a policy's own estimate doubtful."""
    options = asked.options
    notes = sample_warnings(sample, numbers, None, options.budget, diagnose(sample, numbers))
    text = [f"policy {name} is not to be trusted: {note.text}" for note in notes if note.serious]
    return text[:1]


def _named(problem: Problem, other: Problem) -> str:
    """The problem's name, with the parameters in which the other differs."""
    name = problem.name or "problem"
    changed = [k for k, v in problem.parameters.items() if other.parameters.get(k) != v]
    own = ", ".join(f"{k}={problem.parameters[k]}" for k in changed)
    return f"{name} ({own})" if own else name
