"""What a method sees of an environment: users' functions that ask by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.adapt.disturbed import VERDICT
from apeval.adapt.user_calls import asked
from apeval.errors import ProblemError
from apeval.problem.gym import Running
from apeval.problem.types import Array


def wanted(name: str, view: Any, known: tuple[str, ...]) -> tuple[str, ...]:
    """What a view asks for, by the names of its parameters; under other names it gets (obs), or
    (obs, info).

    Args:
        name: The view's name, for errors.
        view: The user's function.
        known: What it may ask for.

    Raises:
        ProblemError: It asks for something else.
    """
    if not callable(view):
        raise ProblemError(f"view '{name}' is a {type(view).__name__}, expected a function")
    try:
        parameters = inspect.signature(view).parameters.values()
    except (TypeError, ValueError):  # a built-in without a signature
        return "obs", "info"
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = tuple(p.name for p in plain if p.default is p.empty)
    if names and set(names) <= {*known}:
        return names
    takes_two = len(plain) >= 2 or any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if "env" not in names and takes_two and len(names) <= 2:
        return "obs", "info"
    if "env" not in names and len(names) <= 1 and plain:
        return ("obs",)
    allowed = f"{', '.join(known[:-1])} and {known[-1]}"
    lost = "env" in names and "env" not in known
    hint = ": there an environment may have gone on after an episode's end" if lost else ""
    raise ProblemError(
        f"view '{name}' is a function of ({', '.join(names)}); it may ask, by the names of its "
        f"parameters, for {allowed}{hint}"
    )


@dataclass(frozen=True)
class AskedView:
    """A view of one episode, as a view of all."""

    name: str
    view: Callable[..., Any]
    names: tuple[str, ...]

    @staticmethod
    def of(name: str, view: Any) -> AskedView:
        """A user's view, which may ask for obs, info, env and memory."""
        return AskedView(name, view, wanted(name, view, ("obs", "info", "env", "memory")))

    def __call__(self, x: Running) -> Array:
        rows = zip(x.observations, x.infos, x.envs, strict=True)
        return np.stack([self._one(obs, info, env.moment.env) for obs, info, env in rows])

    def _one(self, obs: Any, info: Any, env: Any) -> Array:
        told = {"obs": obs, "info": info, "env": env}
        if "memory" in self.names:
            told["memory"] = info[VERDICT].memory
        return np.ravel(asked("view", self.view, *[told[name] for name in self.names]))
