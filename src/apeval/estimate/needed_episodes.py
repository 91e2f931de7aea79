"""How many frozen episodes a target error takes, from a pilot's sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.estimate.interval import effective_size, stratified
from apeval.estimate.precision_target import of_a_look
from apeval.estimate.quantiles import chi_square_quantile, normal_quantile, student_quantile
from apeval.estimate.sample import Sample
from apeval.estimate.weighted import effective
from apeval.problem.types import FloatArray

_REPEATS, _QUANTILES = 200, (0.05, 0.5, 0.95)
_SPARE = 1.08  # a run looks where the last look predicts success, and then a little later
_LESS, _DOUBT, _MORE = 0.8, 10.0, 8.0  # from pilots held against the runs that they planned
_MOST = 1e12


@dataclass(frozen=True)
class Needed:
    """Frozen episodes until the interval's half-width is the target; `low` … `high` is meant to
    hold nine of ten runs with the pilot's proposal."""

    low: float
    expected: float
    high: float


def needed(final: Sample, error: float, confidence: float, seed: int = 0) -> Needed:
    """From the final stage's sample (one proposal), by resampling it within its components.

    The half-width is about z·s/(v·√n) + h/(2·v·n), with s² the variance per episode, and h the
    heaviest failure's weight, which the interval's upper end counts once more. A small sample
    lacks its heaviest failures, and with them part of s²: the fewer effective failures, the more
    is added.
    """
    rng = np.random.default_rng(seed)
    w: FloatArray = final.weights * final.failed
    if final.genealogy is not None:
        return _of_families(final, w, error, confidence)
    groups = [np.flatnonzero(final.component == j) for j in range(len(final.counts))]
    z = normal_quantile(0.5 + of_a_look(confidence) / 2.0)
    found = []
    for _ in range(_REPEATS):
        again = np.concatenate([g[rng.integers(0, len(g), len(g))] for g in groups if len(g)])
        found.append(_episodes(_resampled(final, again), w[again], z, error))
    low, _, high = np.quantile(found, _QUANTILES)
    middle, ess = _episodes(final, w, z, error), effective_size(w[final.failed])
    expected = _SPARE * middle * (1.0 + _DOUBT / ess)
    return Needed(
        min(_LESS * _SPARE * float(low), expected),
        expected,
        max(_SPARE * float(high) * (1.0 + _MORE / np.sqrt(ess)), expected),
    )


def _of_families(final: Sample, w: FloatArray, error: float, confidence: float) -> Needed:
    """Episodes that branched off each other cannot be resampled one by one: the range is that of
    a variance with a degree of freedom for every effective family but one."""
    mean, sigma = stratified(final, w)
    free = max(effective(final, w, final.failed) - 1.0, 1.0)
    half = student_quantile(0.5 + of_a_look(confidence) / 2.0, free) * sigma / mean
    expected = min(_SPARE * final.n * (half / error) ** 2, _MOST)
    low, high = (free / chi_square_quantile(q, free) for q in (0.95, 0.05))
    return Needed(low * expected, expected, min(max(high, 1.0) * expected, _MOST))


def _resampled(sample: Sample, rows: np.ndarray) -> Sample:
    names = ("component", "log_p", "log_q", "kind", "unresolved", "length", "margin")
    return Sample(**{name: getattr(sample, name)[rows] for name in names})


def _episodes(sample: Sample, w: FloatArray, z: float, error: float) -> float:
    mean, sigma = stratified(sample, w)
    if mean <= 0.0:
        return _MOST
    if sample.unweighted:
        sigma = float(np.sqrt(mean * (1.0 - mean) / sample.n))
    a, b = z * sigma * np.sqrt(sample.n) / mean, float(w.max()) / (2.0 * mean)
    if a <= 0.0:
        return 1.0
    if sample.unweighted:
        b = 0.0
    # error = a/√n + b/n, a quadratic in 1/√n
    root = (-a + np.sqrt(a * a + 4.0 * b * error)) / (2.0 * b) if b > 0.0 else error / a
    return float(min(max(1.0 / root**2, 1.0), _MOST))
