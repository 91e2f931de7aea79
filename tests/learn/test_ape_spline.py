"""The spline learner: an exact density, modest with few failures, better where they are bent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kstest

import apeval
from apeval.errors import ApevalError
from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.feedback import Feedback, fit_feedback
from apeval.learn.ape.part_learner import find_part_learner
from apeval.run.evaluate import evaluate

pytest.importorskip("torch", reason="the spline learner needs the extra `scalable`")
pytest.importorskip("zuko", reason="the spline learner needs the extra `scalable`")

from apeval.learn.ape.spline import Spline, bend


def bent(n: int, seed: int = 0) -> DecisionRows:
    """z is near −2 or near 2, whatever the state: no Gaussian fits."""
    rng = np.random.default_rng(seed)
    z = np.where(rng.random(n) < 0.5, -2.0, 2.0) + 0.3 * rng.standard_normal(n)
    return _rows(z[:, None], rng.standard_normal((n, 1)))


def _rows(z: NDArray[Any], x: NDArray[Any]) -> DecisionRows:
    n = len(z)
    return DecisionRows(
        z, np.zeros((n, 0)), x, np.zeros(n, np.int64), np.arange(n), n, np.zeros((n, 0))
    )


@pytest.fixture(scope="module")
def fitted() -> tuple[Feedback, Spline]:
    rows = bent(600)
    base, _ = fit_feedback(rows, np.ones(rows.n), 1, None)
    part = bend(base, rows, np.ones(rows.n), 1)
    assert isinstance(part, Spline)
    return base, part


def test_its_density_integrates_to_one(fitted: tuple[Feedback, Spline]) -> None:
    grid = np.linspace(-12.0, 12.0, 4_001)
    rows = _rows(grid[:, None], np.full((len(grid), 1), 0.3))
    density = np.exp(fitted[1].row_ratio(rows) - 0.5 * grid**2) / np.sqrt(2.0 * np.pi)
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-3)


def test_failures_before_every_delay_are_no_trouble() -> None:
    """`first-step` fails at once, so that no remembered decision is as late as a delay."""
    settings = {"learner": "spline"}
    result = evaluate(apeval.make("first-step"), episodes=300, seed=2, settings=settings)
    assert result.estimate > 0.0


def test_it_samples_from_its_density(fitted: tuple[Feedback, Spline]) -> None:
    """Kolmogorov-Smirnov at 1 in 1,000, 2,000 draws against the integrated density."""
    n = 2_000
    u = np.random.default_rng(1).random((n, 1))
    x = np.full((n, 1), 0.3)
    z = fitted[1].draw(x, np.zeros(n, np.int64), u, None)[:, 0]
    grid = np.linspace(-12.0, 12.0, 4_001)
    ratio = fitted[1].row_ratio(_rows(grid[:, None], np.full((len(grid), 1), 0.3)))
    cdf = np.cumsum(np.exp(ratio - 0.5 * grid**2))
    assert kstest(z, lambda q: np.interp(q, grid, cdf / cdf[-1])).pvalue > 1e-3


def test_bent_failures_are_likelier_than_under_feedback(fitted: tuple[Feedback, Spline]) -> None:
    unseen = bent(2_000, seed=9)
    base, part = fitted
    assert part.log_ratio(unseen).mean() > base.log_ratio(unseen).mean() + 0.3


def test_few_failures_are_not_bent() -> None:
    rows = bent(12)
    base, _ = fit_feedback(rows, np.ones(rows.n), 1, None)
    assert bend(base, rows, np.ones(rows.n), 1) is base


def test_gaussian_failures_cost_nothing() -> None:
    """Where the Gaussian is right, the judges keep the flow out or near the identity."""
    rng = np.random.default_rng(3)
    rows = _rows(rng.standard_normal((300, 1)) - 2.0, rng.standard_normal((300, 1)))
    unseen = _rows(rng.standard_normal((2_000, 1)) - 2.0, rng.standard_normal((2_000, 1)))
    base, _ = fit_feedback(rows, np.ones(rows.n), 1, None)
    part = bend(base, rows, np.ones(rows.n), 1)
    assert part.log_ratio(unseen).mean() > base.log_ratio(unseen).mean() - 0.05


def test_a_run_with_splines_covers() -> None:
    problem = apeval.make("gaussian-sum", steps=3)
    result = evaluate(problem, "ape", episodes=1_500, seed=4, settings={"learner": "spline"})
    assert result.truth is not None
    assert result.interval[0] <= result.truth <= result.interval[1]


def test_outcomes_have_no_spline() -> None:
    with pytest.raises(ApevalError, match="learner=auto"):
        find_part_learner("spline", discrete=True)
