"""Transitions that recorded episodes show, for the tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from apeval.problem.problem import Problem
from apeval.problem.tabular_model import SAFE_END
from apeval.problem.types import BoolArray, IntArray
from apeval.simulate.episodes import Episodes


class TabularTransitions(NamedTuple):
    """Rows of episodes whose successor is known, and what it is."""

    rows: IntArray
    """Row numbers, (m,)."""
    inside: BoolArray
    """Whether the successor is the state of the next row, (m,)."""
    code: IntArray
    """Where it is not: a safe end or a failure, coded as in `TabularModel.successor`, (m,)."""


def transitions(episodes: Episodes, problem: Problem) -> TabularTransitions:
    """What f_E did, without the last decision of episodes that were cut or met the horizon: how
    these end is no property of a state and an action.

    Args:
        episodes: Whole episodes.
        problem: Where they come from.

    Returns:
        Every transition that can be told.
    """
    last = np.append(episodes.episode[1:] != episodes.episode[:-1], True)
    e = episodes.episode
    cut = episodes.unresolved | episodes.ended_by_roulette
    if problem.horizon is not None:
        cut = cut | (episodes.length >= problem.horizon)
    known = ~last | ~cut[e]
    code = np.where(episodes.kind[e] > 0, SAFE_END - episodes.kind[e], SAFE_END)
    rows = np.flatnonzero(known)
    return TabularTransitions(rows, ~last[rows], code[rows])
