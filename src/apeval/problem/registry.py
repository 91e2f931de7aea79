"""Problems by name. A problem is one module under `apeval.environments` that registers itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from apeval.problem.problem import Problem

Factory = Callable[..., Problem]
F = TypeVar("F", bound=Factory)


@dataclass(frozen=True)
class Entry:
    """A registered problem: how to build it, and one line about it."""

    name: str
    factory: Factory
    description: str


ENTRIES: dict[str, Entry] = {}


def register(*names: str, description: str) -> Callable[[F], F]:
    """Register a factory under one or more names; with several it gets ``name=`` to tell them
    apart. The factory's keyword parameters are the problem's adjustable settings."""

    def decorate(factory: F) -> F:
        for name in names:
            ENTRIES[name] = Entry(name, factory, description)
        return factory

    return decorate
