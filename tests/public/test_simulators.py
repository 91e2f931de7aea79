"""Policies in simulators beyond CartPole: against their originals, and truths against counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

import apeval
from apeval.errors import ProblemError
from apeval.problem.types import FloatArray
from apeval_public.policies.double_integrator import pushed
from apeval_public.policies.lane_keeper import NOISE, steered
from apeval_public.policies.scalar_noise import count_beyond, farthest_car, farthest_mass
from apeval_public.truth.monte_carlo import count

TAIL = 1e-4  # of a false alarm, on each side


@pytest.mark.parametrize(
    ("name", "farthest", "limit", "steps"),
    [
        ("double-integrator", farthest_mass, 0.45, 60),
        ("lane-keeper", farthest_car, 0.5, 60),
    ],
)
def test_one_noise_a_step_stands_for_all_channels(
    name: str,
    farthest: Callable[[np.random.Generator, int, int], FloatArray],
    limit: float,
    steps: int,
) -> None:
    """The problem with all its channels fails as often as the quick simulation of its truth."""
    quick = count_beyond(farthest, limit, steps, 40_000, 3) / 40_000
    n = 4_096
    found = int(count(apeval.make(name, limit=limit, steps=steps), 4, 0, n).sum())
    slack = 4.0 * np.sqrt(quick * (1.0 - quick) / 40_000)
    assert binom.ppf(TAIL, n, quick - slack) <= found <= binom.ppf(1.0 - TAIL, n, quick + slack)
    assert 10 < found < n // 2


def test_only_two_channels_matter() -> None:
    rng = np.random.default_rng(0)
    mass, car = rng.normal(size=(5, 2)), rng.normal(0.0, 0.1, (5, 3))
    noise = rng.normal(size=(5, 8))
    other = noise.copy()
    other[:, 2:] += 1.0
    assert np.array_equal(pushed(mass, noise), pushed(mass, other))
    assert np.array_equal(steered(car, noise[:, :6]), steered(car, other[:, :6]))
    for channel in (0, 1):
        moved = noise.copy()
        moved[:, channel] += 0.1 * NOISE[channel]
        assert not np.array_equal(pushed(mass, noise), pushed(mass, moved))
        assert not np.array_equal(steered(car, 0.01 * noise), steered(car, 0.01 * moved))


@pytest.mark.parametrize("name", ["cartpole", "double-integrator", "lane-keeper"])
def test_truths_are_stored_with_errors_below_ten_percent(name: str) -> None:
    problem = apeval.make(name)
    assert problem.truth is not None
    known = problem.truth()
    assert 0.0 < known.standard_error <= 0.1 * known.value
    assert known.provenance["command"].startswith("python -m apeval_public.")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("double-integrator", {"limit": 0.0}),
        ("double-integrator", {"channels": 1}),
        ("lane-keeper", {"steps": 0}),
        ("inverted-pendulum", {"std": 0.0}),
        ("highway-cars", {"std": -1.0}),
    ],
)
def test_parameters_that_make_no_sense_are_refused(name: str, settings: dict[str, float]) -> None:
    with pytest.raises(ProblemError, match="must be"):
        apeval.make(name, **settings)


def test_the_pendulum_stands_without_noise_and_falls_with_much() -> None:
    pytest.importorskip("mujoco")
    assert count(apeval.make("inverted-pendulum", std=1e-3, steps=40), 0, 0, 4).sum() == 0
    assert count(apeval.make("inverted-pendulum", std=50.0, steps=40), 0, 0, 4).sum() > 0


def test_the_highway_is_highway_env_s() -> None:
    """Drivers without an error drive as highway-env's own do, to the bit; with one, not."""
    gymnasium = pytest.importorskip("gymnasium")
    pytest.importorskip("highway_env")
    from apeval_public.policies.highway_cars import CARS, CONFIG, _disturb, _drive, _make

    ours = _make()
    plain = {k: v for k, v in CONFIG.items() if k != "other_vehicles_type"}
    theirs = gymnasium.make("highway-fast-v0", config=plain, disable_env_checker=True)
    for strength in (0.0, 2.0):
        seen, _ = ours.reset(seed=1)
        other, _ = theirs.reset(seed=1)
        for _ in range(6):
            _disturb(ours, np.full(CARS, strength))
            action = _drive(seen)
            seen, other = ours.step(action)[0], theirs.step(action)[0]
        assert np.array_equal(seen, other) is (strength == 0.0)
