"""The adversary that the remembered transitions imply.

TD carries a value back one decision per visit, and without time in the state it carries the
reward of reaching the horizon back hardly at all. Before the freeze the Bellman equation is
therefore solved over what was remembered, and π_E ∝ π_E,gt · (r + v(s')) follows (Eq.
MDP_p_update with the solved v). Nothing but transitions that were simulated, π_E,gt, π_A and the
horizon enters; what was not tried keeps its nominal probability.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from apeval.problem.exact import exact_adversary
from apeval.problem.table import SAFE_END, TabularModel
from apeval.problem.types import BoolArray, FloatArray, IntArray

#: A pair (s, a_A, a_E) that was never tried.
UNKNOWN = np.iinfo(np.int64).min


def plan(model: TabularModel, memory: IntArray, caution: float) -> FloatArray:
    """π_E over (s, a_A, a_E), or over (t, s, a_A, a_E) with a horizon.

    `model` gives π_A, π_E,gt and the horizon; its transitions are not read: `memory` holds those
    that were seen.
    """
    known = _usable(memory)
    states = np.flatnonzero(known.any(axis=(1, 2)))
    layers = () if model.horizon is None else (model.horizon,)
    pi = np.broadcast_to(model.nominal, (*layers, *model.shape)).copy()
    if len(states) == 0:
        return pi
    seen = _restricted(model, memory, known, states)
    gt, tried = model.nominal[states], known[states]
    untried = np.where(tried, 0.0, gt).sum(axis=-1, keepdims=True)
    tilted = np.where(tried, (1.0 - untried) * exact_adversary(seen), gt)
    rows: FloatArray = (1.0 - caution) * tilted + caution * gt
    pi[..., states, :, :] = rows / rows.sum(axis=-1, keepdims=True)
    return pi


def _usable(memory: IntArray) -> BoolArray:
    """Transitions whose value can be known: to an end, or to a state that was left again."""
    known: BoolArray = memory != UNKNOWN
    while True:
        left_again = known.any(axis=(1, 2))
        keep = known & ((memory < 0) | left_again[np.maximum(memory, 0)])
        if np.array_equal(keep, known):
            return known
        known = keep


def _restricted(
    model: TabularModel, memory: IntArray, known: BoolArray, states: IntArray
) -> TabularModel:
    """The remembered part of the problem as a model of its own, probabilities renormalised."""
    number = np.full(model.shape[0], SAFE_END)
    number[states] = np.arange(len(states))
    codes, tried = memory[states], known[states]
    successor = np.where(codes >= 0, number[np.maximum(codes, 0)], codes)
    agent = np.where(tried.any(axis=2), model.agent[states], 0.0)
    agent_mass = agent.sum(axis=1, keepdims=True)
    gt = model.nominal[states]
    nominal = np.where(tried, gt, 0.0)
    mass = nominal.sum(axis=2, keepdims=True)
    return replace(
        model,
        agent=np.where(agent_mass > 0.0, agent / np.where(agent_mass > 0.0, agent_mass, 1.0),
                       model.agent[states]),
        nominal=np.where(mass > 0.0, nominal / np.where(mass > 0.0, mass, 1.0), gt),
        successor=np.where(tried, successor, SAFE_END),
        start=0,
    )  # fmt: skip
