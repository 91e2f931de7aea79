"""Recorded episodes again, side by side, under a problem that may have changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.problem.draws import Tape
from apeval.problem.laws import Law
from apeval.problem.problem import Problem
from apeval.problem.types import Array, IntArray
from apeval.simulate.episodes import Episodes
from apeval.simulate.rollout import EpisodeOutcomes, judge, situation

_RELATIVE, _ABSOLUTE = 1e-6, 1e-9  # a policy's last digits may depend on the batch


@dataclass(frozen=True)
class Retraced:
    """What the problem says of decisions that were recorded."""

    law: Law
    """π_E,gt(· | s_n, a_A,n), row by row as in the recorded episodes."""
    law_0: Law | None
    differs: str | None
    """What went otherwise than recorded, or None."""


def retrace(problem: Problem, key: IntArray, it: Episodes) -> Retraced:
    """Play the recorded a_0 and a_E, and compare states, actions and outcomes with the record. The
    last decision of an unresolved episode is not played: f_E may not come back from it."""
    it = it.take(~(it.unresolved & (it.length == int(it.law_0 is not None))))  # nor from a reset
    tape = Tape(key, it.ids, problem.longest, it.lineage)
    draws = tape.start()
    x = problem.reset(draws) if problem.initial is None else problem.reset(draws, it.a_0)
    law_0 = None if problem.initial is None else problem.initial.given(None, None)
    first = 0 if law_0 is None else 1
    if first != int(it.law_0 is not None):
        return Retraced(it.law, law_0, "whether the initial state is a disturbance")
    decisions, start = it.length - first, np.searchsorted(it.episode, np.arange(it.n))
    outcomes = EpisodeOutcomes.none(it.n, first)
    cut = it.unresolved | it.ended_by_roulette
    laws, rows, alive = [], [], np.arange(it.n)
    for t in range(int(decisions.max())):
        row = start[alive] + t
        draws = tape.at(t, alive)
        now = situation(problem, x, draws)
        laws.append(now.law)
        rows.append(row)
        if not (_same(now.s, it.s[row]) and _same(now.a_A, it.a_A[row])):
            return Retraced(it.law, law_0, f"states or agent actions at decision {t + 1}")
        goes_on = ~(it.unresolved[alive] & (decisions[alive] == t + 1))
        if not goes_on.any():
            break
        if not goes_on.all():
            x, alive, row = x[goes_on], alive[goes_on], row[goes_on]
            draws = tape.at(t, alive)
        x = problem.step(x, now.a_A[goes_on], it.a_E[row], draws)
        ended = judge(problem, x, alive, t, outcomes)
        last = decisions[alive] == t + 1
        if not np.array_equal((ended == last) | cut[alive], np.ones(len(alive), bool)):
            return Retraced(it.law, law_0, f"when episodes end (decision {t + 1})")
        if last.any():
            x, alive = x[~last], alive[~last]
    if not np.array_equal(outcomes.kind, it.kind):
        return Retraced(it.law, law_0, "which episodes fail")
    order = np.argsort(np.concatenate(rows), kind="stable")
    law = Law.stack(laws, [len(r) for r in rows]).take(order)
    return Retraced(law, law_0, None)


def _same(one: Array, other: Array) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, _RELATIVE, _ABSOLUTE))
