"""Random walks between two absorbing ends: `walk` and `queue`, with closed forms."""

from __future__ import annotations

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.tabular_model import SAFE_END, TabularModel, failure_code
from apeval.problem.tabular_problem import tabular_problem
from apeval.problem.truth import Truth

DOWN, UP = 0, 1
_HIGHEST = 1_000_000
_LARGEST_LOG = 600.0


def gambler(p_up: float, start: int, top: int) -> float:
    """P(hit `top` before 0) of the ±1 walk from `start`: the gambler's-ruin formula.

    >>> f"{gambler(1 / 3, 1, 20):.5e}"
    '9.53675e-07'
    """
    odds = (1.0 - p_up) / p_up
    if odds == 1.0:
        return start / top
    if top * np.log(odds) > _LARGEST_LOG:  # then 1 is nothing beside odds^top
        return float(np.exp((start - top) * np.log(odds)) * -np.expm1(-start * np.log(odds)))
    # expm1 keeps the digits where odds is near 1
    return float(np.expm1(start * np.log(odds)) / np.expm1(top * np.log(odds)))


def walk_model(p_up: float, start: int, top: int) -> TabularModel:
    """States 1 … top − 1 are rows 0 … top − 2; failure is reaching `top`."""
    if not 0.0 < p_up < 1.0:
        raise ProblemError(f"p_up must lie strictly between 0 and 1; got {p_up}")
    if not 0 < start < top:
        raise ProblemError(f"start must lie strictly between 0 and top={top}; got {start}")
    if top > _HIGHEST:
        raise ProblemError(f"top must be at most {_HIGHEST:,}, for its table; got {top}")
    S = int(top) - 1
    below, above = np.arange(S) - 1, np.arange(S) + 1
    successor = np.stack([below, above], axis=1)[:, None, :]
    successor[0, 0, DOWN], successor[-1, 0, UP] = SAFE_END, failure_code(1)
    nominal = np.broadcast_to([1.0 - p_up, p_up], (S, 1, 2)).copy()
    return TabularModel(
        np.ones((S, 1)), nominal, successor, start=int(start) - 1, kinds=("top reached",)
    )


def _walk(name: str, description: str, p_up: float, start: int, top: int) -> Problem:
    return tabular_problem(
        walk_model(p_up, start, top),
        name=name,
        description=description,
        parameters={"p_up": p_up, "start": start, "top": top},
        truth=lambda: Truth(gambler(p_up, start, top), 0.0, "closed form (gambler's ruin)"),
    )


@register("walk", description="±1 walk from 1 that must not reach 20 before 0 (exact 9.5e-7)")
def walk(p_up: float = 1.0 / 3.0, start: int = 1, top: int = 20) -> Problem:
    """The ±1 walk: up with probability p_up."""
    return _walk("walk", "±1 random walk", p_up, start, top)


@register("queue", description="busy cycle of a queue that must not reach 20 customers (5.8e-8)")
def queue(p_up: float = 0.3, start: int = 1, top: int = 20) -> Problem:
    """The embedded walk of a queue: arrival with probability p_up, else departure."""
    return _walk("queue", "queue length within a busy cycle", p_up, start, top)
