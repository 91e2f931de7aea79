"""Problems by name. A problem is one module that registers itself: under `apeval.environments`, or
in any package that names it in the entry points `apeval.problems`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from apeval.problem.problem import Problem

Factory = Callable[..., Problem]
F = TypeVar("F", bound=Factory)


@dataclass(frozen=True)
class RegisteredProblem:
    """A registered problem: how to build it, and one line about it."""

    name: str
    factory: Factory
    description: str
    drawing: str | None = None
    """``module:function`` that draws an episode: see `apeval.results.drawing`."""


ENTRIES: dict[str, RegisteredProblem] = {}


def register(
    *names: str, description: str, drawing: str | None = None
) -> Callable[[F], F]:
    """Register a factory under one or more names; with several it gets ``name=`` to tell them
    apart. The factory's keyword parameters are the problem's adjustable settings.

    Args:
        names: The problem's names; `name@backend` belongs to the module that has `name`.
        description: One line, for `apeval list`.
        drawing: ``module:function`` that draws an episode, loaded when one is drawn.

    Returns:
        A decorator that leaves the factory as it is.
    """

    def decorate(factory: F) -> F:
        for name in names:
            ENTRIES[name] = RegisteredProblem(name, factory, description, drawing)
        return factory

    return decorate
