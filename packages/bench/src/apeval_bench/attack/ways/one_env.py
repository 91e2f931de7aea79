# ruff: noqa: NPY002, T201
"""Environments, policies and judges of `from_env` that misbehave, policies of batches among
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import apeval

from . import gym_walk as g
from .gym_walk import WalkEnv
from .walk import Late, Way, instead

SOON, LATER = 500, 5_000


def _env(bad: type[WalkEnv], good: type[WalkEnv] | None = None, build: Any = g.one_env) -> Way:
    return instead({"env": bad}, {"env": good} if good else None, build)


class _Scaling(WalkEnv):
    def moved(self, action: Any) -> Any:
        action *= 1.5
        return super().moved(action)


class _ScalingWell(WalkEnv):
    def moved(self, action: Any) -> Any:
        return super().moved(1.5 * action)


class _InPlace(WalkEnv):
    """Works on one array and shows it."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        before = self.x
        super().reset(seed=seed)
        before[:] = self.x
        self.x = before
        return self.x, {"height": self.x}

    def step(self, action: Any) -> Any:
        before = self.x
        _, reward, over, late, _ = super().step(action)
        before[:] = self.x
        self.x = before
        return self.x, reward, over, late, {"height": self.x}


class _Shared(WalkEnv):
    """All of its kind answer with the same array."""

    shown = np.zeros(1)
    said = {"height": np.zeros(1)}  # noqa: RUF012

    def seen(self) -> Any:
        self.shown[:] = self.x
        return self.shown

    def told(self) -> dict[str, Any]:
        self.said["height"][:] = self.x
        return self.said


class _Carrying(WalkEnv):
    """Starts where the last episode has ended."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        ended = float(self.x[0])
        super().reset(seed=seed)
        self.x = self.x + 0.5 * ended
        return self.seen(), self.told()


class _Wearing(WalkEnv):
    """Wears out from episode to episode."""

    used = 0.0

    def moved(self, action: Any) -> Any:
        self.used += 0.002
        return super().moved(action) + self.used


class _Unseeded(WalkEnv):
    """Takes its chance from NumPy's global generator."""

    def moved(self, action: Any) -> Any:
        return super().moved(action) + 0.3 * np.random.normal(size=1)


class _Deaf(WalkEnv):
    """Ignores the seed of all resets but the first."""

    begun = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        seed, self.begun = None if self.begun else seed, True
        return super().reset(seed=seed)


class _Talking(WalkEnv):
    def step(self, action: Any) -> Any:
        print("step")
        return super().step(action)


def _late_env(after: int, change: Callable[[Any], Any]) -> Way:
    """An environment whose observation changes its form after so many steps of all."""

    def make() -> dict[str, Any]:
        begun = Late(after)

        class Changing(WalkEnv):
            def seen(self) -> Any:
                return change(self.x.copy()) if begun([0]) else self.x.copy()

        return {"env": Changing}

    return Way(make, build=g.one_env)


def _late_policy(after: int, late: Callable[[Any], Any], batch: bool = False) -> Way:
    """A policy that becomes another one after so many rows."""

    def make() -> dict[str, Any]:
        begun = Late(after)

        def act(obs: Any) -> Any:
            return late(obs) if begun(obs) else g.policy(obs)

        return {"policy": apeval.BatchPolicy(act) if batch else act}

    return Way(make, build=g.one_env)


def _buffered(inner: Callable[..., Any]) -> Callable[..., Any]:
    """A function that answers with an array of its own, which it writes over the next time."""
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


def _event(obs: Any) -> Any:
    obs -= g.TOP
    return bool(obs[0] > 0.0)


def _event_by_info(info: Any) -> Any:
    info["height"] -= g.TOP
    return bool(info.pop("height")[0] > 0.0)


def _distance(obs: Any, action: Any) -> Any:
    action[:] = 0.0
    obs *= -1.0
    obs += g.TOP
    return obs[0]


def _distance_well(obs: Any) -> Any:
    return -1.0 * obs[0] + g.TOP


def _seen(obs: Any, info: Any) -> Any:
    obs[:] = 0.0
    info["height"] *= 2.0
    return info["height"]


def _seen_well(obs: Any, info: Any) -> Any:
    return 2.0 * info["height"]


def _pushed(env: Any, e: Any) -> None:
    e *= 1.5
    env.x = env.x + e


def _pushed_well(env: Any, e: Any) -> None:
    env.x = env.x + 1.5 * e


def _other_action(action: Any, k: int) -> Any:
    return 0.5 * action if k else 1.0 * action


def _other_sight(obs: Any, k: int) -> Any:
    return 0.0 * obs if k else 1.0 * obs


def _wiped(action: Any, k: int) -> Any:
    new = _other_action(action, k)
    action[:] = 0.0
    return new


def _events(**what: Any) -> dict[str, Any]:
    return {"disturb": [apeval.ActionNoise(std=0.5), apeval.Event(probability=0.2, **what)]}


def _remembering(batch: bool) -> Way:
    def make() -> dict[str, Any]:
        last: dict[str, Any] = {}

        def act(obs: Any) -> Any:
            before = last.get("obs", obs)
            last["obs"] = obs.copy()
            return -0.2 * before

        return {"policy": apeval.BatchPolicy(act) if batch else act}

    return Way(make, build=g.one_env)


def _counting(batch: bool) -> Way:
    def make() -> dict[str, Any]:
        calls = [0]

        def act(obs: Any) -> Any:
            calls[0] += 1
            return -0.2 * obs if calls[0] % 3 else 0.4 * obs

        return {"policy": apeval.BatchPolicy(act) if batch else act}

    return Way(make, build=g.one_env)


def _mixing_when_high(obs: Any) -> Any:
    """Rows mix where one is higher than any that is drawn to look at the policy."""
    return -0.2 * obs if np.abs(obs).max() > 3.0 else -0.2 * obs + 0.3 * obs.mean()


def _mixing_a_little(obs: Any) -> Any:
    return -0.2 * obs + 0.1 * obs.mean()


def _placed(obs: Any) -> Any:
    return -0.2 * obs + 0.3 * (np.arange(len(obs))[:, None] % 2)


def _jittering(obs: Any) -> Any:
    return -0.2 * obs + 0.2 * np.random.normal(size=np.shape(obs))


def _talking(obs: Any) -> Any:
    print("policy")
    return g.policy(obs)


def _drifting_judge(part: str, after: int, late: Callable[..., Any]) -> Way:
    def make() -> dict[str, Any]:
        begun, before = Late(after), getattr(g, part)

        def judge(obs: Any) -> Any:
            return late(obs) if begun([0]) else before(obs)

        return {part: judge}

    return Way(make, build=g.one_env)


def _batch(function: Callable[[Any], Any], good: Callable[[Any], Any] | None = None) -> Way:
    proper = {"policy": apeval.BatchPolicy(good)} if good else {}
    return Way(lambda: {"policy": apeval.BatchPolicy(function)}, proper, g.one_env)


def _weaker(obs: Any) -> Any:
    return 0.2 * obs


def _stricter(obs: Any) -> Any:
    return bool(obs[0] > 0.8 * g.TOP)


def _nearer(obs: Any) -> Any:
    return 0.8 * g.TOP - obs[0]


WAYS: dict[str, Way] = {
    "env scales its action in place": _env(_Scaling, _ScalingWell, g.lossy_env),
    "env shows the array that it works on": _env(_InPlace),
    "envs answer with one array": _env(_Shared),
    "env starts where the last episode ended": _env(_Carrying),
    "env wears out": _env(_Wearing),
    "env asks np.random": _env(_Unseeded),
    "env ignores later seeds": _env(_Deaf),
    "env prints": _env(_Talking),
    "env's observation grows late": _late_env(LATER, lambda x: np.append(x, x)),
    "env's observation is NaN late": _late_env(LATER, lambda x: x * np.nan),
    "env's observation is text late": _late_env(LATER, lambda x: x.astype(str)),
    "env's observation is None late": _late_env(LATER, lambda x: None),
    "env's observation is single late": _late_env(LATER, lambda x: x.astype(np.float32)),
    "env's policy scales obs in place": instead(
        {"policy": _scaled}, {"policy": _scaled_well}, g.one_env
    ),
    "env's policy returns obs": instead(
        {"policy": _itself}, {"policy": _itself_well}, g.lossy_env
    ),
    "env's policy writes over its last answer": Way(
        lambda: {"policy": _buffered(g.policy)}, build=g.one_env
    ),
    "env's policy writes over an action that is kept": Way(
        lambda: {"policy": _buffered(g.policy)}, build=g.lossy_env
    ),
    "env's policy remembers": _remembering(False),
    "env's policy counts its calls": _counting(False),
    "env's policy drifts": _late_policy(SOON, _weaker),
    "env's policy drifts late": _late_policy(LATER, _weaker),
    "env's policy answers in another shape late": _late_policy(LATER, lambda obs: [obs, obs]),
    "env's policy is NaN late": _late_policy(LATER, lambda obs: obs * np.nan),
    "env's policy asks np.random": instead({"policy": _jittering}, build=g.one_env),
    "env's fails changes obs": instead({"fails": _event}, build=g.one_env),
    "env's fails changes info": instead({"fails": _event_by_info}, build=g.one_env),
    "env's fails drifts late": _drifting_judge("fails", LATER, _stricter),
    "env's margin changes obs and action": instead(
        {"margin": _distance}, {"margin": _distance_well}, g.lossy_env
    ),
    "env's margin drifts": _drifting_judge("margin", SOON, _nearer),
    "env's margin writes over its last answer": Way(
        lambda: {"margin": _of_obs(_buffered(g.margin))}, build=g.one_env
    ),
    "env's view changes obs and info": instead(
        {"views": {"state": _seen}}, {"views": {"state": _seen_well}}, g.one_env
    ),
    "env's view writes over its last answer": Way(
        lambda: {"views": {"state": _buffered(g.view)}}, build=g.one_env
    ),
    "a disturbance scales e in place": instead(
        {"disturb": apeval.CustomNoise(_pushed, std=0.4)},
        {"disturb": apeval.CustomNoise(_pushed_well, std=0.4)},
        g.one_env,
    ),
    "an event writes over its last action": Way(
        lambda: _events(change_action=_buffered(_other_action)),
        _events(change_action=_other_action), g.one_env,
    ),
    "an event wipes the action": instead(
        _events(change_action=_wiped), _events(change_action=_other_action), g.one_env
    ),
    "an event writes over its last observation": Way(
        lambda: _events(change_observation=_buffered(_other_sight)),
        _events(change_observation=_other_sight), g.one_env,
    ),
    "batch policy scales observations in place": _batch(_scaled, _scaled_well),
    "batch policy writes over its last answer": Way(
        lambda: {"policy": apeval.BatchPolicy(_buffered(g.policy))},
        build=g.one_env,
    ),
    "batch policy returns observations": _batch(_itself, _itself_well),
    "batch policy remembers": _remembering(True),
    "batch policy counts its calls": _counting(True),
    "batch policy mixes rows": _batch(_mixing_a_little),
    "batch policy mixes rows in some states": _batch(_mixing_when_high),
    "batch policy depends on the place": _batch(_placed),
    "batch policy asks np.random": _batch(_jittering),
    "batch policy prints": _batch(_talking),
    "batch policy drifts": _late_policy(SOON, _weaker, batch=True),
    "batch policy drifts late": _late_policy(LATER, _weaker, batch=True),
    "batch policy answers a row less late": _late_policy(LATER, lambda o: o[1:], batch=True),
    "batch policy answers one row late": _late_policy(LATER, lambda o: o[:1], batch=True),
    "batch policy answers columns late": _late_policy(
        LATER, lambda o: np.hstack([o, o]), batch=True
    ),
    "batch policy is NaN late": _late_policy(LATER, lambda o: o * np.nan, batch=True),
    "batch policy raises late": _late_policy(LATER, lambda o: o[10**6], batch=True),
}  # fmt: skip
