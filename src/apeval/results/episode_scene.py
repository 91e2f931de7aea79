"""A recorded episode as a scene to draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray, IntArray
from apeval.results.drawing import RecordedEpisode, find_drawing
from apeval.results.shapes import (
    AGENT_ACTION,
    DISTURBANCE,
    MEASURE,
    ROLES,
    STATE,
    Mover,
    Scene,
    Series,
    Shape,
)
from apeval.simulate.episodes import Episodes
from apeval.simulate.replay import Record, replay
from apeval.simulate.replay import record as as_record

__all__ = [
    "AGENT_ACTION",
    "DISTURBANCE",
    "MEASURE",
    "ROLES",
    "STATE",
    "Mover",
    "Scene",
    "Series",
    "Shape",
    "outcome_of",
    "scene_of",
    "scene_of_record",
    "series_scene",
]


def scene_of(
    problem: Problem | None, episodes: Episodes, i: int, key: IntArray | None = None
) -> Scene:
    """The i-th episode as a scene.

    With the problem and the run's key (`make_key(seed)`) a problem that has a drawing is drawn;
    without them, or for any other problem, the scene has the recorded series alone.

    Args:
        problem: Where its code is at hand.
        episodes: A batch.
        i: Which of them.
        key: The key of the run's random numbers.

    Returns:
        The scene.
    """
    draw = None if problem is None or key is None else find_drawing(problem)
    if draw is None or problem is None or key is None:
        return series_scene(problem, episodes, i)
    it = as_record(episodes, i, key)
    alone = episodes.take(np.arange(episodes.n) == i)
    title, outcome = _title(problem, episodes, i), outcome_of(problem, episodes, i)
    return draw(problem, RecordedEpisode(it, alone, title, outcome))


def scene_of_record(problem: Problem, record: Record | Mapping[str, Any]) -> Scene:
    """A replay record (of failures.json, or a mode's `most_likely`) as a scene.

    Args:
        problem: The problem of the run.
        record: The record, or its JSON.

    Returns:
        The scene, simulated anew.
    """
    it = record if isinstance(record, Record) else Record.from_json(record)
    return scene_of(problem, replay(problem, it), 0, np.array(it.key, np.uint64))


def outcome_of(problem: Problem | None, episodes: Episodes, i: int) -> str:
    """How the episode ended, in a word or two.

    Args:
        problem: For the names of its kinds; None: numbers.
        episodes: A batch.
        i: Which of them.

    Returns:
        Such as "crash" or "no failure".
    """
    if episodes.unresolved[i]:
        return "unresolved"
    if episodes.ended_by_roulette[i]:
        return "ended by roulette"
    kind = int(episodes.kind[i])
    if kind == 0:
        return "no failure"
    if problem is None or kind > len(problem.kinds):
        return "failure" if kind == 1 else f"failure of kind {kind}"
    return problem.kinds[kind - 1]


def series_scene(problem: Problem | None, episodes: Episodes, i: int) -> Scene:
    """What every recorded episode has: states, the agent's actions and disturbances over time.

    Args:
        problem: For names; None where its code is not at hand.
        episodes: A batch.
        i: Which of them.

    Returns:
        A scene without a drawing.
    """
    rows = episodes.rows_of(i)
    t = episodes.t[rows].astype(np.float64)
    end = float(t[-1] + 1.0) if len(t) else 1.0
    ends = np.append(t, end)
    states = np.vstack([episodes.s[rows], episodes.s_end[i : i + 1]]).astype(np.float64)
    outcome = episodes.law.discrete
    named = "outcome" if outcome else "disturbance"
    series = [
        *_columns(states, "state", STATE, ends, held=False),
        *_columns(episodes.a_A[rows], "agent's action", AGENT_ACTION, t, held=True),
        *_columns(episodes.a_E[rows], named, DISTURBANCE, t, held=True),
    ]
    return Scene(
        title=_title(problem, episodes, i),
        outcome=outcome_of(problem, episodes, i),
        time=ends,
        time_unit="decision",
        decision=np.append(episodes.t[rows] + 1, len(t)).astype(np.int64),
        series=tuple(series),
    )


def _title(problem: Problem | None, episodes: Episodes, i: int) -> str:
    name = "" if problem is None else problem.name
    return f"{name} · episode {int(episodes.ids[i])}".removeprefix(" · ")


def _columns(values: Array, name: str, group: str, time: FloatArray, held: bool) -> list[Series]:
    wide = values.shape[1] > 1
    return [
        Series(f"{name} {j + 1}" if wide else name, "", group, time, column, held)
        for j, column in enumerate(values.astype(np.float64).T)
    ]
