"""What counts as a failure, and how near it was: from words, or from functions of an episode."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.gym import Judge

_NUMBER_OF = {1: "(obs)", 2: "(obs, info)", 4: "(obs, terminated, truncated, info)"}


def as_judge(what: str, given: Any) -> Judge:
    """A function of one step's answer: `given` is ``"terminated"``, ``"truncated"``,
    ``"info.crashed"``, or a function of (obs), (obs, info) or all four.

    >>> as_judge("fails", "info.crashed")(None, False, False, {"crashed": True})
    True
    """
    if given == "terminated":
        return lambda obs, terminated, truncated, info: terminated
    if given == "truncated":
        return lambda obs, terminated, truncated, info: truncated
    if isinstance(given, str) and given.startswith("info.") and len(given) > 5:
        return _from_info(what, given.removeprefix("info."))
    if isinstance(given, str) or not callable(given):
        raise ProblemError(
            f"{what} is {given!r}: give 'terminated', 'truncated', 'info.NAME' or a function of "
            "the observation, such as lambda obs: abs(obs[0]) > 2.4"
        )
    return _by_arguments(what, given)


def _from_info(what: str, name: str) -> Judge:
    def judge(obs: Any, terminated: bool, truncated: bool, info: dict[str, Any]) -> Any:
        if name not in info:
            held = ", ".join(sorted(map(str, info))) or "nothing"
            raise ProblemError(f"{what}: info has no '{name}'; it holds {held}")
        return info[name]

    return judge


def _by_arguments(what: str, function: Callable[..., Any]) -> Judge:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a built-in without a signature
        count = 1
    else:
        plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        count = sum(p.default is p.empty for p in plain) or min(len(plain), 1)
    if count == 1:
        return lambda obs, terminated, truncated, info: function(obs)
    if count == 2:
        return lambda obs, terminated, truncated, info: function(obs, info)
    if count == 4:
        return function
    raise ProblemError(
        f"{what} is a function of {count} arguments: write it with one of "
        f"{', '.join(_NUMBER_OF.values())}"
    )


def as_kind(said: Any, kinds: tuple[str, ...]) -> int:
    """A judge's word as a kind of failure (0: none)."""
    if isinstance(said, bool | np.bool_):
        return int(said)
    if isinstance(said, int | np.integer) and 0 <= said <= len(kinds):
        return int(said)
    if isinstance(said, int | np.integer):
        raise ProblemError(
            f"fails returned {said}, but there are {len(kinds)} kinds ({', '.join(kinds)}): return "
            "0 for no failure, k for kinds[k - 1], and name every kind in kinds="
        )
    raise ProblemError(
        f"fails returned a {type(said).__name__}{_shape(said)}, expected True or False for one "
        "episode: compare numbers, e.g. bool(obs[0] > 2.4)"
    )


def as_distance(said: Any) -> float:
    """A margin's word as a number."""
    try:
        plain = isinstance(said, float | int)
        number = float(said if plain else np.reshape(np.asarray(said, np.float64), ()))
    except (TypeError, ValueError):
        raise ProblemError(
            f"margin returned a {type(said).__name__}{_shape(said)}, expected one number: the "
            "distance to failure, ≤ 0 exactly where it fails"
        ) from None
    if math.isnan(number):
        raise ProblemError("margin returned NaN: every state needs a number")
    return number


def _shape(said: Any) -> str:
    return f" of shape {np.shape(said)}" if np.ndim(said) else ""
