"""The Gymnasium adapter: equal to a plain loop over the environment, envs pooled and closed."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from apeval.errors import ProblemError
from apeval.problem.agent import Stochastic
from apeval.problem.draws import Draws, make_key
from apeval.problem.gym import from_gymnasium
from apeval.problem.laws import Categorical, Normal
from apeval.problem.problem import Problem
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.replay import record, replay
from apeval.simulate.rollout import rollout


class Swing:
    """A noisy pendulum held by the caller's torque; the noise is the environment's own."""

    made = closed = 0

    def __init__(self) -> None:
        Swing.made += 1
        self.rng = np.random.default_rng()
        self.state = np.zeros(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.rng = np.random.default_rng(seed)
        self.state = self.rng.normal(0.0, 0.1, 2)
        if options is not None:
            self.state = self.state + options["a_0"]
        return self.state.copy(), {"energy": self.energy()}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        angle, speed = self.state
        speed += 0.2 * (np.sin(angle) + float(np.asarray(action)[0])) + 0.05 * self.rng.normal()
        self.state = np.array([angle + 0.2 * speed, speed])
        terminated = bool(abs(self.state[0]) > 1.2)
        truncated = bool(abs(self.state[1]) < 1e-3)
        return self.state.copy(), 1.0, terminated, truncated, {"energy": self.energy()}

    def energy(self) -> float:
        return float(np.cos(self.state[0]) + 0.5 * self.state[1] ** 2)

    def close(self) -> None:
        Swing.closed += 1


def policy(obs: Any) -> Any:
    return np.array([-2.0 * obs[0] - obs[1]])


def apply(env: Swing, a_A: Any, a_E: Any) -> Any:
    return env.step(a_A + a_E)


def fell(obs: Any, terminated: bool, truncated: bool, info: dict[str, Any]) -> int:
    return (1 if obs[0] > 0.0 else 2) if terminated else 0


def gap(obs: Any, terminated: bool, truncated: bool, info: dict[str, Any]) -> float:
    return 1.2 - abs(float(obs[0]))


def energy_view(obs: Any, info: dict[str, Any]) -> Any:
    return [*obs, info["energy"]]


def swing(**changes: Any) -> Problem:
    given: dict[str, Any] = {
        "nominal": Normal(0.0, 2.5),
        "failed": fell,
        "horizon": 12,
        "agent": policy,
        "apply": apply,
        "margin": gap,
        "views": {"energy": energy_view},
        "kinds": ("right", "left"),
    }
    return from_gymnasium(Swing, **{**given, **changes})


def nominal(problem: Problem, n: int, seed: int = 0) -> Episodes:
    ids = np.arange(n)
    return rollout(problem, only(Nominal()), make_key(seed), ids, ids)


def test_equals_a_plain_loop_over_the_environment() -> None:
    problem, n = swing(), 60
    batch = nominal(problem, n)
    assert {0, 1, 2} == set(batch.kind)
    seeds = Draws(make_key(0), np.arange(n)).seeds()
    for i in range(n):
        rows = batch.rows_of(i)
        env, margin, kind = Swing(), np.inf, 0
        obs, info = env.reset(seed=seeds[i])
        for t, a_E in enumerate(batch.a_E[rows]):
            assert np.array_equal(batch.s[rows][t], [*obs, info["energy"]])
            a_A = policy(obs)
            assert np.array_equal(batch.a_A[rows][t], a_A)
            obs, _, terminated, truncated, info = env.step(a_A + a_E)
            margin = min(margin, 1.2 - abs(obs[0]))
            kind = fell(obs, terminated, truncated, info)
            assert (terminated or truncated or t == 11) == (t == batch.length[i] - 1)
        assert np.array_equal(batch.s_end[i], [*obs, info["energy"]])
        assert batch.kind[i] == kind
        assert batch.margin[i] == (min(margin, 0.0) if kind else margin)


def test_results_do_not_depend_on_the_batch_and_replay() -> None:
    problem = swing()
    batch = nominal(problem, 40)
    for i in (0, 7, int(np.flatnonzero(batch.failed)[0])):
        again = replay(problem, record(batch, i, make_key(0)))
        for name in ("s", "a_A", "a_E"):
            assert np.array_equal(getattr(again, name), getattr(batch, name)[batch.rows_of(i)])
        assert again.kind[0] == batch.kind[i]
        assert again.margin[0] == batch.margin[i]
        assert np.array_equal(again.s_end[0], batch.s_end[i])


def test_environments_are_reused_never_shared_and_closed() -> None:
    gc.collect()
    Swing.made = Swing.closed = 0
    problem = swing()
    for seed in range(4):
        nominal(problem, 10, seed)
    assert Swing.made == 10  # every rollout after the first found its environments waiting
    draws = Draws(make_key(0), np.arange(10))
    first, second = problem.reset(draws), problem.reset(draws)
    assert len({id(env) for env in [*first.envs, *second.envs]}) == 20
    kept = first[np.arange(10) < 3]
    envs = [id(env) for env in kept.envs]
    del first, second
    third = problem.reset(draws)
    assert not {id(env) for env in third.envs} & set(envs)
    del problem, third
    assert Swing.closed == 0  # someone still holds three of them
    del kept
    assert Swing.closed == Swing.made == 20


def test_rows_are_chosen_by_mask_index_and_slice() -> None:
    problem = swing()
    x = problem.reset(Draws(make_key(0), np.arange(5)))
    s = problem.observe(x)
    for rows in (np.array([True, False, True, False, False]), np.array([4, 0]), slice(1, 3)):
        assert np.array_equal(problem.observe(x[rows]), s[rows])
        assert len(x[rows]) == len(s[rows])


def test_natures_action_is_the_environments_by_default() -> None:
    """In the action space's type and shape; a whole number for a discrete one."""

    class Space:
        def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
            self.shape, self.dtype = shape, dtype

    class Recorder(Swing):
        seen: tuple[Any, ...] = ()
        space: Any = None

        def __init__(self) -> None:
            super().__init__()
            self.action_space = self.space

        def step(self, action: Any) -> Any:
            Recorder.seen += (action,)
            return np.zeros(2), 0.0, False, False, {}

    def actions(nominal_law: Any, space: Any) -> tuple[Any, ...]:
        Recorder.seen, Recorder.space = (), space
        problem = from_gymnasium(Recorder, nominal=nominal_law, failed=lambda *_: False, horizon=2)
        nominal(problem, 3)
        return Recorder.seen

    square = actions(Normal(0.0, [1.0] * 4), Space((2, 2), np.float32))
    assert all(a.shape == (2, 2) and a.dtype == np.float32 for a in square)
    plain = actions(Normal(0.0, 1.0), None)
    assert all(a.shape == (1,) and a.dtype == np.float64 for a in plain)
    codes = actions(Categorical([0.5, 0.5]), Space((), np.int64))
    assert all(type(a) is int for a in codes)
    assert set(codes) == {0, 1}


def test_a_controlled_start_reaches_the_environment() -> None:
    problem = swing(initial=Normal(0.0, [0.2, 0.2]))
    batch = nominal(problem, 20)
    uncontrolled = nominal(swing(), 20)
    first = [batch.rows_of(i).start for i in range(20)]
    base = [uncontrolled.rows_of(i).start for i in range(20)]
    moved = batch.s[first][:, :2] - uncontrolled.s[base][:, :2]
    assert np.allclose(moved, batch.a_0, atol=1e-15)


def test_a_reset_of_the_users_own() -> None:
    def start(env: Swing, seed: int, a_0: Any) -> Any:
        assert a_0 is None
        env.reset(seed=seed)
        env.state = np.array([0.5, 0.0])
        return env.state, {"energy": 0.0}

    x = swing(reset=start).reset(Draws(make_key(0), np.arange(3)))
    assert np.array_equal(x.observations, [[0.5, 0.0]] * 3)


def test_done_can_be_said_otherwise() -> None:
    problem = swing(failed=lambda *_: False, done=lambda obs, *_: abs(obs[1]) > 1.0)
    batch = nominal(problem, 30)
    ended = batch.length < 12
    assert ended.any()
    assert np.array_equal(ended, (np.abs(batch.s_end[:, 1]) > 1.0) & ended)


def test_a_batch_agent_is_taken_as_it_is() -> None:
    coin = Stochastic(lambda x: np.full((len(x), 2), 0.5))
    problem = swing(agent=coin, apply=lambda env, a_A, a_E: env.step(a_E + 0.1 * a_A))
    batch = nominal(problem, 30)
    assert set(batch.a_A.ravel()) == {0, 1}


def test_an_observation_that_is_no_numbers_needs_a_view() -> None:
    class Named(Swing):
        task: Any = "hold"

        def reset(self, **kwargs: Any) -> Any:
            obs, info = super().reset(**kwargs)
            return {"task": self.task, "angle": obs[0]}, info

    class Numbered(Named):
        task = 3

    def problem(env: Any = Named, **views: Any) -> Problem:
        return from_gymnasium(env, nominal=Normal(), failed=lambda *_: False, horizon=3, **views)

    draws = Draws(make_key(0), np.arange(2))
    with pytest.raises(ProblemError, match=r"part \['task'\] is a str.*views="):
        problem().observe(problem().reset(draws))
    seen = problem(views={"angle": lambda obs, info: obs["angle"]})
    assert seen.observe(seen.reset(draws)).shape == (2, 1)
    flat = problem(Numbered)
    assert flat.observe(flat.reset(draws))[:, 1].tolist() == [3.0, 3.0]


def test_a_problem_can_go_to_another_process() -> None:
    problem = swing()
    before = nominal(problem, 5)
    after = nominal(pickle.loads(pickle.dumps(problem)), 5)
    assert np.array_equal(before.s, after.s)


def test_a_real_gymnasium_environment() -> None:
    """Gymnasium's own Pendulum with its wrappers, against a plain loop."""
    gymnasium = pytest.importorskip("gymnasium")

    def make_env() -> Any:
        return gymnasium.make("Pendulum-v1", max_episode_steps=8)

    def tilted(obs: Any, terminated: bool, truncated: bool, info: dict[str, Any]) -> bool:
        return truncated and bool(obs[0] < 0.0)

    problem = from_gymnasium(make_env, nominal=Normal(0.0, 1.0), failed=tilted, horizon=8)
    batch = nominal(problem, 6)
    env = make_env()
    for i, seed in enumerate(Draws(make_key(0), np.arange(6)).seeds()):
        obs, _ = env.reset(seed=seed)
        for a_E in batch.a_E[batch.rows_of(i)]:
            obs, _, terminated, truncated, info = env.step(a_E.astype(np.float32))
        assert np.array_equal(obs, batch.s_end[i])
        assert batch.failed[i] == tilted(obs, terminated, truncated, info)
    env.close()
    assert {0, 1} == set(batch.kind)


def test_gymnasium_is_not_imported() -> None:
    code = "import sys, apeval.problem.gym; assert 'gymnasium' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
