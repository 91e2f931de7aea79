"""Quantiles by `scipy.special` are those of `scipy.stats`, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy.stats import beta, chi2, norm
from scipy.stats import t as student

from apeval.estimate import quantiles


def drawn() -> list[tuple[float, float, int, int]]:
    """Probabilities from the middle to the tails, degrees of freedom, failures and episodes."""
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(100), 10.0 ** -rng.uniform(1, 8, 100)])
    p = np.concatenate([p, 1.0 - p])
    free, k = 10.0 ** rng.uniform(0, 6, len(p)), rng.integers(0, 2_000, len(p))
    n = k + rng.integers(1, 10**6, len(p))
    return [(float(a), float(b), int(c), int(d)) for a, b, c, d in zip(p, free, k, n, strict=True)]


def test_they_are_those_of_scipy_stats() -> None:
    for p, free, k, n in drawn():
        assert quantiles.normal_quantile(p) == norm.ppf(p)
        assert quantiles.normal_upper_quantile(p) == norm.isf(p)
        assert quantiles.normal_probability(8.0 * p - 4.0) == norm.cdf(8.0 * p - 4.0)
        assert quantiles.student_quantile(p, free) == student.ppf(p, free)
        assert quantiles.beta_quantile(p, k + 1, n - k) == beta.ppf(p, k + 1, n - k)
        assert quantiles.chi_square_quantile(p, free) == chi2.ppf(p, free)
        assert quantiles.chi_square_tail(free, k + 1) == chi2.sf(free, k + 1)


def test_a_run_loads_neither_scipy_stats_nor_another_method(tmp_path: Path) -> None:
    code = (
        "import sys, apeval;"
        "apeval.evaluate(apeval.make('walk'), 'mc', steps=400, seed=0,"
        f" recorder=apeval.Recorder({str(tmp_path)!r} + '/run'));"
        "print([m for m in sys.modules if m in ('scipy.stats', 'apeval.learn.ape.learner',"
        " 'apeval.learn.ape.mixture_fit', 'apeval.learn.cem', 'torch', 'gymnasium')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
