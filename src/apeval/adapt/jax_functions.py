"""Functions of one episode in JAX, mapped over many and compiled. JAX is imported only when used.

They run on the CPU in one thread, and always for the same number of episodes, so that an episode's
bits depend on nothing but its own numbers. Keys are made from an episode's seed and the number of
the step.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from apeval.adapt.functional_env import (
    START,
    FunctionalEnv,
    Functions,
    Stepped,
    as_started,
    as_stepped,
)
from apeval.errors import ApevalError, ProblemError
from apeval.problem.types import Array

_OPTIONS = {
    "xla_cpu_multi_thread_eigen": False
}  # products that threads share round by their number
_LIMIT = "max_steps_in_episode"
_NEVER = 2**30


def needs_jax() -> Any:
    """JAX, or an error that says how to get it."""
    try:
        import jax
    except ImportError:
        raise ApevalError("functions in JAX need the extra: pip install 'apeval[jax]'") from None
    return jax


class JaxFunctions(Functions):
    """Functions of one episode.

    Args:
        reset: ``reset(key)``, or ``reset(key, params)``, gives an observation and a state.
        step: ``step(key, state, action)``, or ``step(key, state, action, params)``, gives
            observation, state, reward, done and info.
        params: Their parameters; None: they take none.
        observe: ``observe(state)``, or ``observe(state, params)``, gives an observation; None: not
            known.
    """

    def __init__(
        self,
        reset: Callable[..., Any],
        step: Callable[..., Any],
        params: Any = None,
        observe: Callable[..., Any] | None = None,
    ) -> None:
        self.start, self.move, self.look, self.params = reset, step, observe, params
        self._compiled: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:  # another process compiles for itself
        return {**self.__dict__, "_compiled": {}}

    def reset(self, seeds: list[int]) -> tuple[Any, Any]:
        obs, state = self._call("reset", _words(seeds), self.params)
        return obs, state

    def step(self, env: FunctionalEnv, actions: Any) -> Stepped:
        name = "step, params by row" if env.params_by_row else "step"
        words, t = _words(env.seeds), np.uint32(env.taken)
        *rest, info = self._call(name, words, t, env.state, actions, env.params)
        return *rest, _as_infos(info)

    def observe(self, env: FunctionalEnv) -> Any:
        if self.look is None:
            return super().observe(env)
        name = "observe, params by row" if env.params_by_row else "observe"
        return self._call(name, env.state, env.params)

    def spread(self, n: int) -> Any:
        if self.params is None:
            return super().spread(n)

        def rows(leaf: Any) -> Array:
            return np.repeat(np.asarray(leaf)[None], n, axis=0)

        return needs_jax().tree_util.tree_map(rows, self.params)

    def _call(self, name: str, *given: Any) -> Any:
        jax = needs_jax()
        if name not in self._compiled:
            self._compiled[name] = jax.jit(self._all(jax, name), compiler_options=_OPTIONS)
        try:
            with jax.default_device(jax.devices("cpu")[0]):
                return self._compiled[name](*given)
        except TypeError as error:
            if "as an abstract array" not in str(error) and "valid JAX type" not in str(error):
                raise
            raise ProblemError(
                "JAX does not know the type of a state or of the parameters as a tree of arrays "
                f"({' '.join(str(error).split())[:160]} …). Register it, or use a NamedTuple or a "
                "dict; if it is registered, define its class in a file of its own, which worker "
                "processes import as well"
            ) from error

    def _all(self, jax: Any, name: str) -> Any:
        """The function of all episodes."""
        of_params = 0 if name.endswith("by row") else None
        if name == "reset":
            return jax.vmap(self._reset_one, in_axes=(0, None))
        if name.startswith("step"):
            return jax.vmap(self._step_one, in_axes=(0, None, 0, 0, of_params))
        return jax.vmap(lambda state, params: self._asked(self.look, state, params=params),
                        in_axes=(0, of_params))  # fmt: skip

    def _reset_one(self, words: Any, params: Any) -> Any:
        key = _key(words, np.uint32(START % 2**32))
        return as_started(self._asked(self.start, key, params=params))

    def _step_one(self, words: Any, t: Any, state: Any, action: Any, params: Any) -> Stepped:
        key = _key(words, t)

        def stepped(params: Any) -> Stepped:
            return as_stepped(self._asked(self.move, key, state, action, params=params))

        obs, new, reward, done, truncated, info = stepped(params)
        if not hasattr(params, _LIMIT):
            return obs, new, reward, done, truncated, info
        # some count the end by their own limit of steps as done: without it, what is left
        over = stepped(_replaced(params, _NEVER))[3]
        by_limit = (done != over) if truncated is None else truncated
        return obs, new, reward, over, by_limit, info

    def _asked(self, function: Any, *given: Any, params: Any) -> Any:
        return function(*given) if self.params is None else function(*given, params)


def _words(seeds: list[int]) -> Array:
    """Seeds of 52 bits as two words of 32, (n, 2)."""
    numbers = np.array(seeds, np.uint64)
    return np.stack([numbers & np.uint64(2**32 - 1), numbers >> np.uint64(32)], 1).astype(np.uint32)


def _key(words: Any, t: Any) -> Any:
    """The key of one step of one episode."""
    from jax import random

    return random.fold_in(random.fold_in(random.PRNGKey(words[0]), words[1]), t)


def _as_infos(info: Any) -> dict[str, Any]:
    if not isinstance(info, dict):
        return {}
    return {k: _as_infos(v) if isinstance(v, dict) else np.asarray(v) for k, v in info.items()}


def _replaced(params: Any, steps: int) -> Any:
    """Parameters with another limit of steps."""
    if hasattr(params, "_replace"):
        return params._replace(**{_LIMIT: steps})
    return dataclasses.replace(params, **{_LIMIT: steps})


def of_object(env: Any, params: Any) -> JaxFunctions:
    """The functions of an object in gymnax's form.

    Args:
        env: With ``reset(key, params)`` and ``step(key, state, action, params)``; where there are
            ``reset_env`` and ``step_env``, which do not reset by themselves, these are taken.
        params: Its parameters; None: its ``default_params``.

    Raises:
        ProblemError: It is none, or a wrapper whose inner functions alone could be taken.
    """
    if isinstance(env, type) or not all(callable(getattr(env, k, None)) for k in ("reset", "step")):
        raise ProblemError(
            f"from_jax was given a {type(env).__name__}, expected an environment with "
            "reset(key, params) and step(key, state, action, params), as gymnax has them, or a "
            "pair of functions (reset, step)"
        )
    if hasattr(env, "step_env") and not hasattr(type(env), "step_env"):
        raise ProblemError(
            f"{type(env).__name__} wraps an environment that resets by itself, and an episode's "
            "last observation would be lost: give functions that apply the wrapper's effect to "
            "step_env, from_jax((reset, step), …)"
        )
    params = getattr(env, "default_params", None) if params is None else params
    by_itself = hasattr(type(env), "step_env")
    reset, step = (env.reset_env, env.step_env) if by_itself else (env.reset, env.step)
    look = getattr(env, "get_obs", None)
    return JaxFunctions(reset, step, params, None if look is None else _Look(look))


@dataclasses.dataclass(frozen=True)
class _Look:
    """An environment's ``get_obs``, which takes the state and, by name, may want parameters."""

    get_obs: Callable[..., Any]

    def __call__(self, state: Any, params: Any = None) -> Any:
        wanted = inspect.signature(self.get_obs).parameters
        return self.get_obs(state, **({"params": params} if "params" in wanted else {}))
