# ruff: noqa: NPY002, T201
"""Vector environments, and policies, judges and views of all of their episodes, that misbehave."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

import apeval

from . import gym_walk as g
from .gym_walk import WalkEnv, WalkVector
from .walk import Late, Way, instead

SOON, LATER = 500, 5_000


def _env(
    bad: type[WalkVector], good: type[WalkVector] | None = None, build: Any = g.vector_env
) -> Way:
    return instead({"env": bad}, {"env": good} if good else None, build)


class _AllScaling(WalkVector):
    def moved(self, actions: Any) -> Any:
        actions *= 1.5
        return super().moved(actions)


class _AllScalingWell(WalkVector):
    def moved(self, actions: Any) -> Any:
        return super().moved(1.5 * actions)


class _Wiping(WalkVector):
    def moved(self, actions: Any) -> Any:
        new = super().moved(actions)
        actions[:] = 0.0
        return new


class _Buffered(WalkVector):
    """Answers with arrays of its own, which it writes over."""

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        self.shown = np.zeros((num_envs, 1))
        self.over = np.zeros(num_envs, bool)
        self.said = {"height": self.shown, "_height": np.ones(num_envs, bool)}

    def seen(self) -> Any:
        self.shown[:] = self.x
        return self.shown

    def ended(self) -> Any:
        self.over[:] = super().ended()
        return self.over

    def told(self) -> dict[str, Any]:
        return self.said


class _Ending(_Buffered):
    """The same, with an end that many episodes reach."""

    def ended(self) -> Any:
        self.over[:] = self.x[:, 0] < -0.8
        return self.over


class _EndingWell(WalkVector):
    def ended(self) -> Any:
        return self.x[:, 0] < -0.8


class _AllCarrying(WalkVector):
    """Starts where the last episodes have ended, beyond the first observation."""

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        self.left = np.zeros((num_envs, 1))

    def moved(self, actions: Any) -> Any:
        before, self.left = self.left, 0.3 * self.x
        return super().moved(actions) + before


class _AllWearing(WalkVector):
    used = 0.0

    def moved(self, actions: Any) -> Any:
        self.used += 0.01
        return super().moved(actions) + self.used


class _Leaning(WalkVector):
    """Each walk is drawn to the mean of all."""

    def moved(self, actions: Any) -> Any:
        return super().moved(actions) + 0.5 * self.x.mean()


class _Uneven(WalkVector):
    """Every other sub-environment is another one."""

    def moved(self, actions: Any) -> Any:
        return super().moved(actions) + 0.3 * (np.arange(self.num_envs)[:, None] % 2)


class _Sharing(WalkVector):
    """One generator for all, from the first seed."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.shared = np.random.default_rng(seed[0])
        return super().reset(seed=seed)

    def moved(self, actions: Any) -> Any:
        return super().moved(actions) + 0.3 * self.shared.normal(size=self.x.shape)


class _AllUnseeded(WalkVector):
    def moved(self, actions: Any) -> Any:
        return super().moved(actions) + 0.3 * np.random.normal(size=self.x.shape)


class _Swapping(WalkVector):
    """Gives episodes other places after a step."""

    def moved(self, actions: Any) -> Any:
        return np.roll(super().moved(actions), 1, axis=0)


class _AllTalking(WalkVector):
    def step(self, actions: Any) -> Any:
        print("step")
        return super().step(actions)


class _Loud(WalkEnv):
    """Prints in a process of its own."""

    def step(self, action: Any) -> Any:
        print("step", flush=True)
        os.write(1, b"step\n")
        return super().step(action)


def _late_env(part: str, change: Callable[[Any], Any], after: int = LATER) -> Way:
    """A vector environment that answers otherwise after so many rows."""

    def make() -> dict[str, Any]:
        begun = Late(after)

        def answer(self: Any) -> Any:
            usual = getattr(WalkVector, part)(self)
            return change(usual) if begun(self.x) else usual

        return {"env": type("Changing", (WalkVector,), {part: answer})}

    return Way(make, build=g.vector_env)


def _late(part: str, after: int, late: Callable[[Any], Any]) -> Way:
    """A function of observations that becomes another one after so many rows."""

    def make() -> dict[str, Any]:
        begun = Late(after)
        before = {"policy": g.policy, "fails": g.all_fail, "margin": g.margins}[part]

        def function(obs: Any) -> Any:
            return late(obs) if begun(obs) else before(obs)

        return {part: function}

    return Way(make, build=g.vector_env)


def _buffered(inner: Callable[..., Any]) -> Callable[..., Any]:
    kept: dict[Any, Any] = {}

    def function(*given: Any) -> Any:
        answer = np.asarray(inner(*given))
        buffer = kept.setdefault(answer.shape, np.zeros_like(answer))
        buffer[...] = answer
        return buffer

    return function


def _of_obs(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda obs: function(obs)


def _scaled(obs: Any) -> Any:
    obs *= 0.8
    return -0.2 * obs


def _scaled_well(obs: Any) -> Any:
    return -0.2 * (0.8 * obs)


def _itself(obs: Any) -> Any:
    return obs


def _itself_well(obs: Any) -> Any:
    return 1.0 * obs


def _neighbour(obs: Any) -> Any:
    return -0.2 * np.roll(obs, 1, axis=0)


def _jittering(obs: Any) -> Any:
    return -0.2 * obs + 0.2 * np.random.normal(size=obs.shape)


def _talking(obs: Any) -> Any:
    print("policy")
    return g.policy(obs)


def _remembering() -> dict[str, Any]:
    last: dict[str, Any] = {}

    def policy(obs: Any) -> Any:
        before = last.get("obs", obs)
        last["obs"] = obs.copy()
        return -0.2 * before

    return {"policy": policy}


def _counting() -> dict[str, Any]:
    calls = [0]

    def policy(obs: Any) -> Any:
        calls[0] += 1
        return -0.2 * obs if calls[0] % 3 else 0.4 * obs

    return {"policy": policy}


def _event(obs: Any, terminated: Any, action: Any) -> Any:
    obs -= g.TOP
    terminated[:] = True
    action[:] = 0.0
    return obs[:, 0] > 0.0


def _distance(obs: Any, action: Any) -> Any:
    action[:] = 0.0
    obs *= -1.0
    obs += g.TOP
    return obs[:, 0]


def _distance_well(obs: Any) -> Any:
    return -1.0 * obs[:, 0] + g.TOP


def _seen(obs: Any, info: Any) -> Any:
    obs[:] = 0.0
    info["height"] *= 2.0
    return info["height"]


def _seen_well(obs: Any, info: Any) -> Any:
    return 2.0 * info["height"]


def _relative(obs: Any, info: Any) -> Any:
    return obs - obs.mean()


def _pushed(env: Any, e: Any) -> None:
    e *= 1.5
    env.x = env.x + e


def _pushed_well(env: Any, e: Any) -> None:
    env.x = env.x + 1.5 * e


def _started(env: Any, seeds: Any) -> Any:
    answer = env.reset(seed=list(seeds))
    seeds.clear()
    return answer


def _other_action(action: Any, k: int) -> Any:
    return 0.5 * action if k else 1.0 * action


def _other_sight(obs: Any, k: int) -> Any:
    return 0.0 * obs if k else 1.0 * obs


def _events(**what: Any) -> dict[str, Any]:
    return {"disturb": [apeval.ActionNoise(std=0.5), apeval.Event(probability=0.2, **what)]}


def _raised(_: Any) -> Any:
    raise ValueError("odd")


def _ended(_: Any) -> Any:
    raise SystemExit(0)


WAYS: dict[str, Way] = {
    "vector env scales actions in place": _env(_AllScaling, _AllScalingWell, g.lossy_vector),
    "vector env wipes actions afterwards": _env(_Wiping, build=g.lossy_vector),
    "vector env writes over its last answer": _env(_Buffered),
    "vector env writes over it within a decision": _env(_Ending, _EndingWell, g.slow_vector),
    "vector env carries something over": _env(_AllCarrying),
    "vector env wears out": _env(_AllWearing),
    "vector env leans on the mean of all": _env(_Leaning),
    "vector env is uneven": _env(_Uneven),
    "vector env shares one generator": _env(_Sharing),
    "vector env asks np.random": _env(_AllUnseeded),
    "vector env swaps its episodes": _env(_Swapping),
    "vector env prints": _env(_AllTalking),
    "vector env's processes print": Way(lambda: {"one": _Loud}, build=g.apart_vector),
    "vector env's observation is NaN late": _late_env("seen", lambda x: x * np.nan),
    "vector env's observation grows late": _late_env("seen", lambda x: np.hstack([x, x])),
    "vector env's observation loses a row late": _late_env("seen", lambda x: x[1:]),
    "vector env's observation is single late": _late_env("seen", lambda x: x.astype(np.float32)),
    "vector env's observation is text late": _late_env("seen", lambda x: x.astype(str)),
    "vector env's ends are numbers late": _late_env("ended", lambda d: 2.0 * d),
    "vector env's ends are one late": _late_env("ended", lambda d: d[:1]),
    "vector env's info is empty late": _late_env("told", lambda info: {}),
    "vector env's info loses a row late": _late_env(
        "told", lambda info: {"height": info["height"][1:]}
    ),
    "vector env drifts": _late_env("ended", lambda d: ~d, SOON),
    "vector env drifts late": _late_env("ended", lambda d: ~d),
    "vector env raises late": _late_env("seen", _raised),
    "vector env ends Python late": _late_env("seen", _ended, SOON),
    "vector reset empties its seeds": instead({"reset": _started}, build=g.vector_env),
    "vector policy scales obs in place": instead(
        {"policy": _scaled}, {"policy": _scaled_well}, g.vector_env
    ),
    "vector policy returns obs": instead(
        {"policy": _itself}, {"policy": _itself_well}, g.lossy_vector
    ),
    "vector policy writes over its last answer": Way(
        lambda: {"policy": _buffered(g.policy)}, build=g.vector_env
    ),
    "vector policy writes over an action that is kept": Way(
        lambda: {"policy": _buffered(g.policy)}, build=g.lossy_vector
    ),
    "vector policy remembers": Way(_remembering, build=g.vector_env),
    "vector policy counts its calls": Way(_counting, build=g.vector_env),
    "vector policy looks at its neighbour": instead({"policy": _neighbour}, build=g.vector_env),
    "vector policy asks np.random": instead({"policy": _jittering}, build=g.vector_env),
    "vector policy prints": instead({"policy": _talking}, build=g.vector_env),
    "vector policy drifts": _late("policy", SOON, lambda obs: 0.2 * obs),
    "vector policy drifts late": _late("policy", LATER, lambda obs: 0.2 * obs),
    "vector policy answers a row less late": _late("policy", LATER, lambda obs: obs[1:]),
    "vector policy answers one row late": _late("policy", LATER, lambda obs: obs[:1]),
    "vector policy answers one number late": _late("policy", LATER, lambda obs: 0.1),
    "vector policy is NaN late": _late("policy", LATER, lambda obs: obs * np.nan),
    "vector fails changes its arguments": instead({"fails": _event}, build=g.lossy_vector),
    "vector fails drifts late": _late("fails", LATER, lambda obs: obs[:, 0] > 0.8 * g.TOP),
    "vector fails is one answer late": _late("fails", LATER, lambda obs: bool(obs[0, 0] > g.TOP)),
    "vector fails writes over its last answer": Way(
        lambda: {"fails": _of_obs(_buffered(g.all_fail))}, build=g.vector_env
    ),
    "vector margin changes its arguments": instead(
        {"margin": _distance}, {"margin": _distance_well}, g.lossy_vector
    ),
    "vector margin drifts": _late("margin", SOON, lambda obs: 0.8 * g.TOP - obs[:, 0]),
    "vector margin writes over its last answer": Way(
        lambda: {"margin": _of_obs(_buffered(g.margins))}, build=g.vector_env
    ),
    "vector view changes its arguments": instead(
        {"views": {"state": _seen}}, {"views": {"state": _seen_well}}, g.vector_env
    ),
    "vector view depends on the batch": instead(
        {"views": {"state": _relative}}, build=g.vector_env
    ),
    "vector view writes over its last answer": Way(
        lambda: {"views": {"state": _buffered(g.view)}}, build=g.vector_env
    ),
    "vector disturbance scales e in place": instead(
        {"disturb": apeval.CustomNoise(_pushed, std=0.4)},
        {"disturb": apeval.CustomNoise(_pushed_well, std=0.4)},
        g.vector_env,
    ),
    "vector event writes over its last action": Way(
        lambda: _events(change_action=_buffered(_other_action)),
        _events(change_action=_other_action), g.vector_env,
    ),
    "vector event writes over its last observation": Way(
        lambda: _events(change_observation=_buffered(_other_sight)),
        _events(change_observation=_other_sight), g.vector_env,
    ),
}  # fmt: skip
