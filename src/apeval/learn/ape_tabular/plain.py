"""Tabular APE in dictionaries: the readable reference, for any problem with discrete states.

Equation names are those of the paper's LaTeX source. `compiled.py` does the same on arrays, bit
by bit, for problems that come with transition tables.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from apeval.learn.ape_tabular.config import ApeTabularConfig
from apeval.learn.ape_tabular.frozen_adversary import KeyedAdversary, planned_mixture
from apeval.learn.ape_tabular.implied_adversaries import (
    UNKNOWN,
    plan,
    planned_basis,
    value_bounds,
)
from apeval.learn.ape_tabular.policy_rows import (
    END,
    FAILURE,
    Action,
    CodedRows,
    PolicyRow,
    Rows,
    State,
    code_rows,
    whole_numbers,
    without_time,
)
from apeval.learn.ape_tabular.stagnation import Stagnation
from apeval.learn.ape_tabular.td import TdLearner, Values
from apeval.learn.ape_tabular.transitions import transitions
from apeval.learn.method import Basis
from apeval.problem.agent import Stochastic
from apeval.problem.draws import NATURE, Draws
from apeval.problem.laws import pick
from apeval.problem.problem import Problem
from apeval.problem.tabular_model import SAFE_END, TabularModel
from apeval.problem.types import Array
from apeval.simulate.adversary import (
    Adversary,
    Mixture,
    Nominal,
    Situation,
    only,
    with_nominal,
)
from apeval.simulate.episodes import Episodes


class Tables(Values):
    """v and π_E, as dictionaries."""

    def __init__(self, config: ApeTabularConfig) -> None:
        super().__init__(config.v_init, config.step_size)
        self.config = config
        self.rows: dict[State, dict[Action, PolicyRow]] = {}

    def rho(self, s: State, a_A: Action, a_E: int, s_next: State) -> float:
        """The one-step weight: Eq. ape_is_weight, or summed over agent actions (exact form)."""
        row = self.rows[s][a_A]
        if self.config.value_update == "online":
            return row.gt[a_E] / row.pi[a_E]
        p = p_n = 0.0
        for other in (self.rows[s][a] for a in sorted(self.rows[s])):
            for e, known in enumerate(other.successor):
                if known == s_next:
                    p += other.pi_A * other.gt[e]
                    p_n += other.pi_A * other.pi[e]
        return p / p_n

    def update_policy(self, s: State, a_A: Action, a_E: int, r: float, s_next: State) -> None:
        """Eq. MDP_p_update and the normalisation below it."""
        c, row = self.config, self.rows[s][a_A]
        v_s = max(self.value(s), c.v_floor)
        if c.policy_update == "visited":
            raw = row.gt[a_E] * (r + self.value(s_next)) / v_s
            row.tilde[a_E] = raw if c.true_floor else max(c.delta, raw)
        else:
            for e, known in enumerate(row.successor):
                if known is None:
                    raw = row.gt[e] * max(c.v_init, v_s) / v_s
                else:
                    raw = row.gt[e] * (float(known == FAILURE) + self.value(known)) / v_s
                row.tilde[e] = raw if c.true_floor else max(c.delta, raw)
        self._normalise(row)

    def _normalise(self, row: PolicyRow) -> None:
        total = 0.0
        for p in row.tilde:
            total += p
        E, delta = len(row.pi), self.config.delta
        for e in range(E):
            p = row.tilde[e] / total if total > 0.0 else row.gt[e]
            row.pi[e] = (1.0 - E * delta) * p + delta if self.config.true_floor else p


class PlainLearner(TdLearner[tuple[State, Action, int]]):
    """One episode, one decision at a time."""

    config: ApeTabularConfig
    tables: Tables

    def __init__(self, problem: Problem, config: ApeTabularConfig) -> None:
        super().__init__(problem, config, Tables(config))
        self.stopping = Stagnation(config.stop_window, config.stop_tolerance, config.v_init)

    def choose(
        self, s: State, x: Any, now: Situation, draws: Draws
    ) -> tuple[Array, tuple[State, Action, int]]:
        a_A = tuple(now.a_A[0].tolist())
        row = self._row(s, a_A, x, now.law)
        a_E = pick(np.array([row.pi]), draws.stream(NATURE, 1))
        return a_E, (s, a_A, int(a_E[0, 0]))

    def weigh(self, choice: tuple[State, Action, int], remembered: State) -> float:
        s, a_A, a_E = choice
        self.tables.rows[s][a_A].successor[a_E] = remembered
        return self.tables.rho(s, a_A, a_E, remembered)

    def update_policy(self, choice: tuple[State, Action, int], r: float, s_next: State) -> None:
        self.tables.update_policy(*choice, r, s_next)

    def watch(self, v_0: float) -> None:
        if v_0 != self.stopping.changes[-1][1]:
            self.stopping.change(self.steps, v_0)
        if self.config.stop_tolerance > 0.0:
            self.stopped = self.stopping.reached(self.steps, sum(self.failures_by_kind))
        super().watch(v_0)

    def key(self, s: Array, t: int) -> State:
        values = whole_numbers(s, t)
        return (*values, t) if self.config.time_in_state else values

    def _row(self, s: State, a_A: Action, x: Any, law: Any) -> PolicyRow:
        rows = self.tables.rows.setdefault(s, {})
        if a_A not in rows:
            gt = [float(p) for p in law.outcome_probabilities()[0]]
            agent = self.problem.agent
            pi_A = (
                float(agent.probabilities(x)[0][int(a_A[0])])
                if isinstance(agent, Stochastic)
                else 1.0
            )
            rows[a_A] = PolicyRow(gt, list(gt), list(gt), [None] * len(gt), pi_A)
        return rows[a_A]

    def proposal(self) -> Mixture:
        """All visited rows brought up to date, then frozen."""
        c, rows = self.config, self._rows()
        if not rows:
            return only(Nominal())
        if not c.planned:
            if c.policy_update == "row":
                for s in rows:
                    for a_A in rows[s]:
                        self.tables.update_policy(s, a_A, 0, 0.0, END)
            coded = code_rows(rows)
            last = KeyedAdversary(coded.pi, coded.states, coded.actions, self.key)
            return with_nominal(last, c.nominal_share)
        coded = code_rows(rows)
        return planned_mixture(
            c,
            self.mean_length,
            self._model(coded),
            coded.memory,
            lambda pi: KeyedAdversary(pi, coded.states, coded.actions, whole_numbers),
        )

    def basis(self) -> Basis:
        rows = self._rows()
        if not self.config.planned or not rows:
            return super().basis()
        coded = code_rows(rows)
        return planned_basis(self._model(coded), coded.memory, self._coded_starts(coded))

    def undecided(self) -> bool:
        rows = self._rows()
        if not self.config.planned or not rows:
            return False
        coded = code_rows(rows)
        starts = self._coded_starts(coded)
        lowest, highest = value_bounds(self._model(coded), coded.memory, starts)
        return highest - lowest > self.config.unknown * lowest

    def explorer(self) -> Adversary:
        coded = code_rows(self._rows())
        pi = plan(self._model(coded), coded.memory, 0.0, wary=True)
        return KeyedAdversary(pi, coded.states, coded.actions, whole_numbers)

    def learn_transitions(self, episodes: Episodes) -> int:
        """Where a random agent acts in a new state, π_A is how often it took each action there."""
        seen, rows, new = transitions(episodes, self.problem), self.tables.rows, 0
        laws = episodes.law.outcome_probabilities()
        keys = [self.key(s, int(t)) for s, t in zip(episodes.s, episodes.t, strict=True)]
        actions = [tuple(a_A.tolist()) for a_A in episodes.a_A]
        here, taken = Counter(keys), Counter(zip(keys, actions, strict=True))
        for i, inside, code in zip(*seen, strict=True):
            s, a_A, e = keys[i], actions[i], int(episodes.a_E[i, 0])
            if a_A not in rows.setdefault(s, {}):
                gt = [float(p) for p in laws[i if len(laws) > 1 else 0]]
                pi_A = taken[s, a_A] / here[s]
                rows[s][a_A] = PolicyRow(gt, list(gt), list(gt), [None] * len(gt), pi_A)
            successor = rows[s][a_A].successor
            new += successor[e] is None
            after = keys[i + 1] if inside else END
            successor[e] = FAILURE if code < SAFE_END and not inside else after
        return new

    def _coded_starts(self, coded: CodedRows) -> dict[int, int]:
        starts: dict[int, int] = {}
        for s, n in self.starts.items():
            number = coded.states.get(s[:-1] if self.config.time_in_state else s, UNKNOWN)
            starts[number] = starts.get(number, 0) + n
        return starts

    def _rows(self) -> Rows:
        """What is frozen: without time where the plan puts it back by itself."""
        rows: Rows = self.tables.rows
        if self.config.time_in_state and self.config.planned:
            return without_time(rows, self.problem.horizon)
        return rows

    def _model(self, coded: CodedRows) -> TabularModel:
        problem = self.problem
        return coded.model(problem.horizon, problem.horizon_kind, problem.kinds)
