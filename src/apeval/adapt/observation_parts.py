"""Parts of an observation that is a dict or a tuple, by key; and what a method can see of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from apeval.errors import ProblemError, unknown

ObservationKey = str | int | tuple[str | int, ...]
"""A part's name in a dict, or its number in a tuple; several lead further inside."""
_LARGEST = 1_000  # numbers in an image that a method is shown: a picture of 31 × 31


def _steps(key: ObservationKey | None) -> tuple[str | int, ...]:
    if key is None:
        return ()
    return key if isinstance(key, tuple) else (key,)


def part_space(what: str, space: Any, key: ObservationKey | None) -> Any:
    """The space of a part.

    Args:
        what: Who asks, for errors.
        space: The space of the whole observation.
        key: The part; None: the whole.

    Raises:
        ProblemError: There is no such part, or the observation has parts and none is named.
    """
    for step in _steps(key):
        inside = _inside(space)
        if step not in inside:
            if not inside:
                raise ProblemError(
                    f"{what}: key={key!r} names a part, but the observation is {space}: leave key "
                    "out, or name components with index="
                )
            raise ProblemError(f"{what}: {unknown('key', str(step), [str(k) for k in inside])}")
        space = inside[step]
    if inside := _inside(space):
        names = ", ".join(repr(name) for name in inside)
        raise ProblemError(
            f"{what}: the observation has the parts {names}: say which one is disturbed, "
            f"key={next(iter(inside))!r}"
        )
    return space


def _inside(space: Any) -> dict[Any, Any]:
    """The spaces within a space; empty where it has no parts."""
    parts = getattr(space, "spaces", None)
    if isinstance(parts, Mapping):
        return dict(parts)
    return dict(enumerate(parts)) if isinstance(parts, tuple | list) else {}


def part_of(obs: Any, key: ObservationKey | None) -> Any:
    """A part of an observation, or of a batch of them.

    >>> part_of({"arm": (1.0, 2.0)}, ("arm", 1))
    2.0
    """
    for step in _steps(key):
        obs = obs[step]
    return obs


def with_part(obs: Any, key: ObservationKey | None, new: Any) -> Any:
    """The observation with one part exchanged; all others are the same objects.

    >>> with_part({"arm": (1.0, 2.0), "leg": 3.0}, ("arm", 1), 9.0)
    {'arm': (1.0, 9.0), 'leg': 3.0}
    """
    steps = _steps(key)
    if not steps:
        return new
    first, rest = steps[0], steps[1:]
    inner = with_part(obs[first], rest, new)
    if isinstance(obs, Mapping):
        changed = obs.copy() if hasattr(obs, "copy") else dict(obs)
        changed[first] = inner
        return changed
    return tuple(inner if k == first else old for k, old in enumerate(obs))


def require_small(space: Any, env_view: bool = True, name: str = "") -> None:
    """Refuse, for lack of a view, observations that are images or no numbers.

    Args:
        space: The space of observations.
        env_view: Whether a view can ask for the environment.
        name: Where in the observation this space is.

    Raises:
        ProblemError: A method could not see all of it; the message says what to give.
    """
    for key, inner in _inside(space).items():
        require_small(inner, env_view, f"{name}[{key!r}]")
    shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
    if dtype != np.uint8 or shape is None or len(shape) < 2 or int(np.prod(shape)) <= _LARGEST:
        return
    which = f"the observation's part {name}" if name else "the observation"
    rows = "" if env_view else ":, "
    few = "views={'state': lambda obs, info: a few numbers, a row per episode}"
    if env_view:
        few = "views={'state': lambda env: a few numbers}, such as env.unwrapped.state"
    coarse = f"obs{name}[{rows}::8, ::8]"
    raise ProblemError(
        f"{which} is an image of shape {tuple(shape)}, too much for a method to learn from: say "
        f"what it sees instead, {few}, or a coarse picture such as {coarse} (the policy still "
        "sees all of it)"
    )
