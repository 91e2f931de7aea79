"""Another nominal, answered from episodes that are there: weights p'(τ)/q(τ) instead of p/q."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from apeval.estimate.diagnostics import ENOUGH, nominal_only
from apeval.estimate.interval import Estimate, estimate
from apeval.estimate.pareto import pareto_k
from apeval.estimate.sample import Sample
from apeval.estimate.weighted import effective
from apeval.problem.types import FloatArray

_EXPECTED = 10.0  # the same, predicted from the laws alone
_HEAVIEST = 0.2  # of the answer, from one episode
_TAIL = 0.7  # Pareto k: the usual limit of Pareto-smoothed importance sampling
_UNEQUAL = 0.5  # effective part of the failures above which a tail index means nothing
_UNLEARNED = 0.1  # of the answer, from failures that the learned adversary hardly produces


@dataclass(frozen=True)
class Reweighted:
    """The answer for the new nominal, and how well the recorded episodes carry it."""

    numbers: Estimate
    ratio: float
    """New probability over the old one, both from the same episodes."""
    failures: int
    ess_before: float
    """Effective failures under the old nominal."""
    largest_share: float | None
    pareto_k: float | None
    refused: str | None
    """Why the answer cannot be given, or None."""


def reweigh(
    sample: Sample, log_p: FloatArray, confidence: float, widening: FloatArray | None = None
) -> Reweighted:
    """The estimate that the same episodes give for the nominal density p'(τ) = exp(log_p).

    The mean of p'/q over episodes drawn from q is unbiased for p', as that of p/q is for p, as
    long as q > 0 wherever p' > 0. Only the variance suffers; `refused` says when too much.

    A sample that lacks its heavy failures looks better than it is, so a refusal by its weights
    alone would let the worst samples pass. `widening`, log E_p[(p'/p)²] of each episode, (n,),
    predicts the loss from the laws: it does not depend on which failures were drawn.
    """
    after = replace(sample, log_p=log_p)
    w, before = after.weights * after.failed, sample.weights * sample.failed
    numbers = estimate(after, confidence)
    total = float(w.sum())
    heaviest = float(w.max()) / total if total > 0.0 else None
    k = pareto_k(w[after.failed])
    return Reweighted(
        numbers=numbers,
        ratio=total / float(before.sum()) if before.any() else np.nan,
        failures=int(sample.failed.sum()),
        ess_before=effective(sample, before, sample.failed),
        largest_share=heaviest,
        pareto_k=k,
        refused=_too_wide(sample, before, widening)
        or _refusal(sample, w, numbers.ess, heaviest, k),
    )


def _too_wide(sample: Sample, before: FloatArray, widening: FloatArray | None) -> str | None:
    if widening is None or not before.any():
        return None
    failed = sample.failed
    loss = float(widening[failed] @ before[failed]) / float(before.sum())
    expected = effective(sample, before, failed) * float(np.exp(-loss))
    if expected >= _EXPECTED:
        return None
    return (
        "the new nominal is so much wider that the recorded episodes do not cover it (their "
        f"{int(failed.sum()):,} failures would be worth about {expected:.1f})"
    )


def _refusal(
    sample: Sample, w: FloatArray, ess: float, heaviest: float | None, k: float | None
) -> str | None:
    """Why the recorded episodes cannot answer: what would be a serious warning in a run."""
    failures = int(sample.failed.sum())
    if failures == 0 or heaviest is None:
        return "the run saw no failure that the new nominal could produce"
    if ess < ENOUGH:
        return (
            f"the {failures:,} recorded failures are worth only {ess:.1f} under the new nominal "
            f"(at least {ENOUGH:.0f} are needed)"
        )
    if heaviest > _HEAVIEST:
        return f"a single episode would carry {heaviest:.0%} of the answer"
    if k is not None and k > _TAIL and ess < _UNEQUAL * failures:
        return (
            f"the new nominal has tails that the run did not cover (Pareto k = {k:.2f} of the "
            f"failures' weights, above {_TAIL})"
        )
    unlearned = nominal_only(sample, w) or 0.0
    if unlearned > _UNLEARNED:
        return (
            f"{unlearned:.0%} of the answer would come from failures that the run's adversary "
            "hardly produces: they were too unlikely under the old nominal to be learned"
        )
    return None
