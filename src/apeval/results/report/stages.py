"""The sample as it grew: stages, and the estimate that its first n episodes would have given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from apeval.estimate.interval import estimate
from apeval.estimate.precision_target import PrecisionTarget
from apeval.estimate.sample import Sample
from apeval.problem.types import FloatArray, IntArray
from apeval.results.report.charts import Chart, axis, series, xy
from apeval.results.report.report_data import ReportData

_POINTS = 48
_FIRST = 20
_FEWEST = 5.0  # effective failures from which on it is drawn
_REACH = 8.0  # times the estimate up to which an interval is drawn


def stages(sample: Sample) -> IntArray:
    """The number of each episode's stage, (n,). Stages stand one after the other, and an episode
    has a density under the components of its own stage only."""
    if sample.log_share is None:
        return np.zeros(sample.n, np.int64)
    own, rows = sample.component, np.arange(sample.n - 1)
    apart = np.isneginf(sample.log_q[rows, own[1:]]) & np.isneginf(sample.log_q[rows + 1, own[:-1]])
    return np.concatenate([[0], np.cumsum(apart)])


def prefix(sample: Sample, n: int) -> Sample:
    """The first n episodes, each stage with its share times the part of it that was drawn."""
    cut = sample.first(n)
    if sample.log_share is None or n == sample.n:
        return cut
    stage = stages(sample)
    whole = np.bincount(stage)
    first = np.concatenate([[0], np.cumsum(whole)[:-1]])
    seen = np.bincount(stage[:n], minlength=len(whole))
    share = np.exp(sample.log_share[first]) * seen / whole
    with np.errstate(divide="ignore"):
        log_share: FloatArray = np.log(share / share.sum())
    return replace(cut, log_share=log_share[stage[:n]])


def convergence(it: ReportData, sample: Sample) -> Chart:
    """Estimate and interval over the episodes that count."""
    target = it.result.get("target")
    level = (
        it.confidence if not target else PrecisionTarget(target["error"]).confidence(it.confidence)
    )
    grid = np.unique(np.geomspace(min(_FIRST, sample.n), sample.n, _POINTS).astype(np.int64))
    found = [estimate(prefix(sample, int(n)), level) for n in grid]
    # the interval of the first few failures is so wide that nothing else would be seen
    first = next((k for k, e in enumerate(found) if e.ess >= _FEWEST), 0)
    grid, found = grid[first:], found[first:]
    value = np.array([e.value for e in found])
    lo, hi = np.array([e.interval for e in found]).T
    rules = []
    if it.result["truth"]:
        rules.append({"y": it.result["truth"], "name": "known truth"})
    limits = {}
    if value[-1] > 0.0:  # an interval may leave the picture; the estimate may not
        seen = value[value > 0.0]
        limits = {
            "low": max(float(lo[lo > 0.0].min(initial=np.inf)), seen.min() / _REACH) / 1.1,
            "high": min(float(hi.max()), seen.max() * _REACH) * 1.1,
        }
        limits["low"] = min(limits["low"], seen.min() / 1.1)
    return xy(
        "Estimate and interval against the number of episodes that count; they end at "
        f"{value[-1]:.3g}, {lo[-1]:.3g} to {hi[-1]:.3g}.",
        axis("episodes counted", log=sample.n > 100 * _FIRST),
        axis("failure probability per episode", log=True, **limits),
        [
            series(
                f"estimate with {100 * it.confidence:.4g} % interval",
                grid,
                np.where(value > 0.0, value, np.nan),
                (lo, hi),
            )
        ],
        rules=rules,
    )
