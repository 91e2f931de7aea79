"""Actions as an action space wants them; what does not fit is refused with the remedy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.types import Array


def is_discrete(space: Any) -> bool:
    """One whole number."""
    return hasattr(space, "n") and hasattr(space, "start")


def check_space(space: Any) -> None:
    """Refuse action spaces whose actions are no vector of numbers."""
    if is_discrete(space) or getattr(space, "shape", None) is not None:
        return
    raise ProblemError(
        f"the action space {space} is not one array of numbers: wrap the environment so that it "
        "is a Box, Discrete or MultiDiscrete, or use apeval.from_gymnasium"
    )


def fit_action(space: Any, given: Any, who: str = "the policy") -> Any:
    """The action in the space's own type: an int, or an array of its shape and dtype."""
    if type(given) is int and is_discrete(space) and 0 <= given - space.start < space.n:
        return given
    try:
        a = np.asarray(given)
    except Exception as error:
        raise _misfit(who, given, space, f"which is no array ({error})") from error
    if a.dtype.kind not in "biuf":
        hint = "does it lack a return statement?" if given is None else "return numbers"
        if isinstance(given, tuple) and len(given) == 2:
            hint = "a pair (action, state), as predict gives it? Return the first part"
        raise _misfit(who, given, space, hint)
    if is_discrete(space):
        return _choice(space, a, given, who)
    wanted = tuple(space.shape)
    if a.size != int(np.prod(wanted)):
        hint = f"its shape is {a.shape}, return {wanted}"
        if a.shape[1:] == wanted:
            hint += ", the action for one observation, not for a batch"
        raise _misfit(who, given, space, hint)
    if a.dtype.kind == "f" and not np.isfinite(a).all():
        raise _misfit(who, given, space, "which is NaN or infinite: mend the policy")
    return a.reshape(wanted).astype(space.dtype)


def fit_actions(space: Any, given: Sequence[Any] | Array) -> Sequence[Any]:
    """Actions of many episodes, each in the space's own type; see `fit_action`."""
    if isinstance(given, np.ndarray) and is_discrete(space) and given.dtype.kind in "iu":
        numbers = given.reshape(len(given), -1)
        inside = (numbers >= space.start) & (numbers < space.start + space.n)
        if numbers.shape[1] == 1 and inside.all():
            chosen: list[int] = numbers[:, 0].tolist()
            return chosen
    return [fit_action(space, action) for action in given]


def fit_rows(space: Any, given: Any, n: int, who: str = "the policy") -> Array:
    """Actions of n episodes in the space's own type, first axis n: whole numbers (n,), or arrays
    of its shape and dtype."""
    try:
        a = np.asarray(given)
    except Exception as error:
        raise _misfit(who, given, space, f"which is no array ({error})") from error
    shape = () if is_discrete(space) else tuple(space.shape)
    flat = math.prod(shape) == 1 and a.shape in ((n,), (n, 1))
    if a.dtype.kind not in "biuf" or not (flat or a.shape == (n, *shape)):
        hint = "does it lack a return statement?" if given is None else f"its shape is {a.shape}"
        hint += f"; a vector environment wants the actions of all {n} episodes, {(n, *shape)}"
        raise _misfit(who, given, space, hint)
    if a.dtype.kind == "f" and not np.isfinite(a).all():
        raise _misfit(who, given, space, "some of which is NaN or infinite: mend the policy")
    a = a.reshape(n, *shape)
    if not is_discrete(space):
        return a.astype(space.dtype, copy=False)
    first, last = int(space.start), int(space.start) + int(space.n) - 1
    if a.dtype.kind == "f" and np.any(a != np.floor(a)):
        raise _misfit(who, given, space, "return whole numbers")
    if a.min() < first or a.max() > last:
        raise _misfit(who, given, space, f"return numbers from {first} to {last}")
    return a.astype(np.int64, copy=False)


def _choice(space: Any, a: Array, given: Any, who: str) -> int:
    n, first = int(space.n), int(space.start)
    if a.size != 1:
        hint = "return one whole number"
        if a.size == n:
            hint += ", e.g. int(np.argmax(scores)); for probabilities use apeval.DiscretePolicy"
        raise _misfit(who, given, space, f"its shape is {a.shape}, {hint}")
    number = float(a.reshape(()))
    if not np.isfinite(number) or number != int(number):
        raise _misfit(who, given, space, "return a whole number")
    if not first <= number < first + n:
        raise _misfit(who, given, space, f"return a number from {first} to {first + n - 1}")
    return int(number)


def _misfit(who: str, given: Any, space: Any, hint: str) -> ProblemError:
    shown = repr(given)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}…"
    shown = " ".join(shown.split())
    return ProblemError(
        f"{who} returned {shown} (a {type(given).__name__}) for the action space {space}: {hint}"
    )
