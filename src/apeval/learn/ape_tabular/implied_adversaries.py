"""The adversaries that the remembered transitions imply.

TD carries a value back one decision per visit, and without time in the state it carries the
reward of reaching the horizon back hardly at all. Before the freeze the Bellman equation is
therefore solved over what was remembered, and π_E ∝ π_E,gt · (r + v(s')) follows (Eq.
MDP_p_update with the solved v). Nothing but transitions that were simulated, π_E,gt, π_A and the
horizon enters.

What was not tried is read in two ways, each an adversary of its own. The *sharp* one leaves it
its nominal probability. The *wary* one takes it for a failure: it samples paths in proportion to
their nominal probability of failing or of leaving what is known, so that a failure behind an
untried transition has a weight of at most P(fail or leave) over its share, instead of 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from apeval.learn.method import Basis
from apeval.problem.exact import exact_adversary, exact_values, start_value
from apeval.problem.tabular_model import SAFE_END, TabularModel, failure_code
from apeval.problem.types import BoolArray, FloatArray, IntArray

#: A pair (s, a_A, a_E) that was never tried.
UNKNOWN = np.iinfo(np.int64).min


def plan(model: TabularModel, memory: IntArray, caution: float, wary: bool) -> FloatArray:
    """π_E over (s, a_A, a_E), or over (t, s, a_A, a_E) with a horizon.

    `model` gives π_A, π_E,gt and the horizon; its transitions are not read: `memory` holds those
    that were seen. `caution` is the part of π_E,gt that is mixed into every row.
    """
    known = _usable(memory)
    states = np.flatnonzero(known.any(axis=(1, 2)))
    layers = () if model.horizon is None else (model.horizon,)
    pi = np.broadcast_to(model.nominal, (*layers, *model.shape)).copy()
    if len(states) == 0:
        return pi
    gt, tried = model.nominal[states], known[states]
    if wary:
        tilted = exact_adversary(_read_as(model, memory, known, states, failure_code(1)))
    else:
        untried = np.where(tried, 0.0, gt).sum(axis=-1, keepdims=True)
        sharp = exact_adversary(_known_model(model, memory, known, states))
        tilted = np.where(tried, (1.0 - untried) * sharp, gt)
    rows: FloatArray = (1.0 - caution) * tilted + caution * gt
    pi[..., states, :, :] = rows / rows.sum(axis=-1, keepdims=True)
    return pi


def value_bounds(
    model: TabularModel, memory: IntArray, starts: Mapping[int, int]
) -> tuple[float, float]:
    """The smallest and the largest v(s0) that the remembered transitions allow.

    Args:
        model: As for `plan`.
        memory: As for `plan`.
        starts: How often episodes began in which state.

    Returns:
        v(s0) with every untried transition a safe end, and with every one a failure; the means
        over the starts. v(s0) lies between them where f_E is what was remembered of it.
    """
    return (
        _start_value(model, memory, starts, SAFE_END),
        _start_value(model, memory, starts, failure_code(1)),
    )


def planned_basis(model: TabularModel, memory: IntArray, starts: Mapping[int, int]) -> Basis:
    """v(s0) of the wary adversary: the probability, under π_E,gt, of failing or of leaving what is
    known; near the estimate where nothing that matters was left untried.

    Args:
        model: As for `plan`.
        memory: As for `plan`.
        starts: As for `value_bounds`.

    Returns:
        The upper one of `value_bounds`.
    """
    return Basis(
        "the probability of failing or of a transition that learning never tried",
        _start_value(model, memory, starts, failure_code(1)),
    )


def _start_value(
    model: TabularModel, memory: IntArray, starts: Mapping[int, int], untried: int
) -> float:
    """The mean of v(s0) over the starts, with `untried` for what was not tried."""
    known = _usable(memory)
    states = np.flatnonzero(known.any(axis=(1, 2)))
    total = 0.0
    if len(states):
        read = _read_as(model, memory, known, states, untried)
        v = exact_values(read)
    for start, n in starts.items():
        at = np.flatnonzero(states == start)
        nowhere = float(untried != SAFE_END)
        total += n * (start_value(replace(read, start=int(at[0])), v) if len(at) else nowhere)
    return total / max(1, sum(starts.values()))


def _usable(memory: IntArray) -> BoolArray:
    """Transitions whose value can be known: to an end, or to a state that was left again."""
    known: BoolArray = np.asarray(memory != UNKNOWN)
    while True:
        left_again: BoolArray = np.asarray(known.any(axis=(1, 2)))
        keep = known & ((memory < 0) | left_again[np.maximum(memory, 0)])
        if np.array_equal(keep, known):
            return known
        known = keep


def _renumbered(memory: IntArray, states: IntArray) -> IntArray:
    """Successors of the chosen states, numbered among themselves."""
    number = np.full(len(memory), SAFE_END)
    number[states] = np.arange(len(states))
    codes = memory[states]
    return np.where(codes >= 0, number[np.maximum(codes, 0)], codes)


def _read_as(
    model: TabularModel, memory: IntArray, known: BoolArray, states: IntArray, untried: int
) -> TabularModel:
    """The remembered part of the problem, with every untried transition to one kind of end."""
    successor = np.where(known[states], _renumbered(memory, states), untried)
    return replace(
        model,
        agent=model.agent[states],
        nominal=model.nominal[states],
        successor=successor,
        start=0,
    )


def _known_model(
    model: TabularModel, memory: IntArray, known: BoolArray, states: IntArray
) -> TabularModel:
    """The remembered part of the problem alone, probabilities renormalised."""
    tried, gt = known[states], model.nominal[states]
    agent = np.where(tried.any(axis=2), model.agent[states], 0.0)
    return replace(
        model,
        agent=_normalised(agent, model.agent[states]),
        nominal=_normalised(np.where(tried, gt, 0.0), gt),
        successor=np.where(tried, _renumbered(memory, states), SAFE_END),
        start=0,
    )


def _normalised(rows: FloatArray, otherwise: FloatArray) -> FloatArray:
    mass = rows.sum(axis=-1, keepdims=True)
    scaled: FloatArray = np.where(mass > 0.0, rows / np.where(mass > 0.0, mass, 1.0), otherwise)
    return scaled
