"""Paired comparisons over seeds, and a verdict for every knock-out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from apeval.problem.types import FloatArray

Outcome = Mapping[str, Any]
_RESAMPLED, _SEED = 4_000, 0
SINGLE, POOLED = 0.98, 0.90
"""Confidence of a ratio on one problem, of which there are hundreds, and of one over all."""
MATTERS, LITTLE = 1.21, 1.10
"""Ratios of mean squared errors: 10 and 5 % of the error itself."""
PAYS, DOES_NOT, HARMS, MIXED, UNDECIDED, IDLE = (
    "pays", "does not pay", "harms", "pays and harms", "undecided", "never at work here",
)  # fmt: skip


def square(outcome: Outcome) -> float:
    """The mean squared relative error to expect of the run."""
    return float(outcome["lost"] ** 2 + outcome["variance"])


def same(a: Outcome, b: Outcome) -> bool:
    """Whether two runs are the same, to the bit."""
    return all(a[k] == b[k] for k in ("error", "lost", "variance", "covered", "trusted"))


def silent(outcome: Outcome) -> bool:
    """An interval without the truth, and nothing serious said."""
    return bool(outcome["trusted"] and not outcome["covered"])


def log_ratios(without: Sequence[float], plain: Sequence[float], salt: int) -> FloatArray:
    """log of the ratio of means over seeds, of the runs themselves and then of resampled pairs."""
    a, b = np.array(without), np.array(plain)
    rows = np.random.default_rng([_SEED, salt]).integers(0, len(a), (_RESAMPLED, len(a)))
    means = [np.concatenate([[x.mean()], x[rows].mean(axis=1)]) for x in (a, b)]
    logs: FloatArray = np.log(np.maximum(means[0], 1e-300)) - np.log(np.maximum(means[1], 1e-300))
    return logs


def summarised(logs: FloatArray, confidence: float) -> dict[str, Any]:
    """A ratio with its interval, from `log_ratios` or a mean of them."""
    tail = 0.5 * (1.0 - confidence)
    low, high = np.quantile(logs[1:], [tail, 1.0 - tail])
    return {"ratio": float(np.exp(logs[0])), "interval": [float(np.exp(x)) for x in (low, high)]}


def compared(without: Sequence[Outcome], plain: Sequence[Outcome], salt: int) -> dict[str, Any]:
    """One knock-out on one problem, beside the method as it is on the same seeds."""
    a, b = [square(o) for o in without], [square(o) for o in plain]
    errors, own = ([float(o["error"] ** 2) for o in outcomes] for outcomes in (without, plain))
    return {
        "runs": len(without),
        "touched": not all(same(x, y) for x, y in zip(without, plain, strict=True)),
        **summarised(log_ratios(a, b, salt), SINGLE),
        "rmse": float(np.sqrt(np.mean(a))),
        "rmse_as_it_is": float(np.sqrt(np.mean(b))),
        "of_errors": summarised(log_ratios(errors, own, salt), SINGLE),
        "covered": [sum(bool(o["covered"]) for o in outcomes) for outcomes in (without, plain)],
        "silent": [sum(silent(o) for o in outcomes) for outcomes in (without, plain)],
        "seconds": [float(np.mean([o["seconds"] for o in x])) for x in (without, plain)],
    }


def decided(row: Mapping[str, Any]) -> bool:
    """Whether more seeds would hardly change what the row says."""
    low, high = row["interval"]
    more = row["ratio"] >= MATTERS and low > 1.0
    less = row["ratio"] <= 1.0 / MATTERS and high < 1.0
    return bool(more or less or (low > 1.0 / MATTERS and high < MATTERS))


def pooled(rows: Sequence[FloatArray]) -> dict[str, Any] | None:
    """The geometric mean over problems of their ratios; None without any."""
    return summarised(np.mean(rows, axis=0), POOLED) if rows else None


def verdict(rows: Sequence[Mapping[str, Any]], together: Mapping[str, Any] | None) -> str:
    """Of a heuristic, from the problems that its knock-out touched.

    It pays where the error without it is larger by 10 % or more on some problem, its interval
    excludes 1, and on none it is smaller in the same sense; it does not pay where neither is so and
    the mean over problems is not above 5 %, also at the upper end of its interval.
    """
    if together is None:
        return IDLE
    more = any(r["ratio"] >= MATTERS and r["interval"][0] > 1.0 for r in rows)
    less = any(r["ratio"] <= 1.0 / MATTERS and r["interval"][1] < 1.0 for r in rows)
    if more or less:
        return MIXED if more and less else PAYS if more else HARMS
    low, high = together["interval"]
    if low > LITTLE:
        return PAYS
    if high < 1.0 / LITTLE:
        return HARMS
    return DOES_NOT if high < LITTLE else UNDECIDED


def where_error_comes_from(plain: Sequence[Outcome], best: float) -> dict[str, float]:
    """Parts of the mean squared error of the method as it is.

    `floor`: that of the best proposal learned with a larger budget, had it drawn all episodes
    (`best`); `learning`: more, because only some episodes count; `fit`: more, because the proposal
    is not that one; `lost`: failures that are hardly met.
    """
    counting = best * float(np.mean([o["episodes"] / o["effective"] for o in plain]))
    variance = float(np.mean([o["variance"] for o in plain]))
    return {
        "floor": best,
        "learning": counting - best,
        "fit": variance - counting,
        "lost": float(np.mean([o["lost"] ** 2 for o in plain])),
    }
