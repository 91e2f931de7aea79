"""A mode's share of the failure probability, with its interval."""

from __future__ import annotations

import math

import numpy as np

from apeval.estimate.quantiles import student_quantile
from apeval.estimate.sample import Sample
from apeval.estimate.weighted import effective
from apeval.problem.types import BoolArray


def share_of(
    sample: Sample, hit: BoolArray, confidence: float
) -> tuple[float, tuple[float, float]]:
    """Σ w·1{hit} / Σ w·1{failed}: a ratio of two stratified means. Its error is that of the
    residuals w·(1{hit} − share), its interval Student's on the scale of log-odds."""
    w = sample.weights * sample.failed
    total = float(w.sum())
    share, every = float(w[hit].sum()) / total, np.ones(sample.n, bool)
    if share <= 0.0:
        return 0.0, (0.0, 1.0)
    if share >= 1.0 - 1e-12:  # what was never seen among so many may still be there
        return 1.0, (float(((1.0 - confidence) / 2.0) ** (1.0 / effective(sample, w, every))), 1.0)
    residual = w * (hit - share)
    variance = 0.0
    descended = sample.genealogy
    for j, m in enumerate(sample.counts):
        if descended is not None and descended.population[sample.component == j].max() >= 0:
            together = descended.families(np.where(sample.component == j, residual, 0.0))[1]
            variance += float((together**2).sum())
        elif m > 1:
            variance += m * float(residual[sample.component == j].var(ddof=1))
    ess = min(effective(sample, w, hit), effective(sample, w, ~hit & sample.failed))
    t = student_quantile(0.5 + confidence / 2.0, max(ess - 1.0, 1.0))
    half = t * math.sqrt(variance) / total / (share * (1.0 - share))
    odds = math.log(share / (1.0 - share))
    lo, hi = (1.0 / (1.0 + np.exp(-np.clip(odds + s * half, -700.0, 700.0))) for s in (-1.0, 1.0))
    return share, (float(lo), float(hi))
