"""Diagnostics that speak: what a reader must know before believing the number."""

from __future__ import annotations

import math
from collections.abc import Sequence

from apeval.errors import number_of
from apeval.estimate.binomial import clopper_pearson
from apeval.estimate.diagnostics import ENOUGH, Findings, diagnose
from apeval.estimate.interval import Estimate
from apeval.estimate.sample import Sample
from apeval.remedies import Note, Option, Setting
from apeval.simulate.simulation import Budget

ENOUGH_COUNTED = 10.0  # Monte Carlo's interval is exact at any count
_HEAVY_TAIL = 0.7  # the usual limit of Pareto-smoothed importance sampling
_HEAVY_SHARE = 0.2
_UNEVEN_TAIL, _UNEVEN_SHARE = 0.4, 0.1  # see docs/accuracy.md for how many runs reach them
_MISSED_SHARE = 0.1
_DISAGREEMENT = 0.1
_CONVERGED = 10.0  # times, between a value and the estimate that should be equal to it
_EXPLORED_ERRORS = 3.0
_EQUAL = 0.5
_NEARLY_ALL = 0.9  # of a budget's episodes: it was plain Monte Carlo


def sample_warnings(
    sample: Sample,
    estimate: Estimate,
    value: float | None,
    budget: Budget,
    findings: Findings | None = None,
    kinds: Sequence[str] = (),
) -> list[Note]:
    """Plain-language warnings about a frozen sample, each with a remedy; serious ones first."""
    findings = findings or diagnose(sample, estimate)
    notes = _unresolved(sample, estimate)
    if estimate.value <= 0.0:
        notes.append(
            Note(
                f"no failure in {number_of(sample.n, 'episode')} of the frozen stage: only the "
                "upper end of the interval says something" + _by_counting(sample, estimate, budget),
                more=10.0,
            )
        )
    else:
        notes += _tail(sample, findings) + _nominal_only(findings)
        notes += _disagreement(estimate, value)
    notes += _explored(estimate, findings, kinds)
    return sorted(notes, key=lambda note: not note.serious)


def joined(notes: Sequence[Note], budget: Budget, met: float | None = None) -> list[Note]:
    """Serious notes first, and at the end the one remedy of all that more episodes can mend.

    Args:
        notes: Of one result.
        budget: What the run was allowed.
        met: The target error at which the run ended before its budget did: a larger budget would
            not be used, a smaller target is.

    Returns:
        The notes, with one more where any of them asks for a larger budget: it names the largest
        that is asked for, which is enough for all.

    Examples:
        >>> notes = [Note("few failures", more=4.0), Note("uneven weights", more=2.0)]
        >>> print(joined(notes, Budget(steps=3_000))[-1].text.partition(",")[0])
        raise the budget to about `steps=12000`
    """
    notes = sorted(notes, key=lambda note: not note.serious)
    asking = [note for note in notes if note.more]
    if not asking:
        return notes
    more = max(note.more for note in asking)
    if met is not None:
        error = float(f"{met / math.sqrt(max(more, 2.0)):.1g}")
        text = f"lower the target error to about {Option('target_error', error)}"
    elif more > 1.0:
        text = f"raise the budget to about {raised(budget, more)}"
    else:
        text = "raise the budget"
    if len(asking) > 1 and more > 1.0:
        text += ", which serves all remarks that more episodes can mend"
    return [*notes, Note(text, serious=False)]


def raised(budget: Budget, times: float) -> Option:
    """A larger budget, to two digits up.

    >>> print(raised(Budget(steps=3_000), 4.0))
    `steps=12000`
    """
    unit = "steps" if budget.steps is not None else "episodes"
    size = (budget.steps or budget.episodes or 1) * times
    digit = 10 ** max(0, math.floor(math.log10(size)) - 1)
    return Option(unit, math.ceil(round(size / digit, 6)) * digit)


def _by_counting(sample: Sample, estimate: Estimate, budget: Budget) -> str:
    """Most of a run looks for failures, which bounds nothing if there are none: Monte Carlo's
    bound with the same budget is lower."""
    n = budget.episodes or int((budget.steps or 0) / max(float(sample.length.mean()), 1.0))
    if n < 1 or (sample.unweighted and sample.n >= _NEARLY_ALL * n):
        return ""
    most = clopper_pearson(0, n, estimate.confidence)[1]
    return (
        f". Try {Option('method', 'mc')} with the same budget: if nothing fails there either, it "
        f"shows at most {most:.1e}"
    )


def _unresolved(sample: Sample, estimate: Estimate) -> list[Note]:
    cut = int(sample.unresolved.sum())
    if not cut:
        return []
    return [
        Note(
            f"{cut:,} of {sample.n:,} episodes have no known outcome (nominal probability "
            f"{estimate.unresolved_mass:.2e}): the interval allows for all of them failing. Where "
            "they were cut, give the problem a horizon, or a larger cap or budget; where the "
            "simulator did not come back (faults.json), mend it"
        )
    ]


def _tail(sample: Sample, findings: Findings) -> list[Note]:
    """Too few failures, one that outweighs the rest, or a tail that promises worse."""
    d = findings.numbers
    failures = int(sample.failed.sum())
    enough = ENOUGH_COUNTED if sample.counting else ENOUGH
    if d.ess < enough:
        times = enough / max(d.ess, 1.0)
        return [
            Note(
                f"the estimate rests on {d.ess:.1f} effective failures (at least {enough:.0f} "
                "are wanted)",
                more=max(times, 1.5),
            )
        ]
    if d.largest_share is not None and d.largest_share > _HEAVY_SHARE:
        return [
            Note(
                f"{_one(sample)} {d.largest_share:.0%} of the estimate, so the interval may "
                "be too short",
                more=4.0,
            )
        ]
    unequal = d.ess < _EQUAL * failures  # the tail of nearly equal weights means nothing
    if unequal and d.pareto_k is not None and d.pareto_k > _HEAVY_TAIL:
        return [
            Note(
                f"the weights of the failures have a heavy tail (Pareto k = {d.pareto_k:.2f}, "
                f"above {_HEAVY_TAIL}): failures that weigh more than all seen "
                "are likely, and the interval may be too short. The adversary fits the failures "
                "badly",
                more=3.0,
            )
        ]
    return _uneven(_one(sample), d.largest_share, d.pareto_k if unequal else None)


def _one(sample: Sample) -> str:
    if sample.genealogy is None:
        return "one episode carries"
    return "failures that branched off one episode carry"


def _uneven(one: str, share: float | None, k: float | None) -> list[Note]:
    """Weights that are no reason for distrust yet, but more uneven than they should be."""
    if share is not None and share > _UNEVEN_SHARE:
        what = f"{one} {share:.0%} of the estimate"
    elif k is not None and k > _UNEVEN_TAIL:
        what = f"the weights of the failures are uneven (Pareto k = {k:.2f}, above {_UNEVEN_TAIL})"
    else:
        return []
    return [
        Note(
            f"{what}: the estimate may be further off than usual. Another {Option('seed')} gives a "
            "second opinion",
            serious=False,
            more=2.0,
        )
    ]


def _nominal_only(findings: Findings) -> list[Note]:
    """Failures that only the nominal part finds: a mode that the adversary did not learn."""
    share = findings.numbers.nominal_only_share
    if share is None or share <= _MISSED_SHARE:
        return []
    return [
        Note(
            f"{share:.0%} of the estimate comes from failures that the learned adversary hardly "
            "produces: it misses a failure mode",
            more=3.0,
        )
    ]


def _explored(estimate: Estimate, findings: Findings, kinds: Sequence[str]) -> list[Note]:
    """Where learning and the frozen stage do not fit together."""
    notes = []
    d, lost = findings.numbers, findings.missed
    for kind in findings.unseen_kinds:
        name = kinds[kind - 1] if kind <= len(kinds) else str(kind)
        notes.append(
            Note(
                f"learning met failures of the kind '{name}', the frozen stage none: their "
                "probability is missing",
                more=3.0,
            )
        )
    if lost is not None and not notes:
        notes.append(
            Note(
                f"learning found {lost.failures} failures, {lost.share:.0%} of the probability it "
                "saw, that the frozen proposal hardly produces (about "
                f"{lost.expected:.1f} of their like expected): a failure mode may be missing "
                "from the estimate",
                more=3.0,
            )
        )
    explored, error = d.explored_estimate, d.explored_standard_error
    if notes or explored is None or error is None:
        return notes
    if explored - _EXPLORED_ERRORS * error > estimate.interval[1]:
        notes.append(
            Note(
                f"learning saw a failure probability of {explored:.2e} ± {error:.1e}, more than "
                "the interval of the frozen stage allows: it may be missing a failure mode",
                more=3.0,
            )
        )
    return notes


def _disagreement(estimate: Estimate, value: float | None) -> list[Note]:
    lo, hi = estimate.interval
    if value is None or lo <= value <= hi:
        return []
    if abs(value - estimate.value) <= _DISAGREEMENT * estimate.value:
        return []
    return [
        Note(
            f"the learned v(s0) = {value:.3e} lies outside the interval of the trajectory-weight "
            f"estimate ({lo:.3e} … {hi:.3e}): the value has not converged, as with rewards that "
            "come late. The interval comes from weighted episodes, not from it",
            serious=False,
        )
    ]


def unconverged(estimate: Estimate, what: str, value: float) -> list[Note]:
    """A proposal that is built on a value which cannot be right.

    Args:
        estimate: Of the frozen stage.
        what: What `value` is, in words.
        value: v(s0) of the values that the proposal is built on; if these are right, it equals the
            estimate.

    Returns:
        A serious note where it lies outside the interval and is 10 times off.
    """
    lo, hi = estimate.interval
    v = estimate.value
    if v <= 0.0 or (lo <= value <= hi) or v / _CONVERGED <= value <= _CONVERGED * v:
        return []
    return [
        Note(
            f"{what} is {value:.2e}, and the estimate {v:.2e}, where both should be about equal: "
            "the proposal is built on values that have not converged, so failures may be missing "
            "from the estimate. Let it learn for longer, or hold it against "
            f"{Option('method', 'ape')} with {Setting('learner', 'feedback')}, which knows no "
            f"values, or against {Option('method', 'mc')}"
        )
    ]
