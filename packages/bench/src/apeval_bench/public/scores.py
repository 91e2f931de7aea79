"""What the runs of one method on one row say about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import beta, binom

from apeval.estimate.binomial import clopper_pearson
from apeval_bench.accuracy.statistics import interval_90, resampled_rmse, rmse

CONFIDENCE, SHARES = 0.95, 0.9
"""Of the runs' intervals, and of the intervals of shares and errors in the table."""
_TAIL = 1e-9

Run = Mapping[str, Any]


@cache
def monte_carlo_width(p: float, n: int) -> float:
    """The mean width of Monte Carlo's exact 95 % interval.

    Args:
        p: The failure probability.
        n: Episodes, at least 1.

    Returns:
        The mean over the number of failures, of the Clopper-Pearson interval's width.

    >>> round(monte_carlo_width(0.5, 1), 3)
    0.975
    """
    k = np.arange(binom.ppf(_TAIL, n, p), binom.ppf(1.0 - _TAIL, n, p) + 1.0)
    tail = 0.5 * (1.0 - CONFIDENCE)
    low = np.where(k > 0, beta.ppf(tail, np.maximum(k, 1), n - k + 1), 0.0)
    high = np.where(k < n, beta.ppf(1.0 - tail, k + 1, np.maximum(n - k, 1)), 1.0)
    weights = binom.pmf(k, n, p)
    return float(((high - low) * weights).sum() / weights.sum())


def covers(run: Run, truth: float) -> bool:
    """Whether the run's interval has the truth in it.

    Args:
        run: A run.
        truth: The known probability.

    Returns:
        True where it does.
    """
    return bool(run["low"] <= truth <= run["high"])


def is_silent(run: Run, truth: float) -> bool:
    """A silent miss: the interval excludes the truth, and nothing serious is said.

    Args:
        run: A run.
        truth: The known probability.

    Returns:
        True where the run is trusted and wrong.
    """
    return bool(run["trusted"]) and not covers(run, truth)


def scored(runs: Sequence[Run], truth: float, steps_per_episode: float) -> dict[str, Any]:
    """The columns of the table.

    Args:
        runs: Runs of one method on one row.
        truth: The known probability.
        steps_per_episode: Mean length of a nominal episode: what Monte Carlo pays for one.

    Returns:
        Errors, coverage, silent misses, runs worse than Monte Carlo, and costs.
    """
    errors = np.array([run["estimate"] / truth - 1.0 for run in runs])
    n, covered = len(runs), sum(covers(run, truth) for run in runs)
    widths = [
        (run["high"] - run["low"])
        / monte_carlo_width(truth, max(1, round(run["steps"] / steps_per_episode)))
        for run in runs
    ]
    return {
        "runs": n,
        "relative_rmse": rmse(errors),
        "rmse_interval": interval_90(resampled_rmse(errors)),
        "bias": float(errors.mean()),
        "covered": covered,
        "coverage_interval": list(clopper_pearson(covered, n, SHARES)),
        "silent_misses": sum(is_silent(run, truth) for run in runs),
        "width_over_monte_carlo": float(np.median(widths)),
        "worse_than_monte_carlo": sum(width > 1.0 for width in widths),
        "not_trusted": sum(not run["trusted"] for run in runs),
        "without_estimate": sum("error" in run for run in runs),
        "cpu_seconds": float(np.median([run["cpu_seconds"] for run in runs])),
        "steps": float(np.mean([run["steps"] for run in runs])),
    }


def badness(score: Mapping[str, Any]) -> tuple[float, float, float]:
    """What a table is ordered by, the worst first.

    Args:
        score: What `scored` gave.

    Returns:
        Shares of silent misses and of runs worse than Monte Carlo, then the error; negative.
    """
    n = score["runs"]
    return (
        -score["silent_misses"] / n,
        -score["worse_than_monte_carlo"] / n,
        -score["relative_rmse"],
    )
