"""Statistics over the seeds of one method in one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from apeval.problem.types import FloatArray
from apeval_bench.accuracy.runs import RunOutcome

_RESAMPLED, _SEED = 2_000, 0
HOLDS, FAR = 1.65, 3.0
"""A figure holds when the 90 % quantile of |relative error| is at most 1.65 × it, and every run
off by more than 3 × it carries a warning."""
ENOUGH_FAILURES = 5


def relative_errors(outcomes: Sequence[RunOutcome], truth: float) -> FloatArray:
    """v̂/v* − 1 of each run; for v* = 0 the estimates themselves."""
    estimates = np.array([o.estimate for o in outcomes])
    errors: FloatArray = estimates / truth - 1.0 if truth > 0.0 else estimates
    return errors


def rmse(errors: FloatArray) -> float:
    """Root of the mean square.

    >>> round(rmse(np.array([3.0, -4.0])) ** 2, 9)
    12.5
    """
    return float(np.sqrt(np.mean(errors**2)))


def resampled_rmse(errors: FloatArray, salt: int = 0) -> FloatArray:
    """RMSE of bootstrap samples, drawn the same way at every call."""
    rng = np.random.default_rng([_SEED, salt])
    rows = rng.integers(0, len(errors), (_RESAMPLED, len(errors)))
    values: FloatArray = np.sqrt((errors[rows] ** 2).mean(axis=1))
    return values


def interval_90(values: FloatArray) -> list[float]:
    """The middle 90 %."""
    return [float(q) for q in np.quantile(values, [0.05, 0.95])]


def ratio(ours: FloatArray, other: FloatArray) -> dict[str, Any]:
    """RMSE(ours)/RMSE(other) with its 90 % bootstrap interval."""
    below = resampled_rmse(other, 1)
    if not (below > 0.0).all():
        return {"ratio": None, "interval": None, "not_worse": bool(rmse(ours) == 0.0)}
    spread = interval_90(resampled_rmse(ours, 0) / below)
    return {
        "ratio": rmse(ours) / rmse(other),
        "interval": spread,
        "not_worse": spread[0] < 1.0,
    }


def bound_ratio(ours: Sequence[RunOutcome], other: Sequence[RunOutcome]) -> dict[str, Any]:
    """Where v* = 0 every estimate is right and the upper bound is all that a run says: the median
    bound of ours over the other's."""
    mine, theirs = (float(np.median([o.high for o in outcomes])) for outcomes in (ours, other))
    return {
        "ratio": mine / theirs if theirs > 0.0 else None,
        "interval": None,
        "not_worse": mine <= theirs,
    }


def summary(outcomes: Sequence[RunOutcome], truth: float) -> dict[str, Any]:
    """One method in one row."""
    errors = relative_errors(outcomes, truth)
    size = np.abs(errors)
    unit = truth if truth > 0.0 else 1.0
    return {
        "runs": len(outcomes),
        "relative_rmse": rmse(errors),
        "rmse_interval": interval_90(resampled_rmse(errors)),
        "mean_error": float(size.mean()),
        "q90_error": float(np.quantile(size, 0.9)),
        "largest_error": float(size.max()),
        "bias": float(errors.mean()),
        "coverage": float(np.mean([o.low <= truth <= o.high for o in outcomes])),
        "relative_width": float(np.median([(o.high - o.low) / unit for o in outcomes])),
        "failure_rate": float(np.mean([o.failure_rate for o in outcomes])),
        "seconds": float(np.median([o.seconds for o in outcomes])),
        "warned": float(np.mean([o.warned for o in outcomes])),
        "without_estimate": sum(bool(o.error) for o in outcomes),
        "episodes": float(np.mean([o.episodes for o in outcomes])),
    }


def judge(outcomes: Sequence[RunOutcome], truth: float, figure: float) -> dict[str, Any]:
    """Whether a figure holds."""
    size = np.abs(relative_errors(outcomes, truth))
    far = size > FAR * figure
    silent = sum(bool(f) and not o.warned for f, o in zip(far, outcomes, strict=True))
    quantile = float(np.quantile(size, 0.9))
    return {
        "figure": figure,
        "far": int(far.sum()),
        "far_without_warning": silent,
        "holds": quantile <= HOLDS * figure and silent == 0,
    }


def modes_found(outcomes: Sequence[RunOutcome], modes: Sequence[str]) -> float:
    """Share of runs with at least 5 frozen-stage failures in each of the modes."""
    enough = [all(o.kinds.get(m, 0) >= ENOUGH_FAILURES for m in modes) for o in outcomes]
    return float(np.mean(enough))
