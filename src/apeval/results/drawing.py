"""Drawings of problems: each lives beside its environment, whose registration names it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from apeval.environments import find_entry
from apeval.problem.problem import Problem
from apeval.results.shapes import Scene
from apeval.simulate.episodes import Episodes
from apeval.simulate.replay import Record


@dataclass(frozen=True)
class RecordedEpisode:
    """One episode: enough to happen again, and what was recorded of it."""

    record: Record
    episodes: Episodes
    """The episode alone."""
    title: str
    outcome: str


Drawing = Callable[[Problem, RecordedEpisode], Scene]
"""``draw(problem, it)``: the recorded episode as a scene."""


def find_drawing(problem: Problem) -> Drawing | None:
    """The drawing that the problem is registered with, or None.

    Args:
        problem: A problem, perhaps one that is registered.

    Returns:
        The function, loaded from its module, or None.
    """
    entry = find_entry(problem.name)
    if entry is None or entry.drawing is None:
        return None
    module, _, function = entry.drawing.partition(":")
    draw: Drawing = getattr(importlib.import_module(module), function)
    return draw
