"""Rows of π_E in dictionaries, and their way into arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from apeval.errors import ApevalError
from apeval.learn.ape_tabular.implied_adversaries import UNKNOWN
from apeval.problem.tabular_model import SAFE_END, TabularModel, failure_code
from apeval.problem.types import Array, FloatArray, IntArray

State = tuple[int, ...] | str
Action = tuple[float, ...]
END = "safe end"
FAILURE = "failure"


@dataclass
class PolicyRow:
    """π_E(· | s, a_A) with what is remembered of the pair (s, a_A)."""

    gt: list[float]
    """π_E,gt(· | s, a_A)."""
    pi: list[float]
    """π_E(· | s, a_A)."""
    tilde: list[float]
    """π̃_E(· | s, a_A), before normalisation: an entry stays until its own action is updated."""
    successor: list[State | None]
    """f_E(s, a_A, a_E) as last seen; None: not tried yet."""
    pi_A: float
    """π_A(a_A | s)."""


Rows = Mapping[State, Mapping[Action, PolicyRow]]


def whole_numbers(s: Array, t: int) -> tuple[int, ...]:
    """A discrete state as a dictionary key."""
    if s.dtype.kind == "f" and not np.array_equal(s, np.round(s)):
        raise ApevalError(
            "ape-tabular needs discrete states, and this problem's are not whole numbers: "
            "round them in the problem's view, or use another method"
        )
    return tuple(int(k) for k in s)


@dataclass(frozen=True)
class CodedRows:
    """Rows as arrays over numbered states and agent actions."""

    states: dict[State, int]
    actions: dict[Action, int]
    agent: FloatArray
    gt: FloatArray
    pi: FloatArray
    memory: IntArray

    def model(self, horizon: int | None, horizon_kind: int, kinds: tuple[str, ...]) -> TabularModel:
        """π_A, π_E,gt and the horizon (transitions are left to `memory`)."""
        nowhere = np.full(self.memory.shape, SAFE_END)
        return TabularModel(self.agent, self.gt, nowhere, 0, horizon, horizon_kind, kinds)


def code_rows(rows: Rows) -> CodedRows:
    """Number the states and agent actions in the order in which they were met."""
    states = {s: i for i, s in enumerate(rows)}
    actions: dict[Action, int] = {}
    for by_action in rows.values():
        for a_A in by_action:
            actions.setdefault(a_A, len(actions))
    S, A = len(states), len(actions)
    E = len(next(iter(next(iter(rows.values())).values())).gt)
    agent = np.zeros((S, A))
    gt = np.full((S, A, E), 1.0 / E)
    pi = gt.copy()
    memory = np.full((S, A, E), UNKNOWN)
    for s, i in states.items():
        for a_A, row in rows[s].items():
            j = actions[a_A]
            agent[i, j], gt[i, j], pi[i, j] = row.pi_A, row.gt, row.pi
            memory[i, j] = [_code(known, states) for known in row.successor]
        agent[i] /= agent[i].sum()
    return CodedRows(states, actions, agent, gt, pi, memory)


def _code(successor: State | None, states: Mapping[State, int]) -> int:
    if successor is None:
        return UNKNOWN
    if successor == END:
        return SAFE_END
    if successor == FAILURE:
        return failure_code(1)
    return states.get(successor, UNKNOWN)


def without_time(rows: Rows, horizon: int | None) -> Rows:
    """Rows keyed by (s, t) merged into rows keyed by s. Rows of the last decision are left out:
    their entries are the horizon's, not f_E's."""
    merged: dict[State, dict[Action, PolicyRow]] = {}
    for s, by_action in rows.items():
        if horizon is not None and s[-1] == horizon - 1:
            continue
        into = merged.setdefault(s[:-1], {})
        for a_A, row in by_action.items():
            bare = [k if k is None or k in (END, FAILURE) else k[:-1] for k in row.successor]
            if a_A in into:
                old = into[a_A].successor
                into[a_A].successor = [
                    o if o is not None else k for o, k in zip(old, bare, strict=True)
                ]
            else:
                into[a_A] = PolicyRow(row.gt, row.pi, row.tilde, bare, row.pi_A)
    return merged
