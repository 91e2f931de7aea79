"""Noise with memory: its moments, its density, and sums whose probability is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from scipy.special import ndtr
from tests.curtailed import at_least

import apeval
from apeval.errors import ProblemError
from apeval.problem.correlated import with_correlated_noise

RHO, SIGMA, MEAN, STEPS, BETA = 0.8, 0.5, 0.1, 12, 3.0
LAGS = np.abs(np.subtract.outer(np.arange(STEPS), np.arange(STEPS)))
SPREAD = SIGMA * float(np.sqrt((RHO**LAGS).sum()))  # of the sum of STEPS values
LIMIT = STEPS * MEAN + BETA * SPREAD
TRUTH = float(ndtr(-BETA))


def bare(nominal: Any = None) -> apeval.Problem:
    """The sum of STEPS disturbances, beside the last of them, must stay below LIMIT at the end."""

    def step(x: np.ndarray, a_A: Any, a_E: np.ndarray, draws: Any) -> np.ndarray:
        return np.column_stack([x[:, 0] + a_E[:, 0], a_E[:, 0]])

    return apeval.Problem(
        nominal=nominal or apeval.Normal(MEAN, SIGMA),
        reset=lambda draws: np.zeros((draws.n, 2)),
        step=step,
        failed=lambda x: x[:, 0] > LIMIT,
        margin=lambda x: LIMIT - x[:, 0],
        horizon=STEPS,
        judge_at_end=True,
    )


def noisy() -> apeval.Problem:
    return apeval.with_correlated_noise(bare(), RHO, MEAN)


def test_the_noise_is_stationary_with_the_autocorrelation_of_ar1() -> None:
    n = 4_000
    run = apeval.InMemory(noisy())
    apeval.evaluate(run.of, "mc", episodes=n, seed=0, recorder=run)
    s, a_E = run.episodes.s.reshape(n, STEPS, 3), run.episodes.a_E.reshape(n, STEPS)
    assert np.all(s[:, 0, 2] == MEAN)  # nothing has acted yet
    assert np.array_equal(s[:, 1, 2], a_E[:, 0])
    assert np.array_equal(s[:, 1:, 1], s[:, 1:, 2])  # what acted is what the view shows
    v = s[:, 1:, 2]
    four = 4.0 / np.sqrt(n)  # standard errors
    assert np.abs(v.mean(axis=0) - MEAN).max() < SIGMA * four
    assert np.abs(v.std(axis=0) / SIGMA - 1.0).max() < four / np.sqrt(2.0)
    for lag in (1, 3, 6):
        found = np.corrcoef(v[:, 2], v[:, 2 + lag])[0, 1]
        assert abs(found - RHO**lag) < four
    log_p = apeval.Normal(MEAN, SIGMA).given(None, None).log_prob(a_E.reshape(-1, 1))
    assert run.sample.log_p == pytest.approx(log_p.reshape(n, STEPS).sum(axis=1))


@pytest.mark.parametrize("method", ["ape", "cem"])
def test_a_sum_of_noise_has_its_gaussian_probability(method: str) -> None:
    """10 intervals at 95 %: fewer than 7 hits would be 1 in 900."""

    def covers(seed: int) -> bool:
        found = apeval.evaluate(noisy(), method, episodes=1_500, seed=seed, check=seed == 0)
        return found.interval[0] <= TRUTH <= found.interval[1]

    assert at_least(7, range(10), covers)


def test_a_law_that_depends_on_the_state_sees_the_problems_own_state() -> None:
    seen = []

    def std(x: np.ndarray, a_A: np.ndarray) -> np.ndarray:
        seen.append(x.shape)
        return np.full((len(x), 1), SIGMA)

    problem = with_correlated_noise(bare(apeval.Normal(0.0, std, dim=1)), -0.5)
    apeval.evaluate(problem, "mc", episodes=20, seed=0)
    assert {shape[1:] for shape in seen} == {(2,)}


def test_a_run_of_it_is_stored_and_reweighted(tmp_path: Path) -> None:
    """Innovations 1.1 times as wide make the sum 1.1 times as wide."""
    problem = apeval.with_correlated_noise(bare(apeval.Normal(0.0, SIGMA)), RHO)
    apeval.evaluate(problem, episodes=3_000, seed=1, recorder=apeval.Recorder(tmp_path / "run"))
    run = apeval.load(tmp_path / "run")
    assert run.identity["nominal"]["of"]["std"] == [SIGMA]
    answer = apeval.reweight(run, "std*1.1")
    assert answer.interval is not None
    truth = float(ndtr(-LIMIT / (1.1 * SPREAD)))
    assert answer.interval[0] <= truth <= answer.interval[1]


@pytest.mark.parametrize(
    ("nominal", "correlation", "mean", "why"),
    [
        (apeval.Categorical([0.5, 0.5]), 0.5, 0.0, "continuous"),
        (apeval.Normal(), 1.0, 0.0, "between −1 and 1"),
        (apeval.Normal(), float("nan"), 0.0, "between −1 and 1"),
        (apeval.Normal(), 0.5, [0.0, 1.0], "mean must be"),
        (apeval.Normal(), 0.5, float("inf"), "finite"),
    ],
)
def test_what_is_no_such_noise_is_refused(
    nominal: Any, correlation: float, mean: Any, why: str
) -> None:
    with pytest.raises(ProblemError, match=why):
        apeval.with_correlated_noise(bare(nominal), correlation, mean)


class Adder(gymnasium.Env[Any, Any]):
    """Adds up its actions."""

    action_space = gymnasium.spaces.Box(-100.0, 100.0, (1,), np.float64)
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.total, self.taken = 0.0, 0
        return np.array([self.total]), {}

    def step(self, action: Any) -> Any:
        self.total, self.taken = self.total + float(action[0]), self.taken + 1
        return np.array([self.total]), 0.0, False, self.taken == STEPS, {}


def adding(**options: Any) -> apeval.Problem:
    return apeval.from_env(
        Adder,
        policy=lambda obs: np.zeros(1),
        disturb=apeval.ActionNoise(std=SIGMA, mean=MEAN, **options),
        fails=lambda obs, terminated, truncated, info: truncated and obs[0] > LIMIT,
        horizon=STEPS,
    )


def test_an_environment_gets_the_same_noise() -> None:
    """The innovations of the batched problem, played in the environment, give its sums."""
    problem, n = adding(correlation=RHO), 40
    run, other = apeval.InMemory(problem), apeval.InMemory(noisy())
    for it in (run, other):
        apeval.evaluate(it.of, "mc", episodes=n, seed=5, recorder=it)
    assert run.episodes.s.shape[1] == 2  # the observation, and the noise's memory
    assert np.array_equal(run.episodes.a_E, other.episodes.a_E)
    assert run.episodes.s_end == pytest.approx(other.episodes.s_end[:, [0, 2]], abs=1e-12)
    assert run.episodes.s[run.episodes.t == 0, 1].tolist() == [MEAN] * n


def test_memory_goes_from_value_to_held_value() -> None:
    problem = adding(correlation=RHO, hold=3)
    run = apeval.InMemory(problem)
    apeval.evaluate(problem, "mc", episodes=2_000, seed=0, recorder=run)
    blocks = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    spread = 3.0 * SIGMA * np.sqrt((RHO**blocks).sum())
    total = run.episodes.s_end[:, 0]
    assert total.std() / spread == pytest.approx(1.0, abs=4.0 / np.sqrt(2 * 2_000))


@pytest.mark.parametrize(
    ("noise", "why"),
    [
        (apeval.ActionNoise(0.1, correlation=1.5), "between −1 and 1"),
        (apeval.ActionNoise(0.1, bound=0.3, correlation=0.5), "exclude each other"),
        (apeval.ParameterNoise("total", 0.1, once=True, correlation=0.5), "drawn once"),
    ],
)
def test_an_environment_refuses_what_is_no_such_noise(noise: Any, why: str) -> None:
    with pytest.raises(ProblemError, match=why):
        apeval.from_env(Adder, policy=lambda obs: np.zeros(1), disturb=noise, fails="truncated")
