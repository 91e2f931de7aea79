"""A second opinion: a part of the budget goes to splitting, which shares nothing with the first."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.errors import ApevalError
from apeval.estimate.compare import UNDECIDED, compare, side
from apeval.estimate.sample import Sample
from apeval.learn.method import find_method
from apeval.problem.problem import Problem
from apeval.remedies import Note, Option
from apeval.run.frozen_stage import run_frozen_stage
from apeval.simulate.simulation import Budget, Simulation

METHOD = "splitting"
SHARE = 0.2
"""Of the budget."""
_CONFIDENCE = 0.99  # of the ratio's interval, which leaves out 1 where the two disagree


@dataclass(frozen=True)
class SecondOpinion:
    """What another method says of the same problem, and whether the two agree."""

    method: str
    """The other method's name."""
    share: float
    """Its part of the budget; with a target error, of what was simulated."""
    estimate: float
    """Its estimate."""
    interval: tuple[float, float]
    """Of its estimate, at the run's confidence."""
    failures: int
    """Failing episodes that it rests on."""
    ratio: float | None
    """The run's estimate over this one; None where this one is 0."""
    ratio_interval: tuple[float, float | None]
    """Of the ratio, at 99 %; None: without an upper end."""
    agrees: bool
    """Whether 1 lies in the ratio's interval. Where neither saw a failure it does, and nothing is
    confirmed."""


def check_second_opinion(problem: Problem, method: str) -> None:
    """Refuse to ask for one that cannot be had.

    Raises:
        ApevalError: With a remedy.
    """
    if method == METHOD:
        raise ApevalError(
            f"the second opinion is that of {METHOD}, which is the first one here: choose another "
            f"{Option('method')}, or leave it out"
        )
    reason = find_method(METHOD).suits(problem)
    if reason:
        raise ApevalError(f"there is no second opinion on this problem: {reason}")


def first_part(budget: Budget) -> Budget:
    """What is left for the run itself."""
    return budget.share(1.0 - SHARE)


def ask(
    simulation: Simulation, first: Sample, confidence: float, ended_early: bool
) -> SecondOpinion | None:
    """Spend the rest of the budget on splitting, and hold its answer against the sample's.

    Args:
        simulation: Of the run, which has taken its own part.
        first: The run's sample.
        confidence: Of the stored interval.
        ended_early: Whether the run ended before its part was spent.

    Returns:
        The other opinion; None where somebody asked to stop, or too little is left for one.
    """
    if simulation.source.stop.asked:
        return None
    problem, method = simulation.problem, find_method(METHOD)
    part = simulation.part(_rest(simulation, ended_early))
    learner = method.start(problem, method.config())
    try:
        while learner.advance(part):
            simulation.pause()
        found = run_frozen_stage(
            learner.proposal(), part, confidence, populations=learner.populations()
        )
    except ApevalError:  # too little for a single population
        return None
    answer = compare(side(first), side(found.sample), _CONFIDENCE)
    low, high = answer.ratio_interval
    return SecondOpinion(
        method=METHOD,
        share=SHARE,
        estimate=found.estimate.value,
        interval=found.estimate.interval,
        failures=int(found.sample.failed.sum()),
        ratio=answer.ratio,
        ratio_interval=(low, high if high < float("inf") else None),
        agrees=answer.verdict == UNDECIDED,
    )


def _rest(simulation: Simulation, ended_early: bool) -> Budget:
    """The other part of the budget, or of what a run that ended early has taken."""
    if simulation.budget.steps is not None:
        left = simulation.budget.steps - simulation.steps
        fair = int(simulation.steps * SHARE / (1.0 - SHARE))
        return Budget(steps=max(1, min(left, fair) if ended_early else left))
    left = (simulation.budget.episodes or 0) - simulation.episodes
    fair = int(simulation.episodes * SHARE / (1.0 - SHARE))
    return Budget(episodes=max(1, min(left, fair) if ended_early else left))


def opinion_notes(it: SecondOpinion | None) -> list[Note]:
    """Said where the two disagree."""
    if it is None or it.agrees:
        return []
    lo, hi = it.interval
    return [
        Note(
            f"the second opinion disagrees: {it.method} says {it.estimate:.2e} ({lo:.1e} … "
            f"{hi:.1e}), farther from the estimate than the errors of the two allow. One of them "
            "may miss a failure mode: look at the modes of both, and run each alone with a larger "
            "budget",
            more=3.0,
        )
    ]
