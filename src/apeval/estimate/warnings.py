"""Diagnostics that speak: what a reader must know before believing the number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from apeval.estimate.binomial import clopper_pearson
from apeval.estimate.diagnostics import ENOUGH, Findings, diagnose
from apeval.estimate.interval import Estimate
from apeval.estimate.sample import Sample
from apeval.simulate.simulation import Budget

ENOUGH_COUNTED = 10.0  # Monte Carlo's interval is exact at any count
_HEAVY_TAIL = 0.7  # the usual limit of Pareto-smoothed importance sampling
_HEAVY_SHARE = 0.2
_UNEVEN_TAIL, _UNEVEN_SHARE = 0.4, 0.1  # see docs/accuracy.md for how many runs reach them
_MISSED_SHARE = 0.1
_DISAGREEMENT = 0.1
_EXPLORED_ERRORS = 3.0
_EQUAL = 0.5
_MOST_TIMES = 100.0


@dataclass(frozen=True)
class Note:
    """A warning; a serious one says that the interval itself may be wrong."""

    text: str
    serious: bool = True


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
                f"no failure in {sample.n:,} episodes of the frozen stage: only the upper end of "
                f"the interval says something. Raise {raised(budget, 10.0)}"
                + _by_counting(sample, estimate, budget)
            )
        )
    else:
        notes += _tail(sample, findings, budget) + _nominal_only(findings, budget)
        notes += _disagreement(estimate, value)
    notes += _explored(estimate, findings, budget, kinds)
    return sorted(notes, key=lambda note: not note.serious)


def raised(budget: Budget, times: float) -> str:
    """A larger budget as the user would type it.

    >>> raised(Budget(steps=3_000), 4.0)
    '--steps to about 12,000'
    """
    option = "--steps" if budget.steps is not None else "--episodes"
    size = (budget.steps or budget.episodes or 1) * min(times, _MOST_TIMES)
    digits = max(0, math.floor(math.log10(size)) - 1)
    return f"{option} to about {math.ceil(size / 10**digits) * 10**digits:,}"


def _by_counting(sample: Sample, estimate: Estimate, budget: Budget) -> str:
    """Most of a run looks for failures, which bounds nothing if there are none: Monte Carlo's
    bound with the same budget is lower."""
    n = budget.episodes or int((budget.steps or 0) / max(float(sample.length.mean()), 1.0))
    if sample.unweighted or n < 1:
        return ""
    most = clopper_pearson(0, n, estimate.confidence)[1]
    return f", or use --method mc: if nothing fails there either, it shows at most {most:.1e}"


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


def _tail(sample: Sample, findings: Findings, budget: Budget) -> list[Note]:
    """Too few failures, one that outweighs the rest, or a tail that promises worse."""
    d = findings.numbers
    failures = int(sample.failed.sum())
    enough = ENOUGH_COUNTED if sample.counting else ENOUGH
    if d.ess < enough:
        times = enough / max(d.ess, 1.0)
        return [
            Note(
                f"the estimate rests on {d.ess:.1f} effective failures (at least {enough:.0f} "
                f"are wanted): raise {raised(budget, max(times, 1.5))}"
            )
        ]
    if d.largest_share is not None and d.largest_share > _HEAVY_SHARE:
        return [
            Note(
                f"one episode carries {d.largest_share:.0%} of the estimate, so the interval may "
                f"be too short: raise {raised(budget, 4.0)}"
            )
        ]
    unequal = d.ess < _EQUAL * failures  # the tail of nearly equal weights means nothing
    if unequal and d.pareto_k is not None and d.pareto_k > _HEAVY_TAIL:
        return [
            Note(
                f"the weights of the failures have a heavy tail (Pareto k = {d.pareto_k:.2f}, "
                f"above {_HEAVY_TAIL}): failures that weigh more than all seen "
                "are likely, and the interval may be too short. The adversary fits the failures "
                f"badly: raise {raised(budget, 3.0)}"
            )
        ]
    return _uneven(d.largest_share, d.pareto_k if unequal else None, budget)


def _uneven(share: float | None, k: float | None, budget: Budget) -> list[Note]:
    """Weights that are no reason for distrust yet, but more uneven than they should be."""
    if share is not None and share > _UNEVEN_SHARE:
        what = f"one episode carries {share:.0%} of the estimate"
    elif k is not None and k > _UNEVEN_TAIL:
        what = f"the weights of the failures are uneven (Pareto k = {k:.2f}, above {_UNEVEN_TAIL})"
    else:
        return []
    return [
        Note(
            f"{what}: the estimate may be further off than usual. For a second opinion run another "
            f"--seed; to be surer raise {raised(budget, 2.0)}",
            serious=False,
        )
    ]


def _nominal_only(findings: Findings, budget: Budget) -> list[Note]:
    """Failures that only the nominal part finds: a mode that the adversary did not learn."""
    share = findings.numbers.nominal_only_share
    if share is None or share <= _MISSED_SHARE:
        return []
    return [
        Note(
            f"{share:.0%} of the estimate comes from failures that the learned adversary hardly "
            f"produces: it misses a failure mode. Raise {raised(budget, 3.0)}"
        )
    ]


def _explored(
    estimate: Estimate, findings: Findings, budget: Budget, kinds: Sequence[str]
) -> list[Note]:
    """Where learning and the frozen stage do not fit together."""
    notes = []
    d, lost = findings.numbers, findings.missed
    for kind in findings.unseen_kinds:
        name = kinds[kind - 1] if kind <= len(kinds) else str(kind)
        notes.append(
            Note(
                f"learning met failures of the kind '{name}', the frozen stage none: their "
                f"probability is missing. Raise {raised(budget, 3.0)}"
            )
        )
    if lost is not None and not notes:
        notes.append(
            Note(
                f"learning found {lost.failures} failures, {lost.share:.0%} of the probability it "
                "saw, that the frozen proposal hardly produces (about "
                f"{lost.expected:.1f} of their like expected): a failure mode may be missing "
                f"from the estimate. Raise {raised(budget, 3.0)}"
            )
        )
    explored, error = d.explored_estimate, d.explored_standard_error
    if notes or explored is None or error is None:
        return notes
    if explored - _EXPLORED_ERRORS * error > estimate.interval[1]:
        notes.append(
            Note(
                f"learning saw a failure probability of {explored:.2e} ± {error:.1e}, more than "
                f"the interval of the frozen stage allows: it may be missing a failure mode. Raise "
                f"{raised(budget, 3.0)}"
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
            "come late. The estimate does not depend on it",
            serious=False,
        )
    ]
