"""`fails` and `margin` ask by parameter name for what they want to know of a step."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium
import numpy as np
import pytest

import apeval
from apeval.adapt.judges import NAMES, StepRecord, as_judge
from apeval.errors import ProblemError, SimulationError
from apeval.problem.draws import Draws, make_key
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.replay import record, replay
from apeval.simulate.rollout import rollout

STEP = StepRecord(
    obs=np.array([1.0, 2.0]),
    reward=-1.0,
    total_reward=-7.0,
    action=2,
    info={"gap": 0.5},
    terminated=True,
    truncated=False,
    env="the environment",
)


class Callable:
    def __call__(self, reward: float, *, env: Any) -> Any:
        return reward, env

    def method(self, action: int, terminated: bool) -> Any:
        return action, terminated


def _with_default(obs: Any, info: Any = None, limit: float = 3.0) -> Any:
    return obs[0], info, limit


def _everything(obs: Any, **rest: Any) -> Any:
    return sorted(rest)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda reward: reward, -1.0),
        (lambda total_reward, action: (total_reward, action), (-7.0, 2)),
        (lambda env, info: (env, info["gap"]), ("the environment", 0.5)),
        (lambda truncated, obs, terminated: (truncated, terminated), (False, True)),
        (lambda *, total_reward: total_reward, -7.0),
        (lambda info, /: info["gap"], 0.5),
        (Callable(), (-1.0, "the environment")),
        (Callable().method, (2, True)),
        (functools.partial(_with_default, limit=4.0), (1.0, None, 4.0)),
        (_with_default, (1.0, None, 3.0)),  # a default is a setting of its own
        (_everything, sorted(set(NAMES) - {"obs"})),
        # by position, whatever the parameters are called
        (lambda x: x[0], 1.0),
        (lambda state, i: i["gap"], 0.5),
        (lambda o, done, cut, i: (o[1], done, cut, i["gap"]), (2.0, True, False, 0.5)),
        (lambda obs, infos: infos["gap"], 0.5),
        (np.sum, 3.0),
        (lambda obs=None: obs[0], 1.0),
        (lambda reward=0.0: reward, -1.0),
    ],
)
def test_a_function_gets_what_it_asks_for(function: Any, expected: Any) -> None:
    assert as_judge("fails", function)(STEP) == expected


def test_what_it_gets_is_its_own() -> None:
    def spoil(obs: Any, info: Any) -> bool:
        obs[:] = 0.0
        info.clear()
        return True

    assert as_judge("fails", spoil)(STEP)
    assert STEP.obs.tolist() == [1.0, 2.0]
    assert STEP.info == {"gap": 0.5}


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda obs, rewrad: True, r"no 'rewrad'. Did you mean 'reward'\?"),
        (lambda a, b, c: True, r"function of 3 arguments \(a, b, c\), and there is no 'a'"),
        (lambda obs, reward, done: True, "there is no 'done'"),
        (lambda obs, *, velocity: True, "there is no 'velocity'"),
        (lambda acton: True, "Did you mean 'action'"),
        (lambda: True, "function of 0 arguments"),
        (lambda *everything: True, "function of 0 arguments"),
        (3.0, "give 'terminated'"),
        ("crashed", "give 'terminated'"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(function: Any, says: str) -> None:
    with pytest.raises(ProblemError, match=says) as caught:
        as_judge("margin", function)
    assert str(caught.value).startswith("margin is")
    assert "obs, reward, total_reward, action, info, terminated, truncated and env" in str(
        caught.value
    )


def _pendulum(**changes: Any) -> apeval.Problem:
    given: dict[str, Any] = {
        "policy": lambda obs: [-3.0 * obs[1] - 1.0 * obs[2]],
        "disturb": apeval.ActionNoise(std=1.0, hold=2),
        "horizon": 10,
    }
    return apeval.from_env("Pendulum-v1", **{**given, **changes})


def _episodes(problem: apeval.Problem, n: int = 12) -> Episodes:
    return rollout(problem, only(Nominal()), make_key(3), np.arange(n), np.arange(n))


def test_the_return_so_far_is_that_of_the_episode() -> None:
    """Compared with the environment alone, driven by the recorded disturbances."""
    seen: list[tuple[Any, ...]] = []

    def margin(total_reward: float, reward: float, action: Any, env: Any) -> float:
        seen.append((total_reward, reward, action.copy(), env.unwrapped.state.copy()))
        return 60.0 + total_reward

    problem = _pendulum(fails=lambda total_reward: total_reward <= -60.0, margin=margin)
    batch = _episodes(problem, 1)
    env = gymnasium.make("Pendulum-v1", max_episode_steps=10)
    seed = Draws(make_key(3), np.arange(1)).seeds()[0]
    obs, _ = env.reset(seed=seed)
    total, at = 0.0, 0
    for e in batch.a_E:
        for _ in range(2):
            wanted = np.asarray(-3.0 * obs[1] - 1.0 * obs[2], np.float32).astype(np.float64) + e
            action = np.clip(wanted, -2.0, 2.0).astype(np.float32)
            obs, reward, *_ = env.step(action)
            total += float(reward)
            assert seen[at][0] == total
            assert seen[at][1] == reward
            assert np.array_equal(seen[at][2], action)
            assert np.array_equal(seen[at][3], env.unwrapped.state)  # type: ignore[attr-defined]
            at += 1
    assert at == len(seen)
    assert batch.margin[0] == pytest.approx(60.0 + total)


def test_an_episode_repeats_alone_also_where_the_environment_is_asked() -> None:
    problem = _pendulum(
        fails=lambda total_reward, env: total_reward < -40.0 or abs(env.unwrapped.state[0]) > 3.0,
        margin=lambda env: 3.0 - abs(env.unwrapped.state[0]),
    )
    batch = _episodes(problem)
    assert 0 < np.count_nonzero(batch.kind) < batch.n
    for i in range(batch.n):
        one = replay(problem, record(batch, i, make_key(3)))
        assert (one.kind[0], one.margin[0]) == (batch.kind[i], batch.margin[i])


def test_names_and_positions_agree_bit_by_bit() -> None:
    by_name = _pendulum(fails=lambda info, obs: obs[0] < 0.0, margin=lambda *, obs: obs[0])
    by_position = _pendulum(fails=lambda o, i: o[0] < 0.0, margin=lambda o: o[0])
    one, two = _episodes(by_name), _episodes(by_position)
    assert np.array_equal(one.margin, two.margin)
    assert np.array_equal(one.kind, two.kind)


def test_a_reward_that_is_no_number_is_told() -> None:
    class Odd(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
        action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return np.zeros(1, np.float32), {}

        def step(self, action: Any) -> Any:
            return np.zeros(1, np.float32), None, False, False, {}

    given: dict[str, Any] = {"policy": lambda obs: [0.0], "disturb": apeval.ActionNoise(std=1.0)}
    quiet = apeval.from_env(Odd, fails=lambda obs: False, horizon=3, **given)
    assert _episodes(quiet, 2).kind.tolist() == [0, 0]  # nobody asks for it
    asks = apeval.from_env(Odd, fails=lambda total_reward: False, horizon=3, **given)
    with pytest.raises(SimulationError, match="the environment's reward as a number raised"):
        _episodes(asks, 2)
