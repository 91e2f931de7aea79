"""The environment of a training: exact weights, and the problem's own world."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import apeval
from apeval.adapt.with_policy import PlannedProblem
from apeval.errors import ApevalError, ProblemError


class Drift(gymnasium.Env[Any, Any]):
    """x' = x + action + what is added; it fails from 3 on. The reward is −x²."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gymnasium.spaces.Box(-3.0, 3.0, (1,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x = np.zeros(1, np.float32)
        return self.x.copy(), {}

    def step(self, action: Any) -> Any:
        self.x = (self.x + np.asarray(action)).astype(np.float32)
        return self.x.copy(), -float(self.x[0] ** 2), False, False, {"here": True}


def policy(obs: Any) -> Any:
    return np.clip(-0.3 * obs, -1.0, 1.0)


def shifted(env: Any, k: int) -> None:
    env.unwrapped.x += np.float32((0.0, -1.0, 1.0)[k])


def drift(**changes: Any) -> apeval.Problem:
    given: dict[str, Any] = {
        "policy": policy,
        "disturb": apeval.ActionNoise(std=0.6),
        "fails": lambda obs: abs(obs[0]) >= 3.0,
        "margin": lambda obs: 3.0 - abs(float(obs[0])),
        "horizon": 8,
        **changes,
    }
    return apeval.from_env(Drift, **given)


def learned(problem: apeval.Problem) -> Any:
    run = apeval.InMemory(problem)
    apeval.evaluate(problem, episodes=400, seed=3, recorder=run)
    return run.proposal


def played(env: Any, episodes: int) -> tuple[Any, Any, Any]:
    """Failures, returns and weights of whole episodes, with the policy above."""
    failures, returns, weights = [], [], []
    for _ in range(episodes):
        obs, _ = env.reset()
        total, over = 0.0, False
        while not over:
            obs, reward, terminated, truncated, info = env.step(policy(obs))
            total += reward
            over = terminated or truncated
        failures.append(info["failure"] > 0)
        returns.append(total)
        weights.append(np.exp(info["log_weight"]))
    return np.array(failures), np.array(returns), np.array(weights)


@pytest.mark.parametrize(
    "disturb",
    [
        apeval.ActionNoise(std=0.6),
        apeval.ActionNoise(std=0.6, hold=2),
        apeval.ObservationNoise(std=1.2),
        [apeval.ActionNoise(std=0.5), apeval.StartNoise("x[0]", std=0.4, observe=lambda e: e.x)],
        apeval.Event([0.6, 0.2, 0.2], apply=shifted),
    ],
    ids=["acts first", "held", "sensor", "start", "event"],
)
def test_weighted_means_are_those_of_the_nominal_world(disturb: Any) -> None:
    problem = drift(disturb=disturb)
    n = 400
    env = apeval.adversarial_env(problem, learned(problem), share=0.6, seed=11)
    _, returns, w = played(env, n)
    _, nominal, ones = played(apeval.adversarial_env(problem, share=0.0, seed=12), n)
    assert np.allclose(ones, 1.0)
    assert w.max() <= 1.0 / 0.4 * (1.0 + 1e-9)  # π_E,gt has 0.4 of the mixture
    for weighted, plain in ((w * returns, nominal), (w, ones)):
        error = np.hypot(weighted.std(), plain.std()) / np.sqrt(n)
        assert abs(weighted.mean() - plain.mean()) < 4.0 * error


def test_an_adversary_makes_failures_frequent_and_says_so() -> None:
    problem = drift(disturb=apeval.ActionNoise(std=0.45))
    env = apeval.adversarial_env(problem, learned(problem), share=0.5, seed=1)
    rare, _, _ = played(apeval.adversarial_env(problem, seed=1), 300)
    often, _, w = played(env, 300)
    assert often.mean() > 0.15 > 3.0 * rare.mean()
    result = apeval.evaluate(problem, episodes=1_000, seed=5)
    hits = w * often
    error = np.hypot(hits.std() / np.sqrt(300), result.standard_error)
    assert abs(hits.mean() - result.estimate) < 4.0 * error


def test_rewards_may_carry_the_weight() -> None:
    problem = drift()
    adversary = apeval.widened(problem, 2.0)
    n = 400
    full = apeval.adversarial_env(problem, adversary, share=0.5, weights="full", seed=2)
    _, returns, _ = played(full, n)
    _, nominal, _ = played(apeval.adversarial_env(problem, seed=4), n)
    error = np.hypot(returns.std(), nominal.std()) / np.sqrt(n)
    assert abs(returns.mean() - nominal.mean()) < 4.0 * error
    clipped = apeval.adversarial_env(problem, adversary, share=0.5, weights="clipped", seed=2)
    _, held_back, _ = played(clipped, 200)
    assert np.all(held_back >= returns[:200] - 1e-9)  # rewards are negative, weights at most 1


@pytest.mark.filterwarnings("ignore:.*WARN:UserWarning")
def test_it_is_an_environment_of_gymnasium() -> None:
    from gymnasium.utils.env_checker import check_env

    problem = drift()
    check_env(apeval.adversarial_env(problem, apeval.widened(problem, 2.0)), skip_render_check=True)


def test_seeds_repeat_episodes() -> None:
    problem = drift()
    env = apeval.adversarial_env(problem, apeval.widened(problem, 2.0))
    seen = []
    for _ in range(2):
        obs, _ = env.reset(seed=7)
        seen.append([float(env.step(policy(obs))[0][0]) for _ in range(3)])
    assert seen[0] == seen[1]


def test_a_failure_ends_the_episode_and_has_its_reward() -> None:
    problem = drift(disturb=apeval.ActionNoise(std=0.01))
    env = apeval.adversarial_env(problem, failure_reward=-100.0, seed=0)
    env.reset()
    rewards = []
    for _ in range(3):
        _, reward, terminated, truncated, info = env.step(1.1 * np.ones(1))
        rewards.append(reward)
    assert (terminated, truncated, info["failure"]) == (True, False, 1)
    assert info["here"]
    assert rewards[-1] < -100.0 < min(rewards[:-1])
    with pytest.raises(ApevalError, match="call reset"):
        env.step(np.ones(1))


def test_outcomes_are_widened_too() -> None:
    problem = drift(disturb=apeval.DropAction(probability=0.05))
    env = apeval.adversarial_env(problem, apeval.widened(problem, 3.0), share=0.5, seed=3)
    _, _, w = played(env, 400)
    assert w.min() < 1.0 < w.max()
    assert abs(w.mean() - 1.0) < 4.0 * w.std() / np.sqrt(400)


def test_the_policy_of_a_problem_can_be_exchanged() -> None:
    problem = drift()
    weaker = PlannedProblem.of(problem).with_policy(lambda obs: np.zeros(1))
    before = apeval.evaluate(problem, "mc", episodes=400, seed=0)
    after = apeval.evaluate(weaker, "mc", episodes=400, seed=0)
    assert after.estimate > before.estimate + 0.05
    assert apeval.evaluate(problem, "mc", episodes=400, seed=0).estimate == before.estimate


def test_bad_arguments_are_refused() -> None:
    problem = drift()
    for wrong, text in (
        ({"share": 1.0}, "share"),
        ({"weights": "half"}, "weights"),
        ({"adversary": [1]}, "frozen proposal"),
        ({"failure_reward": float("nan")}, "failure_reward"),
    ):
        with pytest.raises(ApevalError, match=text):
            apeval.adversarial_env(problem, **{"adversary": None, **wrong})
    with pytest.raises(ApevalError, match="sigma"):
        apeval.widened(problem, 1.0)
    with pytest.raises(ProblemError, match="from_env"):
        apeval.adversarial_env(apeval.make("walk"))
