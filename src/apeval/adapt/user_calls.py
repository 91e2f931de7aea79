"""Calls of the user's code: it gets arrays of its own, its answer is copied before it can write
over it, and an error says where it was raised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apeval.errors import ApevalError, SimulationError, blame, number_of
from apeval.problem.argument_copies import own

Answer = tuple[Any, float, bool, bool, dict[str, Any]]
"""What an environment's step returns."""


def asked(what: str, call: Callable[..., Any], *given: Any) -> Any:
    """Call the user's code with arrays of its own and keep a copy of its answer; its exception
    gets the place where it happened."""
    return own(told(what, call, *[own(value) for value in given]))


def told(what: str, call: Callable[..., Any], *given: Any) -> Any:
    """The same where nothing has to be copied: whoever is called sees to it, or gets no array."""
    try:
        return call(*given)
    except ApevalError:
        raise
    except Exception as error:
        raise SimulationError(
            f"{_WHO.get(what, what)} raised {blame(error)}: mend it there"
        ) from error


_WHO = {
    "reset": "the environment's reset",
    "step": "the environment's step",
    "reward": "the environment's reward as a number",
    "policy": "the policy",
    "start": "a disturbance of the start",
    "disturbance": "a disturbance",
    "fails": "`fails`",
    "margin": "`margin`",
}


def stepped(env: Any, action: Any) -> Answer:
    """A step of the environment, its answer checked."""
    answer = told("step", env.step, own(action))
    if not isinstance(answer, tuple) or len(answer) != 5:
        raise SimulationError(
            f"the environment's step returned {_size(answer)}, expected five: obs, reward, "
            "terminated, truncated, info (Gymnasium's interface)"
        )
    obs, reward, terminated, truncated, info = answer
    return own(obs), reward, bool(terminated), bool(truncated), own(info)


def _size(answer: Any) -> str:
    if isinstance(answer, tuple):
        return number_of(len(answer), "value")
    return f"a {type(answer).__name__}"
