"""Drawings of problems: one module each beside this file, found by looking.

A module registers its function for the names of problems that it can draw.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from apeval.problem.problem import Problem
from apeval.results.shapes import Scene
from apeval.simulate.episodes import Episodes
from apeval.simulate.replay import Record


@dataclass(frozen=True)
class Recorded:
    """One episode: enough to happen again, and what was recorded of it."""

    record: Record
    episodes: Episodes
    """The episode alone."""
    title: str
    outcome: str


Drawing = Callable[[Problem, Recorded], Scene]
"""``draw(problem, it)``: the recorded episode as a scene."""
D = TypeVar("D", bound=Drawing)
_DRAWINGS: dict[str, Drawing] = {}


def drawing(*names: str) -> Callable[[D], D]:
    """Register a drawing for problems of these names, and for `name@backend` of each."""

    def decorate(draw: D) -> D:
        _DRAWINGS.update(dict.fromkeys(names, draw))
        return draw

    return decorate


def find_drawing(problem: Problem) -> Drawing | None:
    """The problem's drawing, or None."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return _DRAWINGS.get(problem.name.partition("@")[0])
