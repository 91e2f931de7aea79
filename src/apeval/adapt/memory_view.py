"""Views that show a method what a policy remembers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.adapt.disturbed import VERDICT
from apeval.problem.argument_copies import own
from apeval.problem.gym import EachView, Running, View
from apeval.problem.types import Array

_NAME = "memory"


def asks_for_memory(view: Callable[..., Any]) -> bool:
    """Whether a view has a parameter called `memory`.

    >>> asks_for_memory(lambda obs, info, memory: obs), asks_for_memory(lambda obs, info: obs)
    (True, False)
    """
    try:
        return _NAME in inspect.signature(view).parameters
    except (TypeError, ValueError):
        return False


def as_view(view: View) -> Callable[[Running], Array]:
    """A user's view of one episode, as a view of all."""
    return EachMemoryView(view) if asks_for_memory(view) else EachView(view)


@dataclass(frozen=True)
class EachMemoryView:
    """A view of one episode and of what the policy remembers in it."""

    view: Callable[..., Any]

    def __call__(self, x: Running) -> Array:
        rows = [
            self.view(own(obs), own(info), memory=own(info[VERDICT].memory))
            for obs, info in zip(x.observations, x.infos, strict=True)
        ]
        return np.stack([np.ravel(row) for row in rows])
