"""What a disturbance is: a law, and a place where it enters an episode.

Each one knows its nominal law from its own settings and enters at one place: what the policy sees,
the action, an attribute of the environment, or the start. The density of an episode is that of the
disturbance itself; what the environment makes of it (an action clipped to its range, a mass that
cannot be negative) is part of f_E.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apeval.adapt.compose import DisturbancePart
from apeval.errors import ProblemError
from apeval.problem.argument_copies import own
from apeval.problem.types import Array


@dataclass
class Moment:
    """One environment in the middle of an episode, as disturbances meet it."""

    env: Any
    observation: Any = None
    """What the environment said last."""
    seen: Any = None
    """What the policy saw last."""
    action: Any = None
    """The last action that was applied; None before the first."""
    base: dict[int, Array] = field(default_factory=dict)
    """Undisturbed values of attributes, by the disturbance's number."""


class DisturbanceSource(ABC):
    """A disturbance: its law, and its effect."""

    hold: int = 1
    """Environment steps for which one value stays."""
    correlation: float = 0.0
    """ρ of noise with memory, from one value to the next; 0: values are independent."""
    at_start: bool = False
    """Whether it is drawn once, when an episode starts."""

    @abstractmethod
    def part(self, env: Any) -> DisturbancePart:
        """Its law in this environment, which has just been reset; raises where it cannot act."""

    def before_reset(self, number: int, on: Moment) -> None:  # noqa: B027
        """Undo what the last episode left."""

    def after_reset(self, number: int, on: Moment) -> None:  # noqa: B027
        """Read what a later effect needs."""

    def sense(self, seen: Any, e: Any, on: Moment) -> Any:
        """What the policy sees."""
        return seen

    def act(self, action: Any, e: Any, on: Moment) -> Any:
        """The action that is applied."""
        return action

    def push(self, number: int, e: Any, on: Moment) -> None:  # noqa: B027
        """Something done to the environment: before each step, or at the start."""


def observe_again(env: Any, before: Any, observe: Callable[[Any], Any] | None) -> Any:
    """The observation of a state that was changed after the reset."""
    if observe is not None:
        return own(observe(env))
    inner = getattr(env, "unwrapped", env)
    if hasattr(inner, "_get_obs"):
        obs = inner._get_obs()
    elif hasattr(inner, "state") and np.shape(inner.state) == np.shape(before):
        obs = np.array(inner.state, dtype=np.asarray(before).dtype)
    else:
        raise ProblemError(
            f"{type(inner).__name__} does not say how its changed state is observed: give "
            "observe=lambda env: …, the first observation"
        )
    for wrapper in _wrappers(env):
        if hasattr(wrapper, "observation"):
            obs = wrapper.observation(obs)
        elif all(hasattr(wrapper, name) for name in ("obs_queue", "padding_value", "stack_size")):
            obs = _stacked_again(wrapper, obs)
    if not _alike(obs, before):
        outer = [type(wrapper).__name__ for wrapper in _wrappers(env)]
        raise ProblemError(
            f"a disturbed start does not pass through {' and '.join(outer) or 'the environment'} "
            "(the first observation came out in another shape): give observe=lambda env: …, the "
            "first observation as the policy gets it"
        )
    return own(obs)


def _stacked_again(wrapper: Any, obs: Any) -> Any:
    """The first stack of frames of Gymnasium's `FrameStackObservation`, with another last frame."""
    from gymnasium.vector.utils import concatenate

    if wrapper.padding_type == "reset":
        wrapper.padding_value = obs
    wrapper.obs_queue.extend([wrapper.padding_value] * (wrapper.stack_size - 1) + [obs])
    space = wrapper.env.observation_space
    return copy.deepcopy(concatenate(space, tuple(wrapper.obs_queue), wrapper.stacked_obs))


def _alike(one: Any, two: Any) -> bool:
    """Whether two observations have the same form; what is not known has any."""
    if two is None:
        return True
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(_alike(one[k], two[k]) for k in one)
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(map(_alike, one, two))
    return bool(np.shape(one) == np.shape(two))


def _wrappers(env: Any) -> list[Any]:
    """From the innermost to the outermost."""
    chain = []
    while hasattr(env, "env"):
        chain.append(env)
        env = env.env
    return chain[::-1]


def is_box(space: Any) -> bool:
    """An array within bounds."""
    return all(hasattr(space, name) for name in ("low", "high", "shape"))


def count_chosen(what: str, index: int | Sequence[int] | None, size: int) -> int:
    """How many components are disturbed."""
    if index is None:
        return size
    chosen = np.atleast_1d(index)
    if chosen.dtype.kind not in "iu" or np.any((chosen < -size) | (chosen >= size)):
        raise ProblemError(f"{what}: index must name components 0 … {size - 1}; got {index!r}")
    return len(chosen)
