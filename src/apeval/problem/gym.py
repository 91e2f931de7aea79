"""A `Problem` from a single-episode Gymnasium-style environment.

A batch is a set of environments side by side. They are built when first needed, used again from
rollout to rollout, and closed with the problem. Gymnasium itself is never imported here: an
environment is any object with its `reset` and `step`.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.agent import Agent
from apeval.problem.argument_copies import own
from apeval.problem.draws import Draws
from apeval.problem.laws import Disturbance
from apeval.problem.observation_numbers import numbers_in
from apeval.problem.problem import Problem
from apeval.problem.types import Array, BoolArray

Judge = Callable[[Any, bool, bool, dict[str, Any]], Any]
"""``judge(obs, terminated, truncated, info)`` on one episode after a step."""
Apply = Callable[[Any, Any, Any], tuple[Any, Any, bool, bool, dict[str, Any]]]
"""``apply(env, a_A, a_E)``: one step of one episode, returns what ``env.step`` returns."""
Start = Callable[[Any, int, Any], tuple[Any, dict[str, Any]]]
"""``reset(env, seed, a_0)``: starts one episode, returns what ``env.reset`` returns."""
ApplyToAll = Callable[
    [Sequence[Any], Sequence[Any], Sequence[Any], Draws],
    Sequence[tuple[Any, Any, bool, bool, dict[str, Any]]],
]
"""``apply(envs, a_A, a_E, draws)``: one step of every episode."""
View = Callable[[Any, dict[str, Any]], Any]
"""``view(obs, info)``: what a method sees of one episode, a number or a vector."""


def from_gymnasium(
    make_env: Callable[[], Any],
    *,
    nominal: Disturbance,
    failed: Judge,
    horizon: int | None,
    agent: Callable[[Any], Any] | Agent | None = None,
    apply: Apply | None = None,
    done: Judge | None = None,
    margin: Judge | None = None,
    initial: Disturbance | None = None,
    reset: Start | None = None,
    views: Mapping[str, View] | None = None,
    chunk: int = 16,
    **rest: Any,
) -> Problem:
    """Adapt environments of Gymnasium's kind to the batch form of `Problem`.

    Every function here is about one episode. In `apply` and `reset` a whole number comes as an
    int, anything else as a vector. Each episode is reset with a seed of its own, which must cover
    all of its randomness. `from_env` is shorter where its disturbances suffice.

    Args:
        make_env: Makes an environment: any object with Gymnasium's `reset` and `step`.
        nominal: The law of nature's action a_E.
        failed: ``failed(obs, terminated, truncated, info)`` after every step: a boolean, or a kind.
        horizon: Decisions per episode at the most; None: until it is done or failed.
        agent: ``agent(obs) -> a_A`` on one observation, or an object with ``act(x, draws)``; None
            where the agent lives inside the environment.
        apply: ``apply(env, a_A, a_E)``: one step, returns what ``env.step`` returns. By default the
            environment's action is a_E.
        done: Ends an episode without a failure; by default terminated or truncated.
        margin: The distance to failure, ≤ 0 exactly where it fails.
        initial: The law of a controlled initial disturbance a_0.
        reset: ``reset(env, seed, a_0)`` returns what ``env.reset`` returns. By default a_0 is
            handed over as ``env.reset(seed=seed, options={"a_0": a_0})``.
        views: What a method sees, by name: ``view(obs, info)`` returns a number or a vector.
        chunk: Environments that one worker runs side by side.
        **rest: Further arguments of `Problem`, such as `name` and `kinds`.

    Returns:
        The problem. Its environments are closed with it.

    Raises:
        ProblemError: The parts contradict each other.

    Examples:
        >>> class Drift:
        ...     def reset(self, *, seed=None, options=None):
        ...         self.x = 0.0
        ...         return np.array([self.x]), {}
        ...     def step(self, action):
        ...         self.x += float(action[0])
        ...         return np.array([self.x]), 0.0, self.x > 5.0, False, {}
        >>> from apeval.problem.laws import Normal
        >>> problem = from_gymnasium(
        ...     Drift,
        ...     nominal=Normal(0.0, 1.0),
        ...     failed=lambda obs, terminated, truncated, info: terminated,
        ...     margin=lambda obs, terminated, truncated, info: 5.0 - obs[0],
        ...     horizon=10,
        ... )
    """
    return fleet_problem(
        make_env,
        apply=_EachApplied(apply or _nature_acts),
        start=reset or _plain_reset,
        nominal=nominal,
        failed=_EachJudged(failed, np.int64),
        done=over if done is None else _EachJudged(done, np.bool_),
        margin=None if margin is None else _EachJudged(margin, np.float64),
        horizon=horizon,
        agent=agent if agent is None or hasattr(agent, "act") else _EachRow(agent),
        initial=initial,
        views={k: EachView(v) for k, v in (views or {"observation": flat_observation}).items()},
        chunk=chunk,
        **rest,
    )


def fleet_problem(
    make_env: Callable[[], Any], *, apply: ApplyToAll, start: Start, **parts: Any
) -> Problem:
    """A problem whose state is a set of environments under way, with functions of all of them.

    Args:
        make_env: Makes an environment.
        apply: ``apply(envs, a_A, a_E, draws)``: one step of each, what each ``env.step`` returns.
        start: ``start(env, seed, a_0)``: starts one episode.
        **parts: Further arguments of `Problem`; its functions get a `Running`.
    """
    fleet = _Fleet(make_env, apply, start)
    return Problem(reset=fleet.reset, step=fleet.step, **parts)


def refitted_problem(
    problem: Problem, make_env: Callable[[], Any], apply: ApplyToAll, agent: Agent | None
) -> Problem:
    """A problem of `fleet_problem` with other environments, steps and agent.

    Args:
        problem: The problem, which stays as it is.
        make_env: Makes an environment.
        apply: As in `fleet_problem`.
        agent: The agent; None where the environments hold it.
    """
    step: Any = getattr(problem.step, "call", problem.step)
    fleet = _Fleet(make_env, apply, step.__self__.start)
    return replace(problem, reset=fleet.reset, step=fleet.step, agent=agent)


class _Hold:
    """One episode's hold on an environment, which is free again when nobody holds it."""

    __slots__ = ("__weakref__", "env")

    def __init__(self, env: Any, fleet: _Fleet) -> None:
        self.env = env
        weakref.finalize(self, fleet.give_back, env)


@dataclass(frozen=True)
class Running:
    """The state x: n episodes under way, each with the last answer of its environment. A step
    moves the environments themselves, so an older x cannot be continued."""

    holds: Sequence[_Hold]
    observations: Sequence[Any]
    terminated: BoolArray
    truncated: BoolArray
    infos: Sequence[dict[str, Any]]

    def __len__(self) -> int:
        return len(self.holds)

    def __getitem__(self, rows: Any) -> Running:
        """The chosen episodes, by a boolean mask, indices or a slice."""
        chosen = np.arange(len(self))[rows]
        return Running(
            [self.holds[i] for i in chosen],
            [self.observations[i] for i in chosen],
            self.terminated[chosen],
            self.truncated[chosen],
            [self.infos[i] for i in chosen],
        )

    @property
    def envs(self) -> list[Any]:
        """The environments themselves."""
        return [hold.env for hold in self.holds]

    def each(self, judge: Judge) -> list[Any]:
        """A judge's word on every episode."""
        ends = zip(self.terminated.tolist(), self.truncated.tolist(), strict=True)
        rows = zip(self.observations, ends, self.infos, strict=True)
        return [own(judge(own(obs), *end, own(info))) for obs, end, info in rows]


class _Fleet:
    """All environments of a problem: those in use, and those waiting."""

    def __init__(self, make_env: Callable[[], Any], apply: ApplyToAll, start: Start) -> None:
        self.make_env, self.apply, self.start = make_env, apply, start
        self._free: list[Any] = []
        # runs when the last hold and the problem are gone, at the latest when Python exits
        weakref.finalize(self, _close, self._free)

    def __reduce__(self) -> Any:  # another process builds environments of its own
        return _Fleet, (self.make_env, self.apply, self.start)

    def give_back(self, env: Any) -> None:
        """The environment may be used again."""
        self._free.append(env)

    def reset(self, draws: Draws, a_0: Array | None = None) -> Running:
        """n new episodes, each with a seed of its own."""
        holds, observations, infos = [], [], []
        for i, seed in enumerate(draws.seeds()):
            env = self._free.pop() if self._free else self.make_env()
            holds.append(_Hold(env, self))
            obs, info = own(self.start(env, seed, None if a_0 is None else _action(a_0[i])))
            observations.append(obs)
            infos.append(info)
        nobody = np.zeros(draws.n, bool)
        return Running(holds, observations, nobody, nobody, infos)

    def step(self, x: Running, a_A: Array, a_E: Array, draws: Draws) -> Running:
        """f_E in each environment."""
        actions = [_action(a) for a in a_A], [_action(e) for e in a_E]
        answers = self.apply(x.envs, *actions, draws)
        return Running(
            x.holds,
            [answer[0] for answer in answers],
            np.array([bool(answer[2]) for answer in answers]),
            np.array([bool(answer[3]) for answer in answers]),
            [answer[4] for answer in answers],
        )


def _close(free: list[Any]) -> None:
    while free:
        close = getattr(free.pop(), "close", None)
        if close is not None:
            with contextlib.suppress(Exception):  # nobody is left who could mend it
                close()


def _action(row: Array) -> Any:
    """A row of actions as an environment expects it."""
    return int(row[0]) if len(row) == 1 and row.dtype.kind in "iub" else row


def _nature_acts(env: Any, a_A: Any, a_E: Any) -> Any:
    """The environment's action is a_E, in the type of its action space."""
    space = getattr(env, "action_space", None)
    shape = getattr(space, "shape", None)
    if shape and not isinstance(a_E, int):
        a_E = np.asarray(a_E, getattr(space, "dtype", None)).reshape(shape)
    return env.step(a_E)


def _plain_reset(env: Any, seed: int, a_0: Any) -> Any:
    return env.reset(seed=seed) if a_0 is None else env.reset(seed=seed, options={"a_0": a_0})


def over(x: Running) -> BoolArray:
    """Which episodes their environments have ended."""
    return x.terminated | x.truncated


def flat_observation(obs: Any, info: dict[str, Any]) -> Array:
    """The observation as a vector: what a method sees by default."""
    return numbers_in(obs)


@dataclass(frozen=True)
class _EachApplied:
    """A step of one episode, as a step of all."""

    apply: Apply

    def __call__(
        self, envs: Sequence[Any], a_A: Sequence[Any], a_E: Sequence[Any], draws: Draws
    ) -> list[Any]:
        return [own(self.apply(env, a, e)) for env, a, e in zip(envs, a_A, a_E, strict=True)]


@dataclass(frozen=True)
class _EachRow:
    """A policy on one observation, as a policy on a batch."""

    policy: Callable[[Any], Any]

    def __call__(self, x: Running) -> Array:
        return np.stack([np.ravel(own(self.policy(own(obs)))) for obs in x.observations])


@dataclass(frozen=True)
class EachView:
    """A view of one episode, as a view of all."""

    view: View

    def __call__(self, x: Running) -> Array:
        rows = zip(x.observations, x.infos, strict=True)
        return np.stack([np.ravel(own(self.view(own(obs), own(info)))) for obs, info in rows])


@dataclass(frozen=True)
class _EachJudged:
    """A judge on one episode, as a function on a batch with answers of one type."""

    judge: Judge
    dtype: type[Any]

    def __call__(self, x: Running) -> Array:
        answers = np.asarray(x.each(self.judge))
        odd = answers.dtype.kind not in "biuf" or answers.ndim != 1
        if odd or (self.dtype is not np.float64 and not np.isfinite(answers).all()):
            raise ProblemError(
                f"{_name(self.judge)} must return a number or True or False for each episode; it "
                f"returned {answers.ravel()[:1].tolist()}"
            )
        return answers.astype(self.dtype)


def _name(judge: Any) -> str:
    return f"`{getattr(judge, '__name__', type(judge).__name__)}`"
