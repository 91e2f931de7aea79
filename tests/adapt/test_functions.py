"""Simulators that are functions, in NumPy and in JAX: the disturbances of one environment, chance
by address, and the same bits everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
from tests.adapt.bit_identity import KEY, company_does_not_matter, episodes, runs_agree, same

import apeval
from apeval.errors import ApevalError, ProblemError
from apeval.problem.draws import Draws
from apeval.problem.problem import Problem
from apeval.simulate.identity.code import digest

BOX = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)


def start(draws: Any) -> Any:
    x = 0.2 * draws.normal(2)
    return x, x


def move(draws: Any, x: Any, action: Any) -> Any:
    """A point that drifts, with chance of its own; it ends below −1.5."""
    push = action[:, 0]
    x = np.column_stack([x[:, 0] + push + 0.1 * draws.normal(1)[:, 0], 0.9 * x[:, 1] + push])
    return x, x, x[:, 0], x[:, 0] < -1.5, {"room": 2.0 - x[:, 0]}


def drift(**changes: Any) -> Problem:
    given: dict[str, Any] = {
        "action_space": BOX,
        "policy": lambda obs: -0.2 * obs[:, 1],
        "disturb": apeval.ActionNoise(std=0.8),
        "fails": lambda obs: obs[:, 0] > 2.0,
        "margin": lambda info: info["room"],
        "horizon": 12,
        "num_envs": 8,
    }
    given.update(changes)
    reset, step = given.pop("reset", start), given.pop("step", move)
    return apeval.from_functions(reset, step, **given)


DISTURBANCES = {
    "action": apeval.ActionNoise(std=0.8, hold=3),
    "seen": [apeval.ObservationNoise(std=4.0), apeval.BlankSensor(0.2), apeval.DropAction(0.2)],
    "kick": apeval.ParameterNoise("state[0]", std=0.7, kick=True),
    "start": [apeval.StartNoise("state", std=[1.0, 0.2]), apeval.ActionNoise(std=0.5)],
    "custom": apeval.CustomNoise(lambda env, e: setattr(env, "state", env.state + e), 0.6, dim=2),
}


@pytest.mark.parametrize("name", DISTURBANCES)
def test_numpy_functions_keep_the_contract_under_every_disturbance(name: str) -> None:
    batch = company_does_not_matter(drift(disturb=DISTURBANCES[name]))
    assert len({*batch.length.tolist()}) > 2


def test_a_push_on_the_state_is_added_before_the_step() -> None:
    def quiet(draws: Any, x: Any, action: Any) -> Any:
        x = x + action
        return x, x, x[:, 0], x[:, 0] > 9.0, {}

    problem = drift(
        step=quiet,
        disturb=[
            apeval.ParameterNoise("state[1]", std=0.5, kick=True),
            apeval.StartNoise("state[0]", std=1.0, replace=True),
        ],
        policy=lambda obs: np.zeros(len(obs)),
        margin=None,
    )
    batch = episodes(problem, 10)
    for i in range(10):
        x = np.array(batch.s[batch.episode == i][0][:2])
        assert x[0] == batch.a_0[i, 0]
        for e in batch.a_E[batch.episode == i]:
            x = x + np.array([0.0, e[0]])
        assert np.array_equal(batch.s_end[i][:2], x)


def test_numpy_runs_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_agree(drift, tmp_path, monkeypatch)


def test_chance_has_its_law_and_differs_from_step_to_step() -> None:
    def chance(draws: Any, x: Any, action: Any) -> Any:
        z = draws.normal(2)
        return z, z, z[:, 0], np.zeros(len(z), bool), {}

    problem = drift(
        step=chance, fails=lambda obs: obs[:, 0] > 9.0, margin=None, horizon=50, num_envs=64
    )
    z = episodes(problem, 64).s
    assert len(np.unique(z)) == z.size
    assert abs(z[64:].mean()) < 4.0 / np.sqrt(z[64:].size)
    assert abs(z[64:].var() - 1.0) < 4.0 * np.sqrt(2.0 / z[64:].size)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"action_space": None}, "give the space of one action"),
        ({"reset": lambda draws: draws.normal(2)}, "reset returned a ndarray, expected two"),
        ({"step": lambda draws, x, a: (x, x)}, "step returned 2 values, expected five"),
        ({"disturb": apeval.ParameterNoise("mass", std=1.0)}, "has 'state' and 'params'"),
        ({"disturb": apeval.ParameterNoise("params.g", std=1.0)}, "no 'g'|no params|unknown"),
        ({"disturb": apeval.ParameterNoise("state.v", std=1.0)}, "unknown attribute"),
        (
            {
                "reset": lambda draws: (draws.normal(1), {"x": draws.normal(1)}),
                "step": lambda draws, x, a: (x["x"], x, a[:, 0], a[:, 0] > 9, {}),
                "disturb": apeval.StartNoise("state['x']", std=1.0),
            },
            "do not say how a changed state is observed",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_remedy(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ApevalError, match=says):
        episodes(drift(**{"fails": "terminated", "margin": None, **changes}))


def jax_pole(**changes: Any) -> Problem:
    pytest.importorskip("jax", reason="the extra jax is not installed")
    given: dict[str, Any] = {
        "policy": lean_back(),
        "disturb": apeval.ParameterNoise("state.rate", std=0.12, kick=True),
        "margin": lambda obs: 1.0 - np.abs(obs[:, 0]),
        "num_envs": 8,
    }
    given.update(changes)
    return apeval.from_jax(given.pop("env", None) or pole(), **given)


class PoleState(NamedTuple):
    angle: Any
    rate: Any
    time: Any


class PoleParams(NamedTuple):
    gravity: float = 1.0
    max_steps_in_episode: int = 15


@lru_cache
def lean_back() -> Any:
    import jax

    return jax.jit(lambda obs: -0.5 * obs[:, :1] - 0.3 * obs[:, 1:2])


@lru_cache
def pole() -> Any:
    """An environment in gymnax's form, whose `done` counts its own limit of steps."""
    import jax
    import jax.numpy as jnp

    class Pole:
        default_params = PoleParams()

        def reset_env(self, key: Any, params: Any) -> Any:
            angle, rate = 0.1 * jax.random.normal(key, (2,))
            state = PoleState(angle, rate, 0)
            return self.get_obs(state), state

        def step_env(self, key: Any, state: Any, action: Any, params: Any) -> Any:
            gust = 0.05 * jax.random.normal(key)
            pull = 0.2 * params.gravity * jnp.sin(state.angle)
            rate = state.rate + pull + 0.3 * action[0] + gust
            state = PoleState(state.angle + 0.5 * rate, rate, state.time + 1)
            over = (jnp.abs(state.angle) > 1.0) | (state.time >= params.max_steps_in_episode)
            return self.get_obs(state), state, 1.0, over, {"discount": 1.0 - over}

        def reset(self, key: Any, params: Any = None) -> Any:
            raise AssertionError("it resets by itself")

        step = reset

        def get_obs(self, state: Any) -> Any:
            return jnp.array([state.angle, state.rate])

        def action_space(self, params: Any) -> Any:
            return gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    return Pole()


JAX_DISTURBANCES = {
    "kick": apeval.ParameterNoise("state.rate", std=0.12, kick=True, correlation=0.3),
    "params": apeval.ParameterNoise("params.gravity", std=4.0, hold=2),
    "start": [apeval.StartNoise("state.angle", std=0.5), apeval.ObservationNoise(std=0.5)],
}


@pytest.mark.parametrize("name", JAX_DISTURBANCES)
def test_jax_functions_keep_the_contract_under_every_disturbance(name: str) -> None:
    batch = company_does_not_matter(jax_pole(disturb=JAX_DISTURBANCES[name]))
    assert 0 < np.count_nonzero(batch.kind) < batch.n


def test_the_own_limit_of_steps_is_no_failure() -> None:
    problem = jax_pole(disturb=apeval.ParameterNoise("state.rate", std=0.1, kick=True))
    assert problem.horizon == 15
    batch = episodes(problem)
    over = np.abs(batch.s_end[:, 0]) > 1.0
    assert np.array_equal(batch.kind > 0, over)
    assert set(batch.length[~over].tolist()) == {15}


def test_jax_steps_are_those_of_the_environment_itself() -> None:
    problem = jax_pole(disturb=apeval.ActionNoise(std=0.5, saturate=False))
    from jax import random

    batch, env, policy = episodes(problem, 2), pole(), lean_back()
    for i, seed in enumerate(Draws(KEY, np.arange(2)).seeds()):
        rows = batch.episode == i
        own = random.fold_in(random.PRNGKey(seed % 2**32), seed >> 32)
        obs, state = env.reset_env(random.fold_in(own, 2**32 - 1), env.default_params)
        for t, (seen, e) in enumerate(zip(batch.s[rows], batch.a_E[rows], strict=True)):
            assert np.allclose(obs, seen, atol=1e-5)
            action = np.asarray(policy(np.asarray(obs)[None]))[0] + e
            key = random.fold_in(own, t)
            obs, state, *_ = env.step_env(key, state, action, env.default_params)
        assert np.allclose(obs, batch.s_end[i], atol=1e-5)


def test_a_pair_of_functions_in_jax() -> None:
    jax = pytest.importorskip("jax", reason="the extra jax is not installed")

    def begin(key: Any) -> Any:
        x = 0.1 * jax.random.normal(key, (1,))
        return x, {"x": x}

    def go(key: Any, state: Any, action: Any) -> Any:
        x = state["x"] + action - 1
        return x, {"x": x}, x[0], jax.numpy.abs(x[0]) > 3.0, {}

    problem = jax_pole(
        env=(begin, go),
        action_space=gymnasium.spaces.Discrete(3),
        policy=lambda obs: (obs[:, 0] < 0.0) * 2,
        disturb=apeval.ParameterNoise("state['x']", std=1.0, kick=True),
        margin=lambda obs: 3.0 - np.abs(obs[:, 0]),
        horizon=10,
    )
    batch = company_does_not_matter(problem)
    assert 0 < np.count_nonzero(batch.kind) < batch.n


def test_jax_runs_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_agree(jax_pole, tmp_path, monkeypatch, workers=1)


def test_wrappers_and_other_things_are_refused() -> None:
    class Wrapper:
        def __init__(self, env: Any) -> None:
            self._env = env

        def __getattr__(self, name: str) -> Any:
            return getattr(self._env, name)

        def step(self) -> None: ...

    for env, says in (
        (Wrapper(pole()), "wraps an environment that resets by itself"),
        (3, "gymnax"),
    ):
        with pytest.raises(ProblemError, match=says):
            jax_pole(env=env)


def test_a_class_that_jax_does_not_know_is_named_with_the_remedy() -> None:
    @dataclass
    class Unknown:
        gravity: float = 1.0

    with pytest.raises(ProblemError, match="define its class in a file of its own"):
        jax_pole(params=Unknown())


def test_a_jitted_policy_of_batches_keeps_the_contract() -> None:
    jax = pytest.importorskip("jax", reason="the extra jax is not installed")
    weights = np.random.default_rng(0).normal(size=(3, 64)).astype(np.float32)
    policy = jax.jit(lambda obs: jax.numpy.tanh(obs @ weights).mean(axis=1, keepdims=True))
    given: Any = {"disturb": apeval.ObservationNoise(std=0.3), "fails": lambda obs: obs[0] < -0.9}
    company_does_not_matter(
        apeval.from_env("Pendulum-v1", policy=apeval.BatchPolicy(policy), horizon=12, **given)
    )


def test_weights_in_jax_count_in_the_identity_of_a_policy() -> None:
    jax = pytest.importorskip("jax", reason="the extra jax is not installed")

    def policy(weight: float) -> Any:
        weights = jax.numpy.full((2, 1), weight)
        return jax.jit(lambda obs: obs @ weights)

    assert digest(policy(1.0)) == digest(policy(1.0))
    assert digest(policy(1.0)) != digest(policy(2.0))


def test_both_forms_agree_with_each_other_where_there_is_no_chance() -> None:
    """The same arithmetic, of one episode in JAX and of many in NumPy."""
    pytest.importorskip("jax", reason="the extra jax is not installed")
    import jax.numpy as jnp

    noise = apeval.ActionNoise(std=0.5, saturate=False)
    given: dict[str, Any] = {"policy": lambda obs: -0.5 * obs, "disturb": noise, "horizon": 6}
    given.update(action_space=BOX, fails=lambda obs: obs[:, 0] > 1.0, margin=None, num_envs=8)
    one = jax_pole(
        env=(lambda key: (jnp.zeros(1), jnp.zeros(1)),
             lambda key, x, a: (x + a, x + a, 0.0, x[0] > 9.0, {})),
        **given,
    )  # fmt: skip
    many = apeval.from_functions(
        lambda draws: (np.zeros((draws.n, 1), np.float32),) * 2,
        lambda draws, x, a: (x + np.float32(a), x + np.float32(a), x[:, 0], x[:, 0] > 9.0, {}),
        **given,
    )
    same(episodes(one), episodes(many))
