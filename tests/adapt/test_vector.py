"""Vector environments: each episode is the one that `from_env` runs alone, bit by bit, in every
form and autoreset mode, whoever runs it and whoever sits beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import vector as vector_wrappers

import apeval
from apeval.errors import ApevalError, ProblemError, SimulationError
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.simulate import episode_source
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.replay import record, replay
from apeval.simulate.rollout import rollout

KEY = make_key(7)
MODES = list(AutoresetMode)


class Line(gymnasium.Env[Any, Any]):
    """A point that drifts, with chance of its own; it ends below −1.5, and says so in `info`."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)
        self.gain, self.wind, self.state = 1.0, np.zeros(2), np.zeros(2)

    def _get_obs(self) -> Any:
        return self.state.copy()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.state = self.np_random.normal(size=2) * 0.2
        return self._get_obs(), {"room": 9.0}

    def step(self, action: Any) -> Any:
        push = self.gain * float(np.ravel(action)[0]) + self.wind[1]
        chance = 0.1 * self.np_random.normal()
        self.state = np.array([self.state[0] + push + chance, 0.9 * self.state[1] + push])
        low = bool(self.state[0] < -1.5)
        info = {"room": 2.0 - self.state[0], "low": low}
        return self._get_obs(), float(self.state[0]), low, False, info


def make(kind: str, mode: AutoresetMode, env: Callable[[], Any] = Line, limit: int = 12) -> Any:
    """A function of the number of sub-environments."""

    def one() -> Any:
        return gymnasium.wrappers.TimeLimit(env(), limit)

    def many(n: int) -> VectorEnv[Any, Any, Any]:
        if kind == "sync":
            return SyncVectorEnv([one] * n, autoreset_mode=mode)
        shared = kind == "async"
        return AsyncVectorEnv([one] * n, autoreset_mode=mode, shared_memory=shared)

    return many


def alone(limit: int = 12, env: Callable[[], Any] = Line, **changes: Any) -> Problem:
    """The same problem with `from_env`, for its functions of one episode."""
    given: dict[str, Any] = {
        "policy": lambda obs: [-0.2 * obs[1]],
        "fails": lambda obs: obs[0] > 2.0,
        "margin": lambda info: info["room"],
        "horizon": limit,
    }
    return apeval.from_env(
        lambda: gymnasium.wrappers.TimeLimit(env(), limit), **{**given, **changes}
    )


def together(many: Any, limit: int = 12, num_envs: int = 8, **changes: Any) -> Problem:
    given: dict[str, Any] = {
        "policy": lambda obs: -0.2 * obs[:, 1],
        "fails": lambda obs: obs[:, 0] > 2.0,
        "margin": lambda info: info["room"],
        "horizon": limit,
    }
    return apeval.from_vector_env(many, num_envs=num_envs, **{**given, **changes})


def episodes(problem: Problem, ids: Any = 21) -> Episodes:
    ids = np.arange(ids) if isinstance(ids, int) else np.asarray(ids)
    return rollout(problem, only(Nominal()), KEY, ids, np.arange(len(ids)))


def same(one: Episodes, two: Episodes) -> None:
    for name in ("length", "kind", "margin", "t", "s", "a_A", "a_E", "s_end", "a_0"):
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True), name


NOISY = [
    apeval.ActionNoise(std=0.8),
    apeval.ObservationNoise(std=0.1, correlation=0.5),
    apeval.BlankSensor(0.2),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["sync", "async", "async, by pipes"])
def test_every_form_and_mode_runs_the_episodes_of_one_environment(
    kind: str, mode: AutoresetMode
) -> None:
    problem = together(make(kind, mode), disturb=NOISY)
    expected = episodes(alone(disturb=NOISY))
    assert len({*expected.length.tolist()}) > 3
    assert 0 < np.count_nonzero(expected.kind) < expected.n
    same(episodes(problem), expected)
    same(episodes(problem), expected)  # after what the first ones left


DISTURBANCES = {
    "held action": apeval.ActionNoise(std=0.8, hold=3),
    "one component": [
        apeval.ObservationNoise(std=[0.3], index=[1]),
        apeval.DropAction(0.3, hold=2),
    ],
    "replaced action": apeval.DropAction(0.3, instead=[1.0]),
    "parameter": apeval.ParameterNoise("gain", std=2.0),
    "kicked state": apeval.ParameterNoise("state[0]", std=0.7, kick=True, hold=2),
    "array": apeval.ParameterNoise("wind", std=[0.1, 0.8], correlation=0.3),
    "once": apeval.ParameterNoise("gain", std=2.0, once=True),
    "start": apeval.StartNoise("state", std=1.0),
    "start and steps": [
        apeval.StartNoise("state[0]", std=0.5, replace=True),
        apeval.ActionNoise(std=0.8, bound=1.5),
    ],
    "custom": apeval.CustomNoise(lambda env, e: setattr(env.unwrapped, "wind", e), std=0.6, dim=2),
    "events": [
        apeval.Event([0.5, 0.3, 0.2], change_action=lambda action, k: action - k),
        apeval.Event(0.1, apply=lambda env, k: setattr(env.unwrapped, "gain", 1.0 - k)),
        apeval.Event(0.2, change_observation=lambda obs, k: obs * (1 - k)),
    ],
    "events beside noise": [
        apeval.Event(0.3, change_action=lambda action, k: action * (1 - k)),
        apeval.ActionNoise(std=0.8),
    ],
}


@pytest.mark.parametrize("name", DISTURBANCES)
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_disturbances_are_those_of_one_environment(name: str, mode: AutoresetMode) -> None:
    problem = together(make("sync", mode), disturb=DISTURBANCES[name])
    expected = episodes(alone(disturb=DISTURBANCES[name]))
    same(episodes(problem), expected)
    same(episodes(problem), expected)


@pytest.mark.parametrize("name", ["parameter", "kicked state", "array"])
def test_attributes_in_other_processes_are_disturbed(name: str) -> None:
    problem = together(make("async", AutoresetMode.NEXT_STEP), disturb=DISTURBANCES[name])
    expected = episodes(alone(disturb=DISTURBANCES[name]))
    same(episodes(problem), expected)
    same(episodes(problem), expected)


@pytest.mark.parametrize("first", [3, 4, 8])
def test_a_block_may_begin_at_any_slot(first: int) -> None:
    """Full blocks, whose episodes sit in another order than their numbers."""
    ids = np.arange(first, first + 8)
    problem = together(make("sync", AutoresetMode.NEXT_STEP), disturb=NOISY)
    same(episodes(problem, ids), episodes(alone(disturb=NOISY), ids))


def test_company_slots_and_replays_do_not_matter() -> None:
    problem = together(make("sync", AutoresetMode.NEXT_STEP), disturb=NOISY)
    batch = episodes(problem, 16)
    some = episodes(problem, [3, 11, 12, 5])  # two in the same slot
    for row, i in enumerate([3, 11, 12, 5]):
        assert np.array_equal(some.s_end[row], batch.s_end[i])
        one = replay(problem, record(batch, i, KEY))
        same(one, episodes(problem, [i]))
        assert one.margin[0] == batch.margin[i]


class Struck(apeval.Recorder):
    """Is struck after two batches."""

    def batch(self, episodes: Any, position: int) -> None:
        super().batch(episodes, position)
        if self.batches >= 2:
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_backends_blocks_and_resuming_do_not_matter(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_source, "_FLUSH_SECONDS", 0.0)

    def problem(num_envs: int = 8) -> Problem:
        many = make(kind, AutoresetMode.SAME_STEP)
        return together(many, disturb=NOISY, num_envs=num_envs)

    run: Any = {"method": "mc", "episodes": 40, "seed": 5, "check": False}
    result = apeval.evaluate(problem(), **run)
    assert 0.0 < result.estimate < 1.0
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(problem(), recorder=Struck(tmp_path / "run"), **run)
    others = [
        apeval.evaluate(problem(3), **run),
        apeval.evaluate(problem(), backend="processes", workers=2, **run),
        apeval.resume(tmp_path / "run", problem()),
    ]
    for other in others:
        assert (other.estimate, other.interval) == (result.estimate, result.interval)


def test_functions_may_ask_for_everything_of_a_step() -> None:
    seen: list[dict[str, Any]] = []

    def fails(**step: Any) -> Any:
        seen.append(step)
        return step["total_reward"] > 6.0

    def check(total_reward: Any, env: Any) -> Any:
        return 6.0 - total_reward

    noise = apeval.ActionNoise(std=0.8)
    problem = together(
        make("sync", AutoresetMode.SAME_STEP), disturb=noise, fails=fails, margin=check
    )
    one = alone(
        disturb=noise,
        fails=lambda total_reward: total_reward > 6.0,
        margin=lambda total_reward: 6.0 - total_reward,
    )
    same(episodes(problem), episodes(one))
    assert {tuple(np.shape(step["obs"])) for step in seen} == {(8, 2)}
    assert {len(step["info"]["room"]) for step in seen} == {8}
    assert isinstance(seen[0]["env"], VectorEnv)


def test_words_for_failures() -> None:
    noise = apeval.ActionNoise(std=0.8)
    for words in ("terminated", "info.low", "horizon"):
        for mode in MODES:
            problem = together(
                make("sync", mode), disturb=noise, fails=words, margin=None, horizon=10
            )
            expected = episodes(alone(disturb=noise, fails=words, margin=None, horizon=10))
            assert 0 < np.count_nonzero(expected.kind) < expected.n
            same(episodes(problem), expected)


def test_kinds_and_views() -> None:
    noise = apeval.ActionNoise(std=0.8, hold=4)
    problem = together(
        make("sync", AutoresetMode.SAME_STEP),
        disturb=noise,
        fails=lambda obs: np.where(obs[:, 0] > 2.0, 2, (obs[:, 0] < -1.0).astype(int)),
        kinds=("low", "high"),
        views={"both": lambda obs, info: np.column_stack([obs[:, 0], info["room"]])},
    )
    one = alone(
        disturb=noise,
        fails=lambda obs: 2 if obs[0] > 2.0 else int(obs[0] < -1.0),
        kinds=("low", "high"),
        views={"both": lambda obs, info: [obs[0], info["room"]]},
    )
    same(episodes(problem), episodes(one))
    assert {*episodes(problem).kind.tolist()} == {0, 1, 2}


class Dicts(Line):
    def __init__(self) -> None:
        super().__init__()
        box = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
        self.observation_space = gymnasium.spaces.Dict({"x": box, "v": box})  # type: ignore[assignment]

    def _get_obs(self) -> Any:
        return {"x": self.state[:1].copy(), "v": self.state[1:].copy()}


@pytest.mark.parametrize("mode", MODES)
def test_observations_may_be_dicts(mode: AutoresetMode) -> None:
    noise = apeval.ActionNoise(std=0.8, hold=4)
    problem = together(
        make("sync", mode, Dicts),
        disturb=noise,
        policy=lambda obs: -0.2 * obs["v"],
        fails=lambda obs: obs["x"][:, 0] > 2.0,
        views={"all": lambda obs, info: np.column_stack([obs["x"], obs["v"]])},
    )
    one = alone(
        env=Dicts,
        disturb=noise,
        policy=lambda obs: -0.2 * obs["v"],
        fails=lambda obs: obs["x"][0] > 2.0,
        views={"all": lambda obs, info: np.concatenate([obs["x"], obs["v"]])},
    )
    same(episodes(problem), episodes(one))


def test_policies_with_chance_repeat_and_have_their_frequencies() -> None:
    coin = apeval.DiscretePolicy(lambda obs: [0.25, 0.75])
    for disturb in (apeval.ParameterNoise("force_mag", std=1.0), apeval.ObservationNoise(0.01)):
        problem = apeval.from_vector_env(
            "CartPole-v1", policy=coin, disturb=disturb, horizon=30, num_envs=8
        )
        batch = episodes(problem, 24)
        same(episodes(problem, 24), batch)
        one = replay(problem, record(batch, 13, KEY))
        assert np.array_equal(one.s_end[0], batch.s_end[13])
        if batch.a_A.shape[1]:
            share = batch.a_A.mean()
            assert abs(share - 0.75) < 4.0 * np.sqrt(0.75 * 0.25 / batch.steps)


def test_trained_policies_are_taken() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 2)
    given: dict[str, Any] = {"policy": net, "disturb": apeval.ObservationNoise(0.05), "horizon": 40}
    problem = apeval.from_vector_env("CartPole-v1", num_envs=8, **given)
    batch = episodes(problem, 16)
    for i in (0, 9, 15):
        assert np.array_equal(replay(problem, record(batch, i, KEY)).s_end[0], batch.s_end[i])
    one = episodes(apeval.from_env("CartPole-v1", **given), 16)
    assert np.allclose(batch.s_end, one.s_end, atol=1e-4)


class OnePiece(VectorEnv[Any, Any, Any]):
    """Many lines in one array, reset by one seed for all."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, n: int) -> None:
        self.num_envs, self.wind = n, np.zeros(n)
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)
        self.state, self.over = np.zeros((n, 2)), np.zeros(n, bool)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.state = 0.2 * self.np_random.normal(size=(self.num_envs, 2))
        self.over = np.zeros(self.num_envs, bool)
        return self.state, {}

    def step(self, actions: Any) -> Any:
        self.state += actions + np.column_stack([self.wind, np.zeros(self.num_envs)])
        self.state[self.over] = 0.0
        self.over = ~self.over & (np.abs(self.state[:, 0]) > 1.5)
        return self.state, np.zeros(self.num_envs), self.over, np.zeros(self.num_envs, bool), {}


def start(env: OnePiece, seeds: list[int]) -> Any:
    env.over[:] = False
    env.state = np.stack([0.2 * np.random.default_rng(seed).normal(size=2) for seed in seeds])
    return env.state, {}


def test_one_of_one_piece_is_started_by_a_function_and_pushed_all_at_once() -> None:
    def blow(env: OnePiece, e: Any) -> None:
        env.wind = e[:, 0]

    problem = together(
        OnePiece,
        reset=start,
        disturb=apeval.CustomNoise(blow, std=0.5),
        fails=lambda obs: obs[:, 0] > 1.2,
        margin=lambda obs: 1.2 - obs[:, 0],
    )
    batch = episodes(problem, 20)
    for i in range(20):
        x = np.array(batch.s[batch.episode == i][0])
        for e in batch.a_E[batch.episode == i]:
            x = x + (-0.2 * x[1] + np.array([e[0], 0.0]))
        assert np.array_equal(batch.s_end[i], x)
        assert np.array_equal(replay(problem, record(batch, i, KEY)).s_end[0], x)
    assert len({*batch.length.tolist()}) > 3
    assert apeval.check_problem(problem, episodes=16, seconds=2.0).ok


@pytest.mark.parametrize(
    ("many", "changes", "says"),
    [
        (OnePiece, {}, "cannot be started from its own seed: .*Seed must be"),
        (make("sync", MODES[0]), {"policy": lambda obs: obs[1]}, r"all 8 episodes, \(8, 1\)"),
        (make("sync", MODES[0]), {"fails": lambda obs: obs[0] > 2.0}, "a row per episode"),
        (make("sync", MODES[0]), {"margin": lambda obs: obs[0]}, "a row per episode"),
        (make("sync", MODES[0]), {"fails": "info.hot"}, "info has no 'hot'; it holds low, room"),
        (make("sync", MODES[0]), {"margin": lambda obs, x, y: 1.0}, "no 'x'"),
        (make("sync", MODES[0]), {"num_envs": 0}, "at least 1"),
        (lambda n: make("sync", MODES[0])(n + 1), {}, "made 9 sub-environments where 8"),
        (lambda n: Line(), {}, "made a Line without num_envs"),
        (Line(), {}, "lambda n: gymnasium.make_vec"),
        (3, {}, "given a int"),
        (lambda: None, {}, "It gets the number of sub-environments"),
        ("Nowhere-v0", {}, "cannot make 'Nowhere-v0' as a vector environment"),
        (
            make("async", MODES[0]),
            {"disturb": apeval.StartNoise("state", std=1.0)},
            "StartNoise acts on environments, and those of an asynchronous",
        ),
        (
            make("async", MODES[0]),
            {"disturb": apeval.ParameterNoise("unwrapped.gain", std=1.0)},
            "cannot reach into sub-environments in other processes",
        ),
        (
            OnePiece,
            {"reset": start, "disturb": apeval.ParameterNoise("wind", std=1.0)},
            "made of one piece: use CustomNoise",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_remedy(
    many: Any, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(ApevalError, match=says):
        episodes(together(many, **{"disturb": apeval.ActionNoise(std=0.5), **changes}))


def test_statistics_that_run_through_episodes_are_refused() -> None:
    def many(n: int) -> Any:
        return vector_wrappers.NormalizeObservation(make("sync", MODES[0])(n))

    with pytest.raises(ProblemError, match="the same seeds gave other first observations"):
        together(many, disturb=apeval.ActionNoise(std=0.5))


def test_a_mode_that_is_not_what_it_says_is_refused() -> None:
    class Silent(OnePiece):
        metadata: dict[str, Any] = {}  # noqa: RUF012

    with pytest.raises(ProblemError, match="does not say when it resets"):
        together(Silent, reset=start, disturb=apeval.ActionNoise(std=0.5))

    class Forgetful(OnePiece):
        metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    with pytest.raises(ProblemError, match="its last observation is lost"):
        episodes(
            together(
                Forgetful,
                reset=start,
                disturb=apeval.ActionNoise(std=3.0),
                margin=lambda obs: obs[:, 0],
            )
        )

    def wrong(n: int) -> Any:
        made = make("sync", AutoresetMode.SAME_STEP)(n)
        made.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        return made

    with pytest.raises(ProblemError, match="mend metadata"):
        episodes(together(wrong, disturb=apeval.ActionNoise(std=0.5)))


class Fragile(Line):
    def step(self, action: Any) -> Any:
        if self.state[0] > 1.0:
            raise RuntimeError("100% broken")
        return super().step(action)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_an_environment_raises_is_told_and_the_next_block_is_sound(kind: str) -> None:
    problem = together(make(kind, MODES[0], Fragile), disturb=apeval.ActionNoise(std=0.8))
    with pytest.raises(SimulationError, match="step raised RuntimeError: 100% broken"):
        episodes(problem)
    calm = together(make(kind, MODES[0], Fragile), disturb=apeval.ActionNoise(std=1e-3))
    same(episodes(calm, 8), episodes(alone(disturb=apeval.ActionNoise(std=1e-3)), 8))
    unresolved = apeval.evaluate(
        problem, "mc", episodes=16, seed=0, check=False, on_fault="unresolved"
    )
    assert unresolved.episodes == 16
