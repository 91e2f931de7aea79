"""A vector environment as a set of episodes that know nothing of each other.

Gymnasium's vector environments reset a sub-environment by themselves when its episode ends, one
step later or in the same step, or not at all. Here an episode's last answer is its own in every
mode, and what a sub-environment does after its episode is nobody's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.adapt.gym_ids import not_made
from apeval.adapt.observation_batches import Precision, as_batch, put
from apeval.adapt.user_calls import asked
from apeval.errors import ApevalError, ProblemError, SimulationError, blame
from apeval.problem.argument_copies import own
from apeval.problem.types import Array, BoolArray

NEXT_STEP, SAME_STEP, DISABLED = "NextStep", "SameStep", "Disabled"
_MODES = (NEXT_STEP, SAME_STEP, DISABLED)
_FINAL = ("final_obs", "final_observation")
SEEDS = 2**31
"""Seeds that a vector environment gets when it is made lie below this number."""


@dataclass
class VectorAnswer:
    """What all sub-environments answered, a row each; each row belongs to its own episode."""

    obs: Any
    reward: Array
    terminated: BoolArray
    truncated: BoolArray
    info: dict[str, Any]


VectorReset = Callable[[Any, list[int]], Any]
"""``reset(env, seeds)``: starts an episode in every sub-environment, each from its own seed."""


@dataclass(frozen=True)
class VectorMaker:
    """Makes vector environments of one size.

    Args:
        env: Gymnasium's id, or a function of the number of sub-environments (or of `seeds`, one
            for each) that makes a vector environment.
        options: Further arguments of ``gymnasium.make_vec``.
        num_envs: Sub-environments in each.
        horizon: Steps of an episode, for an environment by its id.
        reset: How it is reset; None: ``env.reset(seed=seeds)``.
    """

    env: str | Callable[..., Any]
    options: dict[str, Any]
    num_envs: int
    horizon: int | None = None
    reset: VectorReset | None = None

    @property
    def by_seeds(self) -> bool:
        """Whether seeds are given when it is made, so that each block of episodes has its own."""
        if isinstance(self.env, str):
            return False
        try:
            return "seeds" in inspect.signature(self.env).parameters
        except (TypeError, ValueError):
            return False

    def __call__(self, seeds: Sequence[int] | None = None) -> VectorSim:
        """A new one; with `seeds` where these are given when it is made."""
        if isinstance(self.env, str):
            made = self._by_id(self.env)
        else:
            made = self._by_function(self.env, seeds)
        return VectorSim(made, self.num_envs, self.reset, fresh=self.by_seeds)

    def _by_id(self, name: str) -> Any:
        try:
            import gymnasium
        except ImportError:
            raise ApevalError(
                "an environment by its id needs gymnasium: pip install gymnasium"
            ) from None
        given = {"vectorization_mode": "sync", **self.options}
        if given["vectorization_mode"] in ("sync", "async"):
            given.setdefault("disable_env_checker", True)
        if self.horizon is not None:
            given.setdefault("max_episode_steps", self.horizon)
        try:
            return gymnasium.make_vec(name, num_envs=self.num_envs, **given)
        except Exception as error:
            raise ApevalError(
                f"gymnasium cannot make '{name}' as a vector environment: {not_made(name, error)}"
            ) from error

    def _by_function(self, make: Any, seeds: Sequence[int] | None) -> Any:
        if hasattr(make, "step") and not isinstance(make, type):
            raise ProblemError(
                "from_vector_env was given an environment; workers make their own, so give its id "
                "or a function of the number of sub-environments, such as "
                "lambda n: gymnasium.make_vec('CartPole-v1', num_envs=n)"
            )
        if not callable(make):
            raise ProblemError(
                f"from_vector_env was given a {type(make).__name__}: give an environment's id, or "
                "a function of the number of sub-environments that makes a vector environment"
            )
        numbers = list(range(self.num_envs)) if seeds is None else list(seeds)
        try:
            return make(seeds=numbers) if self.by_seeds else make(self.num_envs)
        except ApevalError:
            raise
        except Exception as error:
            raise ProblemError(
                f"the function that makes the vector environment raised {blame(error)}. It gets "
                "the number of sub-environments, or, where its parameter is called seeds, one "
                "seed for each"
            ) from error


class VectorSim:
    """One vector environment.

    Args:
        env: The vector environment.
        num_envs: The sub-environments that it should have.
        reset: How it is reset; None: ``env.reset(seed=seeds)``.
        fresh: Whether its seeds were given when it was made: it is reset once.
    """

    def __init__(
        self, env: Any, num_envs: int, reset: VectorReset | None, fresh: bool = False
    ) -> None:
        self.env, self.n, self._reset, self.fresh = env, num_envs, reset, fresh
        _require_vector(env, num_envs, fresh)
        self.inner = getattr(env, "unwrapped", env)
        self.mode = _mode(env, self.inner)
        self.own_kind = _is_gymnasiums(self.inner)
        self.is_async = hasattr(self.inner, "parent_pipes")
        """Whether sub-environments live in other processes."""
        self._finished: BoolArray = np.zeros(num_envs, bool)
        self._precision = Precision()

    @property
    def sub_environments(self) -> Sequence[Any] | None:
        """The environments that it is made of, where they are at hand."""
        envs = getattr(self.inner, "envs", None)
        return envs if isinstance(envs, list | tuple) and len(envs) == self.n else None

    @property
    def limit(self) -> int | None:
        """Steps after which it truncates an episode, where it tells."""
        spec = getattr(self.env, "spec", None)
        told = getattr(spec, "kwargs", {})
        told = told.get("max_episode_steps") if isinstance(told, dict) else None
        config = getattr(self.env, "config", None)
        if isinstance(config, dict):
            told = config.get("max_episode_steps")
        first = None if self.sub_environments is None else self.sub_environments[0]
        for owner in (getattr(first, "spec", None), spec):
            told = getattr(owner, "max_episode_steps", None) if told is None else told
        return told if isinstance(told, int) and told > 0 else None

    def reset(self, seeds: list[int]) -> tuple[Any, dict[str, Any]]:
        """A new episode in every sub-environment, each from its own seed."""
        if self.mode == NEXT_STEP and not getattr(self.inner, "shared_memory", True):
            self._catch_up()
        self._finished = np.zeros(self.n, bool)
        if self._reset is not None:
            answer = asked("reset", self._reset, self.env, list(seeds))
        else:
            answer = self.call("reset") if self.fresh else self.call("reset", seed=list(seeds))
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ProblemError(
                "the vector environment's reset must return a pair, observations and info"
            )
        return as_batch(answer[0], self.n, "observation"), own(answer[1])

    def _catch_up(self) -> None:
        """Gymnasium's AsyncVectorEnv without shared memory still owes a reset to sub-environments
        whose episodes have ended (as of 1.4): it would come in the first step of the next ones."""
        while self._finished.any():  # the step may end others, which then owe one too
            _, _, terminated, truncated, _ = self.call("step", self._last_actions)
            self._finished = np.asarray(terminated) | np.asarray(truncated)

    def step(self, actions: Any) -> VectorAnswer:
        """A step of every sub-environment."""
        if self.mode == DISABLED and self.own_kind and self._finished.any():
            self.call("reset", options={"reset_mask": self._finished.copy()})
        self._last_actions = actions
        answer = self.call("step", actions)
        if not isinstance(answer, tuple) or len(answer) != 5:
            raise SimulationError(
                "the vector environment's step must return five values: observations, rewards, "
                "terminations, truncations, infos (Gymnasium's interface)"
            )
        obs, reward, terminated, truncated, info = answer
        found = VectorAnswer(
            as_batch(obs, self.n, "observation"),
            as_batch(reward, self.n, "reward", np.float64),
            as_batch(terminated, self.n, "terminated", np.bool_),
            as_batch(truncated, self.n, "truncated", np.bool_),
            own(info),
        )
        self._precision.require(found.obs)
        self._finished = found.terminated | found.truncated
        if self._finished.any():
            self._give_back_last(found)
        return found

    def _give_back_last(self, found: VectorAnswer) -> None:
        """In same-step mode, finished episodes get their own last observations and infos back."""
        final = next((name for name in _FINAL if name in found.info), None)
        if self.mode != SAME_STEP:
            if final is not None:
                raise ProblemError(
                    f"the vector environment says that its autoreset mode is {self.mode}, but "
                    "gives final observations as in same-step mode: mend "
                    "metadata['autoreset_mode']"
                )
            return
        rows = np.flatnonzero(self._finished)
        if final is None or any(found.info[final][row] is None for row in rows):
            raise ProblemError(
                "the vector environment resets in the same step, but info has no 'final_obs' for "
                "an episode that ended: its last observation is lost. Give it, as Gymnasium does, "
                "or use the mode NEXT_STEP"
            )
        for row in rows:
            put(found.obs, int(row), found.info[final][row])
        found.info = _with_final(found.info, self._finished)

    def call(self, name: str, *given: Any, **named: Any) -> Any:
        """A method of the environment, which gets arrays of its own; its exception gets the place
        where it happened."""
        try:
            mine = [own(value) for value in given]
            if not self.is_async:
                return getattr(self.env, name)(*mine, **named)
            with _without_warnings():
                return getattr(self.env, name)(*mine, **named)
        except ApevalError:
            raise
        except Exception as error:
            raise SimulationError(
                f"the vector environment's {name} raised {blame(error)}: mend it there"
            ) from error

    def close(self) -> None:
        """Close the environment; at once where sub-environments live in other processes."""
        if self.is_async:
            with _without_warnings():
                self.env.close(terminate=True)
        elif hasattr(self.env, "close"):
            self.env.close()


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Gymnasium's asynchronous environments warn of what they raise anyway."""
    from gymnasium import logger

    level, logger.min_level = logger.min_level, logger.ERROR + 1
    try:
        yield
    finally:
        logger.min_level = level


def _require_vector(env: Any, num_envs: int, fresh: bool) -> None:
    parts = ("reset", "step", "num_envs", "single_action_space", "single_observation_space")
    missing = [part for part in parts if not hasattr(env, part)]
    if missing:
        raise ProblemError(
            f"the function made a {type(env).__name__} without {', '.join(missing)}: a vector "
            "environment of Gymnasium's kind is wanted (with envpool: env_type='gymnasium'); one "
            "environment goes to apeval.from_env"
        )
    if int(env.num_envs) != num_envs:
        raise ProblemError(
            f"the function made {env.num_envs} sub-environments where {num_envs} were wanted: use "
            "its argument, lambda n: gymnasium.make_vec('CartPole-v1', num_envs=n)"
        )
    if not fresh and hasattr(env, "all_env_ids"):
        raise ProblemError(
            "envpool fixes the seeds of its environments when a pool is made, and each episode "
            "needs its own: give a function of the seeds, such as lambda seeds: envpool.make("
            "'CartPole-v1', env_type='gymnasium', num_envs=len(seeds), seed=seeds)"
        )
    if getattr(env, "is_async", False) is True and hasattr(env, "all_env_ids"):
        raise ProblemError(
            "the pool is asynchronous (batch_size is not num_envs), so that answers come in any "
            "order: leave batch_size out"
        )


def _mode(env: Any, inner: Any) -> str:
    metadata = getattr(env, "metadata", None)
    told = metadata.get("autoreset_mode") if isinstance(metadata, dict) else None
    mode = getattr(told, "value", told)
    if mode is None and _is_gymnasiums(inner):
        return NEXT_STEP  # before Gymnasium 1.1 there was no other, and no word of it
    if mode not in _MODES:
        raise ProblemError(
            f"the vector environment does not say when it resets (metadata['autoreset_mode'] is "
            f"{told!r}), and an episode's last observation depends on it: set it to "
            "gymnasium.vector.AutoresetMode.NEXT_STEP, SAME_STEP or DISABLED"
        )
    return str(mode)


def _is_gymnasiums(inner: Any) -> bool:
    kinds = {"SyncVectorEnv", "AsyncVectorEnv"}
    return any(
        kind.__name__ in kinds and kind.__module__.startswith("gymnasium.")
        for kind in type(inner).__mro__
    )


def _with_final(info: dict[str, Any], finished: BoolArray) -> dict[str, Any]:
    """Infos of the step itself for the episodes that it ended, and of the others as they are."""
    final = info.get("final_info", {})
    rest = {
        key: value
        for key, value in info.items()
        if key.removeprefix("_") not in (*_FINAL, "final_info")
    }
    return merged(rest, final if isinstance(final, dict) else {}, finished)


def merged(info: dict[str, Any], final: dict[str, Any], finished: BoolArray) -> dict[str, Any]:
    """Infos that are `final` in some rows and `info` in the others, with Gymnasium's masks of who
    has them (``_name``)."""
    found: dict[str, Any] = {}
    for key in (*info, *(key for key in final if key not in info)):
        if key.startswith("_") and key[1:] in (info | final):
            before = np.asarray(info.get(key, np.zeros(len(finished), bool)))
            after = np.asarray(final.get(key, np.zeros(len(finished), bool)))
            found[key] = np.where(finished, after, before)
            continue
        one, two = info.get(key), final.get(key)
        if isinstance(one, dict) or isinstance(two, dict):
            found[key] = merged(one or {}, two or {}, finished)
        elif two is None or one is None:
            found[key] = one if two is None else two
        else:
            mixed = np.array(one, np.result_type(one, two))
            mixed[finished] = np.asarray(two)[finished]
            found[key] = mixed
    return found
