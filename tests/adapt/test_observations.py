"""Observations of every form: dicts, tuples, frame stacks and images, for policies, disturbances
and methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text, Tuple
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import FrameStackObservation, TimeLimit
from tests.adapt.bit_identity import KEY, company_does_not_matter, episodes, runs_agree, same

import apeval
from apeval.errors import ApevalError
from apeval.problem.draws import Draws
from apeval.problem.observation_numbers import numbers_in
from apeval.problem.problem import Problem

LINE = Box(-np.inf, np.inf, (1,), np.float64)


class Plain(gymnasium.Env[Any, Any]):
    """A point that drifts, observed as two numbers; it ends above 2."""

    def __init__(self) -> None:
        self.observation_space: Any = Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = Box(-1.0, 1.0, (1,), np.float64)
        self.state = np.zeros(2)

    def _get_obs(self) -> Any:
        return self.state.copy()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.state = self.np_random.normal(size=2) * 0.2
        return self._get_obs(), {}

    def step(self, action: Any) -> Any:
        push = float(np.ravel(action)[0]) + 0.1 * self.np_random.normal()
        self.state = np.array([self.state[0] + push, 0.9 * self.state[1] + push])
        return self._get_obs(), 0.0, bool(self.state[0] > 2.0), False, {}


class Named(Plain):
    """The same, observed as a dict, one part of which lies deeper and one is a whole number."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = Dict({"v": LINE, "place": Dict({"x": LINE, "side": Discrete(2)})})

    def _get_obs(self) -> Any:
        x, v = self.state
        return {"v": np.array([v]), "place": {"x": np.array([x]), "side": int(x > 0)}}


class Paired(Plain):
    """The same, observed as a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = Tuple([LINE, LINE])

    def _get_obs(self) -> Any:
        return self.state[:1].copy(), self.state[1:].copy()


class Pictured(Plain):
    """The same, observed as a picture with a bright column where the point is."""

    size, channels_last = (40, 48, 3), True

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = Box(0, 255, self.size, np.uint8)

    def _get_obs(self) -> Any:
        picture = np.zeros(self.size, np.uint8)
        column = int(np.clip(24 + 8 * self.state[0], 0, 47))
        picture[:, column] = [255, 80, 10]
        picture[: int(np.clip(20 + 8 * self.state[1], 0, 39)), 0, 2] = 90
        return picture


def one(env: Any, **changes: Any) -> Problem:
    given: dict[str, Any] = {"disturb": apeval.ActionNoise(std=0.6), "horizon": 12, **changes}
    return apeval.from_env(lambda: TimeLimit(env(), 12), **given)


def many(env: Any, **changes: Any) -> Problem:
    given: dict[str, Any] = {"disturb": apeval.ActionNoise(std=0.6), "horizon": 12, **changes}

    def make(n: int) -> Any:
        return SyncVectorEnv([lambda: TimeLimit(env(), 12)] * n)

    return apeval.from_vector_env(make, num_envs=8, **given)


def test_numbers_of_every_form() -> None:
    assert numbers_in((1, 2.5)).tolist() == [1.0, 2.5]
    assert numbers_in({"b": (np.ones(2), 3), "a": [True]}).tolist() == [1.0, 1.0, 1.0, 3.0]
    rows = {"b": np.arange(4).reshape(2, 2), "a": np.array([7, 8])}
    assert numbers_in(rows, 2).tolist() == [[7, 0, 1], [8, 2, 3]]
    for odd in ("text", {"a": 1.0, "b": "text"}, None):
        with pytest.raises(ApevalError, match="not an array of numbers: say what a method sees"):
            numbers_in(odd)


KEYED = {
    "noise": [apeval.ObservationNoise(std=0.8, key="v"), apeval.ActionNoise(std=0.5)],
    "deeper": [
        apeval.ObservationNoise(std=0.8, key=("place", "x"), hold=2),
        apeval.ActionNoise(std=0.6),
    ],
    "blank": [apeval.BlankSensor(0.3, key="v"), apeval.ActionNoise(std=0.6)],
    "blank by a number": [apeval.BlankSensor(0.3, key=("place", "x"), instead=1.0),
                          apeval.ActionNoise(std=0.6)],
    "own": [
        apeval.CustomNoise(change_observation=lambda obs, e: {**obs, "v": obs["v"] + e}, std=0.5),
        apeval.ActionNoise(std=0.6),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", KEYED)
def test_dicts_are_disturbed_by_key_and_seen_flat(name: str) -> None:
    disturb = KEYED[name]
    alone = one(Named, policy=lambda obs: -0.2 * obs["v"] - 0.05 * obs["place"]["x"],
                disturb=disturb)  # fmt: skip
    batch = company_does_not_matter(alone)
    assert 0 < np.count_nonzero(batch.kind) < batch.n
    together = many(Named, policy=lambda obs: -0.2 * obs["v"] - 0.05 * obs["place"]["x"],
                    disturb=disturb)  # fmt: skip
    same(company_does_not_matter(together), batch)
    # sorted keys: place.side, place.x, v
    assert batch.s.shape[1] == 3
    assert np.array_equal(batch.s[:, 0], batch.s[:, 1] > 0)
    # the same point, observed as an array and disturbed in the same component
    if name == "noise":
        plain = one(
            Plain,
            policy=lambda obs: -0.2 * obs[1:] - 0.05 * obs[:1],
            disturb=[apeval.ObservationNoise(std=0.8, index=1), apeval.ActionNoise(std=0.5)],
        )
        assert np.array_equal(episodes(plain).s_end, batch.s_end[:, 1:])


def test_tuples_are_disturbed_by_number() -> None:
    noise = [apeval.ObservationNoise(std=0.5, key=1), apeval.ActionNoise(std=0.6)]
    alone = one(Paired, policy=lambda obs: -0.2 * obs[1] - 0.3 * obs[0], disturb=noise)
    together = many(Paired, policy=lambda obs: -0.2 * obs[1] - 0.3 * obs[0], disturb=noise)
    same(company_does_not_matter(together), company_does_not_matter(alone))


@pytest.mark.parametrize("padding", ["reset", "zero"])
def test_frame_stacks_and_their_disturbed_starts(padding: str) -> None:
    def stacked() -> Any:
        return FrameStackObservation(Plain(), 3, padding_type=padding)

    disturb = [apeval.StartNoise("state", std=1.0), apeval.ObservationNoise(std=0.3)]
    alone = one(stacked, policy=lambda obs: -0.3 * obs[-1, :1] + 0.1 * obs[0, :1], disturb=disturb)
    batch = company_does_not_matter(alone)
    first = batch.s[batch.t == 0][:, :6].reshape(-1, 3, 2)
    if padding == "reset":
        assert np.array_equal(first[:, 0], first[:, 2])
    else:
        assert not first[:, :2].any()
    # in the next step the disturbed first frame is the last but one
    second = batch.s[batch.t == 1][:, :6].reshape(-1, 3, 2)
    kept = np.isin(np.arange(batch.n), batch.episode[batch.t == 1])
    assert np.array_equal(second[:, 1], first[kept, 2])
    together = many(
        stacked, policy=lambda obs: -0.3 * obs[:, -1, :1] + 0.1 * obs[:, 0, :1], disturb=disturb
    )
    same(company_does_not_matter(together), batch)


def by_column(obs: Any) -> Any:
    """Steers by the bright column of one picture, or of many."""
    column = obs[..., 0].max(axis=-2).argmax(axis=-1)
    return np.asarray(0.05 * (24 - column), np.float64)[..., None]


def test_images_need_a_view_and_policies_see_all_of_them() -> None:
    with pytest.raises(ApevalError, match=r"image of shape \(40, 48, 3\).*lambda env: a few"):
        one(Pictured, policy=by_column)
    with pytest.raises(ApevalError, match=r"a row per episode.*obs\[:, ::8, ::8\]"):
        many(Pictured, policy=by_column)
    noise = [apeval.Event(0.2, change_observation=lambda obs, k: np.roll(obs, 9 * k, axis=1)),
             apeval.ActionNoise(std=0.6)]  # fmt: skip
    alone = one(Pictured, policy=by_column, disturb=noise,
                views={"state": lambda env: env.unwrapped.state})  # fmt: skip
    batch = company_does_not_matter(alone)
    assert batch.s.shape[1] == 2
    coarse = one(Pictured, policy=by_column, disturb=noise, views={"coarse": lambda obs: obs[::8]})
    together = many(
        Pictured,
        policy=by_column,
        disturb=noise,
        views={"coarse": lambda obs: obs[:, ::8].reshape(8, -1)},
    )
    same(company_does_not_matter(together), company_does_not_matter(coarse))
    assert np.array_equal(episodes(coarse).kind, batch.kind)


class Spoken(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.observation_space = Dict({"x": LINE, "task": Text(9)})

    def _get_obs(self) -> Any:
        return {"x": self.state[:1].copy(), "task": "stay"}


@pytest.mark.parametrize(
    ("env", "changes", "says"),
    [
        (Named, {"disturb": apeval.ObservationNoise(0.1)}, "has the parts .*key='"),
        (Named, {"disturb": apeval.ObservationNoise(0.1, key="w")}, "unknown key 'w'"),
        (Named, {"disturb": apeval.ObservationNoise(0.1, key=("place", "side"))}, "real numbers"),
        (Plain, {"disturb": apeval.ObservationNoise(0.1, key="v")}, "leave key out"),
        (Paired, {"disturb": apeval.BlankSensor(0.1)}, "has the parts 0, 1: .*key=0"),
        (Spoken, {}, r"part \['task'\] is a str, not an array of numbers: say what"),
        (Plain, {"views": {"all": lambda env, x: 0.0}}, r"function of \(env, x\); it may ask"),
        (Plain, {"views": {"all": 3}}, "expected a function"),
        (
            Pictured,
            {"disturb": apeval.ObservationNoise(0.1)},
            "CustomNoise with change_observation",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_remedy(
    env: Any, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(ApevalError, match=says):
        episodes(one(env, **{"policy": lambda obs: [0.0], **changes}))


def test_a_noise_of_your_own_does_one_thing_and_has_its_std() -> None:
    def same_again(obs: Any, e: Any) -> Any:
        return obs

    for given, says in (
        ({"std": 1.0}, "say what it does"),
        ({"std": 1.0, "apply": same_again, "change_observation": same_again}, "say what it does"),
        ({"change_observation": same_again}, "give its standard deviation"),
        ({"std": 1.0, "change_observation": same_again, "once": True}, "needs apply="),
    ):
        with pytest.raises(ApevalError, match=says):
            apeval.CustomNoise(**given)  # type: ignore[arg-type]


def test_a_view_of_a_vector_environment_cannot_ask_for_it() -> None:
    with pytest.raises(ApevalError, match="gone on after an episode's end"):
        many(Plain, policy=lambda obs: obs[:, :1], views={"state": lambda env: env.state})


def test_a_stack_of_another_kind_needs_observe() -> None:
    class Twice(gymnasium.Wrapper[Any, Any, Any, Any]):
        """Doubles the observation without being an ObservationWrapper."""

        def __init__(self, env: Any) -> None:
            super().__init__(env)
            self.observation_space = Box(-np.inf, np.inf, (4,), np.float64)

        def reset(self, **given: Any) -> Any:
            obs, info = self.env.reset(**given)
            return np.tile(obs, 2), info

        def step(self, action: Any) -> Any:
            obs, *rest = self.env.step(action)
            return (np.tile(obs, 2), *rest)

    start = apeval.StartNoise("state", std=1.0)
    problem = one(lambda: Twice(Plain()), policy=lambda obs: obs[:1], disturb=start)
    with pytest.raises(ApevalError, match=r"does not pass through Twice.*observe=lambda env"):
        episodes(problem)


def sb3_model(kind: str, env: Any) -> Any:
    sb3 = pytest.importorskip("stable_baselines3", reason="the extra train is not installed")
    return sb3.PPO(
        kind, env(), n_steps=8, batch_size=8, seed=0, device="cpu", policy_kwargs={"net_arch": [8]}
    )


class Camera(Pictured):
    """A dict with a picture in it."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = Dict({"picture": self.observation_space, "v": LINE})

    def _get_obs(self) -> Any:
        return {"picture": super()._get_obs(), "v": self.state[1:].copy()}


@pytest.mark.parametrize(("kind", "env"), [("CnnPolicy", Pictured), ("MultiInputPolicy", Camera)])
def test_sb3_models_get_images_as_in_training(kind: str, env: Any) -> None:
    """In training VecTransposeImage puts channels first; a model is asked with them last, and must
    answer as in training."""
    model = sb3_model(kind, env)
    venv = model.get_env()
    assert "VecTransposeImage" in repr(type(venv))
    problem = one(env, policy=model, views={"state": lambda env: env.unwrapped.state}, horizon=4)
    batch = company_does_not_matter(problem, 17)
    made = TimeLimit(env(), 12)
    for i, seed in enumerate(Draws(KEY, np.arange(3)).seeds()):
        obs, _ = made.reset(seed=seed)
        for t in range(3):
            alone = {k: v[None] for k, v in obs.items()} if isinstance(obs, dict) else obs[None]
            expected, _ = model.predict(venv.transpose_observations(alone), deterministic=True)
            rows = (batch.episode == i) & (batch.t == t)
            if not rows.any():
                break
            assert np.allclose(batch.a_A[rows][0], expected[0], atol=1e-6)
            noisy = np.clip(batch.a_A[rows][0] + batch.a_E[rows][0], -1.0, 1.0)
            obs = made.step(noisy)[0]
            assert np.array_equal(made.unwrapped.state, _state_after(batch, i, t))  # type: ignore[attr-defined]


def _state_after(batch: Any, i: int, t: int) -> Any:
    later = (batch.episode == i) & (batch.t == t + 1)
    return batch.s[later][0] if later.any() else batch.s_end[i]


def test_sb3_models_with_other_images_are_refused() -> None:
    class Turned(Pictured):
        size = (48, 40, 3)

    with pytest.raises(ApevalError, match="was trained with the observation space"):
        one(Turned, policy=sb3_model("CnnPolicy", Pictured), views={"x": lambda info: 0.0})


def test_runs_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = [apeval.ObservationNoise(std=0.8, key="v"), apeval.ActionNoise(std=0.5)]
    runs_agree(
        lambda: one(Named, policy=lambda obs: -0.2 * obs["v"], disturb=noise), tmp_path, monkeypatch
    )
