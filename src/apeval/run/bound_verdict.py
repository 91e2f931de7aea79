"""A run that is over, judged against a bound that was perhaps not asked when it ran."""

from __future__ import annotations

from apeval.estimate.interval import estimate
from apeval.estimate.verdict import check_bound
from apeval.run.completed_run import CompletedRun, check_run, level
from apeval.run.target_answers import BelowAnswer, Spending, answer_below


def judge(run: CompletedRun, below: float, *, confidence: float | None = None) -> BelowAnswer:
    """Is the failure probability below a bound? From a run that is there, without simulating.

    The answer comes from the run's own one-sided bounds, so any number of bounds may be judged from
    one run. Ask ``run.result.trusted`` as well: an untrusted interval shows nothing.

    Args:
        run: What `apeval.load` returns, or an `InMemory` recorder.
        below: The bound.
        confidence: Of the one-sided bounds; by default that of the run.

    Returns:
        shown, refuted or undecided, with the budget that would decide.

    Raises:
        ApevalError: An argument is wrong.

    Examples:
        >>> import apeval
        >>> run = apeval.InMemory(apeval.make("walk", top=5))
        >>> result = apeval.evaluate(run.of, steps=2_000, recorder=run)
        >>> judge(run, 0.1).verdict, judge(run, 0.001).verdict
        ('shown', 'refuted')
    """
    check_run("run", run)
    result, sample = run.result, run.sample
    wanted = result.confidence if confidence is None else confidence
    below = check_bound(below, wanted)
    single = level(result, wanted)
    grows = result.target is None
    steps = sample.steps
    spent = (
        Spending(result.steps - steps, steps, "steps", grows)
        if "steps" in result.budget
        else Spending(result.episodes - sample.n, sample.n, "episodes", grows)
    )
    return answer_below(below, sample, estimate(sample, single), single, spent)
