"""pyTAMS's examples, and the pendulum of AA228V: truths against the simulators."""

from __future__ import annotations

import numpy as np
import pytest

import apeval
from apeval_public.diffusions.double_well_passage import passage
from apeval_public.diffusions.ornstein_uhlenbeck_passage import NOISE, SIGMA
from apeval_public.learned_proposals.aa228v import swing
from apeval_public.truth.levels import split
from apeval_public.truth.monte_carlo import agreement


def test_the_ornstein_uhlenbeck_process_has_pytams_scaling() -> None:
    """A noise of √(2ε dt) = 0.1 a step, and a level of 6 √(ε/θ) = 4.24264068712."""
    problem = apeval.make("ornstein-uhlenbeck")
    assert pytest.approx(0.1) == NOISE
    assert float(problem.margin(np.zeros((1, 1)))[0]) == pytest.approx(4.24264068712, rel=1e-11)
    assert pytest.approx(0.5**0.5) == SIGMA


@pytest.mark.parametrize("controlled", [False, True])
def test_the_ornstein_uhlenbeck_truth_is_met_by_counting(controlled: bool) -> None:
    problem = apeval.make("ornstein-uhlenbeck", level=3.0, controlled_start=controlled)
    assert agreement(problem, problem.truth(), 2_000, 10_000)["agrees"]


def test_splitting_for_truths_is_unbiased() -> None:
    """An AR(1) process whose truth is a quadrature, 60 runs of 60 particles: 4 standard errors."""
    problem = apeval.make("ar1", phi=0.9, threshold=7.0, steps=12)
    found = np.array([split(problem, 60, seed)[0] for seed in range(60)])
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert error < 0.15 * found.mean()
    assert abs(found.mean() - problem.truth().value) < 4.0 * error


def test_the_double_well_truth_is_met_by_counting() -> None:
    problem = apeval.make("double-well")
    assert agreement(problem, problem.truth(), 2_000, 10_000)["agrees"]


def test_the_double_well_truth_does_not_hang_on_the_grid() -> None:
    assert passage(0.1, 0.02) == pytest.approx(apeval.make("double-well").truth().value, rel=2e-3)


def test_the_aa228v_pendulum_moves_as_published() -> None:
    """One step by hand: torque −15·0.1 − 8·0.2 = −3.1 is cut to −2."""
    x = np.array([[0.1, 0.2]])
    omega = 0.2 + 0.05 * (15.0 * np.sin(0.1) - 6.0)
    assert swing(x, x)[0] == pytest.approx([0.1 + 0.05 * omega, omega], rel=1e-14)


def test_the_aa228v_truth_is_met_by_counting() -> None:
    problem = apeval.make("aa228v-pendulum")
    assert agreement(problem, problem.truth(), 10_000, 10_000)["agrees"]
    assert problem.truth().value == pytest.approx(8.13e-3, rel=0.05)
