"""How often episodes failed as the run went on, and how unequal their weights are."""

from __future__ import annotations

import numpy as np

from apeval.estimate.binomial import clopper_pearson
from apeval.estimate.sample import Sample
from apeval.results.report.charts import Chart, axis, series, xy
from apeval.results.report.report_data import ReportData
from apeval.results.report.stages import stages

_BINS, _PER_BIN = 30, 20
_WEIGHT_BINS = 24
_DECADES = 8.0  # below the heaviest; lighter failures do not matter, and share a bar


def failure_rate(it: ReportData, sample: Sample) -> Chart | None:
    """Unweighted failure rate over the run, learning and frozen stage; None where none failed."""
    final = stages(sample) == stages(sample)[-1]
    failed = [sample.failed[~final], sample.failed[final]]
    if it.learning is not None and it.episodes is not None:
        ids = np.concatenate([it.learning.ids, it.episodes.ids[~final]])
        before = np.concatenate([it.learning.failed, sample.failed[~final]])
        failed[0] = before[np.argsort(ids, kind="stable")]
    if not any(part.any() for part in failed):
        return None
    x, rate, lo, hi = [], [], [], []
    start, total = 0, sum(map(len, failed))
    most = min(_BINS, max(1, total // _PER_BIN))
    for part in failed:
        bins = max(1, round(most * len(part) / total)) if len(part) else 0
        for piece in np.array_split(part, bins) if bins else ():
            x.append(start + len(piece) / 2)
            start += len(piece)
            rate.append(piece.mean())
            ends = clopper_pearson(int(piece.sum()), len(piece), 0.95)
            lo.append(ends[0])
            hi.append(ends[1])
    zones = [
        {"from": 0, "to": len(failed[0]), "name": "learning"},
        {"from": len(failed[0]), "to": total, "name": "frozen stage"},
    ]
    return xy(
        "Share of failing episodes in successive parts of the run, unweighted; it ends at "
        f"{rate[-1]:.0%}.",
        axis("episodes simulated"),
        axis("share of episodes that fail", low=0.0),
        [series("failure rate with its 95 % interval", x, rate, (lo, hi))],
        zones=zones if len(failed[0]) else (),
    )


def weight_histogram(sample: Sample) -> Chart | None:
    """Failures by weight, counted and weighted; None where the weights are all the same."""
    log_w = sample.log_weights[sample.failed & (sample.weights > 0.0)] / np.log(10.0)
    if len(log_w) < 2 or np.ptp(log_w) < 1e-6:
        return None
    lightest = float(log_w.max()) - _DECADES
    clipped, log_w = bool((log_w < lightest).any()), np.maximum(log_w, lightest)
    number, edges = np.histogram(log_w, bins=min(_WEIGHT_BINS, max(6, len(log_w) // 8)))
    mass, _ = np.histogram(log_w, bins=edges, weights=10.0 ** (log_w - log_w.max()))
    middle = (edges[1:] + edges[:-1]) / 2.0
    chart = xy(
        f"Histogram of the failures' weights, from 10^{log_w.min():.1f} to 10^{log_w.max():.1f}.",
        axis("log₁₀ of the weight p/q"),
        axis("share", low=0.0),
        [
            series("share of the failures", middle, number / number.sum(), mark="bars"),
            series("share of the estimate", middle, mass / mass.sum(), slot=1),
        ],
    )
    chart |= {"width": float(edges[1] - edges[0]), "clipped": clipped}
    return chart
