"""`from_functions` and `from_jax`: simulators that are functions, as a `Problem`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from apeval.adapt.disturbance_source import DisturbanceSource
from apeval.adapt.functional_env import FunctionalMaker, Functions, NumpyFunctions
from apeval.adapt.jax_functions import JaxFunctions, needs_jax, of_object
from apeval.adapt.user_calls import asked
from apeval.adapt.vector import VectorView, from_vector_env
from apeval.errors import ProblemError
from apeval.problem.problem import Problem


def from_functions(
    reset: Callable[..., Any],
    step: Callable[..., Any],
    *,
    action_space: Any,
    policy: Any,
    disturb: DisturbanceSource | Sequence[DisturbanceSource],
    fails: Any = "terminated",
    margin: Any = None,
    horizon: int | None = None,
    observation_space: Any = None,
    observe: Callable[[Any], Any] | None = None,
    kinds: tuple[str, ...] = ("failure",),
    views: Mapping[str, VectorView] | None = None,
    num_envs: int = 64,
    name: str = "",
    description: str = "",
) -> Problem:
    """How often does the policy fail in a simulator that is two functions of many episodes?

    The functions are pure: state in, state out. The first axis of every array counts the episodes.
    All chance comes from `draws` (``draws.uniform(k)``, ``draws.normal(k)`` of shape (n, k)), which
    is addressed by the episode and the step, so that every episode can be repeated alone.
    Disturbances, policies, `fails`, `margin` and `views` are those of `from_vector_env`;
    `ParameterNoise` and `StartNoise` name a part of the state: ``state[1]``, ``state['speed']``.

    Args:
        reset: ``reset(draws)`` gives observations and states of ``draws.n`` new episodes. A state
            is an array, or a dict, tuple or dataclass of arrays.
        step: ``step(draws, state, actions)`` gives observations, states, rewards, done and info.
        action_space: Of one episode, a space of Gymnasium's.
        policy: A function of all observations, or anything that `from_env` takes.
        disturb: One disturbance or several, as in `from_vector_env`.
        fails: As in `from_vector_env`; ``"terminated"`` is what `step` calls done.
        margin: As in `from_vector_env`.
        horizon: Steps at the most.
        observation_space: Of one episode; by default any numbers in the shape of the first
            observation.
        observe: ``observe(state)`` gives the observations of a start that `StartNoise` changed.
        kinds: Names of the failure kinds, where `fails` returns 0 (none), 1, 2, …
        views: What a method sees, by name: ``view(obs, info)`` returns a row for each.
        num_envs: Episodes that run together in one worker: the functions are always called for so
            many.
        name: Stands in results and reports.
        description: One line, for lists of problems.

    Returns:
        The problem.

    Raises:
        ProblemError: An argument, or how they fit together, is wrong; the message has the remedy.

    Examples:
        >>> import apeval, gymnasium
        >>> def reset(draws):
        ...     x = 0.1 * draws.normal(1)
        ...     return x, x
        >>> def step(draws, x, force):
        ...     x = x + force
        ...     return x, x, np.zeros(len(x)), x[:, 0] > 3.0, {}
        >>> problem = apeval.from_functions(
        ...     reset, step,
        ...     action_space=gymnasium.spaces.Box(-1.0, 1.0, (1,)),
        ...     policy=lambda x: -0.5 * x,
        ...     disturb=apeval.ParameterNoise("state[0]", std=0.4, kick=True),
        ...     horizon=20,
        ... )
    """
    return _problem(
        NumpyFunctions(reset, step, observe), (action_space, observation_space), None, num_envs,
        policy=policy, disturb=disturb, fails=fails, margin=margin, horizon=horizon, kinds=kinds,
        views=views, name=name, description=description,
    )  # fmt: skip


def from_jax(
    env: Any,
    *,
    policy: Any,
    disturb: DisturbanceSource | Sequence[DisturbanceSource],
    params: Any = None,
    fails: Any = "terminated",
    margin: Any = None,
    horizon: int | None = None,
    action_space: Any = None,
    observation_space: Any = None,
    observe: Callable[..., Any] | None = None,
    kinds: tuple[str, ...] = ("failure",),
    views: Mapping[str, VectorView] | None = None,
    num_envs: int = 64,
    name: str = "",
    description: str = "",
) -> Problem:
    """How often does the policy fail in a simulator written in JAX for one episode?

    Its functions are mapped over `num_envs` episodes and compiled, for the CPU and one thread, in
    JAX's own precision (float32, unless you set ``jax_enable_x64``). Keys are made from an
    episode's seed and the number of its step, so that every episode can be repeated alone. Needs
    the extra `jax`.

    Args:
        env: An environment in gymnax's form, with ``reset(key, params)`` and ``step(key, state,
            action, params)``; or a pair of functions, ``reset(key)`` that gives observation and
            state, and ``step(key, state, action)`` that gives observation, state, reward, done and
            info (with `params`, both get it as their last argument). A step must not reset by
            itself; of an environment of gymnax, ``reset_env`` and ``step_env`` are taken.
        policy: A function of all observations, such as a jitted one, or anything that `from_env`
            takes.
        disturb: One disturbance or several, as in `from_vector_env`; `ParameterNoise` and
            `StartNoise` name a part of the state or of the parameters: ``state.theta_dot``,
            ``params.gravity``.
        params: The environment's parameters; by default its ``default_params``.
        fails: As in `from_vector_env`. ``"terminated"`` is an end other than by the environment's
            own limit of steps (``params.max_steps_in_episode``).
        margin: As in `from_vector_env`.
        horizon: Steps at the most; by default the environment's own limit.
        action_space: Of one episode, a space of Gymnasium's; by default the environment's.
        observation_space: Of one episode; by default the environment's, or any numbers in the
            shape of the first observation.
        observe: ``observe(state)``, or ``observe(state, params)``, gives the observation of a start
            that `StartNoise` changed; by default the environment's ``get_obs``.
        kinds: Names of the failure kinds, where `fails` returns 0 (none), 1, 2, …
        views: What a method sees, by name: ``view(obs, info)`` returns a row for each.
        num_envs: Episodes that run together in one worker. It belongs to the problem: compiled
            arithmetic may round otherwise for another number.
        name: Stands in results and reports.
        description: One line, for lists of problems.

    Returns:
        The problem.

    Raises:
        ApevalError: JAX is missing.
        ProblemError: An argument, or how they fit together, is wrong; the message has the remedy.
    """
    needs_jax()
    limit = None
    if isinstance(env, tuple) and len(env) == 2 and all(map(callable, env)):
        functions = JaxFunctions(*env, params, observe)
    else:
        functions = of_object(env, params)
        functions.look = observe or functions.look
        action_space = _space(env, "action_space", functions.params, action_space)
        observation_space = _space(env, "observation_space", functions.params, observation_space)
        own = getattr(functions.params, "max_steps_in_episode", None)
        limit = None if own is None else int(own)
    return _problem(
        functions, (action_space, observation_space), limit, num_envs, policy=policy,
        disturb=disturb, fails=fails, margin=margin, horizon=horizon, kinds=kinds, views=views,
        name=name, description=description,
    )  # fmt: skip


def _problem(
    functions: Functions,
    spaces: tuple[Any, Any],
    limit: int | None,
    num_envs: int,
    **parts: Any,
) -> Problem:
    action, seen = spaces
    if action is None or not (hasattr(action, "n") or hasattr(action, "low")):
        raise ProblemError(
            f"action_space is {action!r}: give the space of one action, such as "
            "gymnasium.spaces.Box(-1.0, 1.0, (1,)) or gymnasium.spaces.Discrete(2)"
        )
    if seen is None and isinstance(num_envs, int) and num_envs > 0:
        seen = _any_like(asked("reset", functions.reset, list(range(num_envs)))[0])
    make = FunctionalMaker(functions, (action, seen), limit)
    return from_vector_env(make, num_envs=num_envs, **parts)


def _any_like(obs: Any) -> Any:
    """The space of all numbers in the form of one row."""
    from gymnasium import spaces

    if isinstance(obs, dict):
        return spaces.Dict({key: _any_like(value) for key, value in obs.items()})
    if isinstance(obs, tuple | list):
        return spaces.Tuple([_any_like(value) for value in obs])
    array = np.asarray(obs)
    if array.dtype.kind not in "biuf" or not array.ndim:
        raise ProblemError(
            f"reset gave an observation of type {type(obs).__name__}, expected an array with a row "
            "per episode (or a dict or tuple of these)"
        )
    if array.dtype.kind == "b":
        return spaces.MultiBinary(array.shape[1:])
    low, high = (-np.inf, np.inf) if array.dtype.kind == "f" else _whole(array.dtype)
    return spaces.Box(low, high, array.shape[1:], array.dtype)


def _whole(dtype: Any) -> tuple[int, int]:
    found = np.iinfo(dtype)
    return int(found.min), int(found.max)


def _space(env: Any, name: str, params: Any, given: Any) -> Any:
    """An environment's own space as one of Gymnasium's; None where there is none."""
    told = getattr(env, name, None)
    if given is not None or told is None:
        return given
    from gymnasium import spaces

    told = told(params) if callable(told) else told
    if hasattr(told, "n"):
        return spaces.Discrete(int(told.n))
    if not hasattr(told, "low"):
        return None
    shape, dtype = tuple(told.shape), np.dtype(told.dtype)
    low, high = (np.broadcast_to(np.asarray(it, dtype), shape) for it in (told.low, told.high))
    return spaces.Box(low, high, shape, dtype)
