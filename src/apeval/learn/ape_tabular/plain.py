"""Tabular APE in dictionaries: the readable reference, for any problem with discrete states.

Equation names are those of the paper's LaTeX source. `compiled.py` does the same on arrays, bit
by bit, for problems that come with transition tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apeval.learn.ape_tabular.config import ApeTabularConfig
from apeval.learn.ape_tabular.frozen import KeyedAdversary
from apeval.learn.ape_tabular.learner import TabularLearner
from apeval.learn.ape_tabular.rows import (
    END,
    FAILURE,
    Action,
    Row,
    State,
    code_rows,
    whole_numbers,
    without_time,
)
from apeval.learn.ape_tabular.stopping import Stagnation
from apeval.problem.agent import Stochastic
from apeval.problem.draws import NATURE, Draws
from apeval.problem.laws import pick
from apeval.problem.problem import Problem
from apeval.problem.types import Array
from apeval.simulate.adversary import Mixture
from apeval.simulate.rollout import require_finite, situation
from apeval.simulate.simulation import Simulation


@dataclass
class Tables:
    """v and π_E, as dictionaries."""

    config: ApeTabularConfig
    v: dict[State, float] = field(default_factory=dict)
    visits: dict[State, int] = field(default_factory=dict)
    rows: dict[State, dict[Action, Row]] = field(default_factory=dict)

    def value(self, s: State) -> float:
        """v(s); 0 at a terminal state."""
        return 0.0 if s in (END, FAILURE) else self.v.get(s, self.config.v_init)

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

    def update_value(self, s: State, target: float) -> None:
        """Eq. ape_v_update_approx with α = c/(c + k − 1) at the k-th visit."""
        k = self.visits.get(s, 0) + 1
        self.visits[s] = k
        alpha = self.config.step_size / (self.config.step_size + k - 1)
        self.v[s] = (1.0 - alpha) * self.value(s) + alpha * target

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

    def _normalise(self, row: Row) -> None:
        total = 0.0
        for p in row.tilde:
            total += p
        E, delta = len(row.pi), self.config.delta
        for e in range(E):
            p = row.tilde[e] / total if total > 0.0 else row.gt[e]
            row.pi[e] = (1.0 - E * delta) * p + delta if self.config.true_floor else p


class PlainLearner(TabularLearner):
    """One episode, one decision at a time."""

    def __init__(self, problem: Problem, config: ApeTabularConfig) -> None:
        super().__init__(problem, config)
        self.tables = Tables(config)
        self.stopping = Stagnation(config.stop_window, config.stop_tolerance, config.v_init)
        self.s_0: State | None = None

    def run_round(self, simulation: Simulation, limit: int, episodes: int, round_ends: int) -> None:
        while (
            self.steps < round_ends
            and self.steps < limit
            and simulation.episodes < episodes
            and not self.stopped
        ):
            self._run_episode(simulation, limit)

    def _run_episode(self, simulation: Simulation, hard_limit: int) -> None:
        """Algorithm: act, weigh, update v, update π_E, until the episode ends."""
        problem, tables = self.problem, self.tables
        draws = Draws(simulation.key, np.array([simulation.episodes]))
        x = problem.reset(draws)
        trace: list[tuple[State, float]] = []  # (s_n, ρ_n) whose TD target is still open
        t, kind = 0, 0
        while self.steps < hard_limit:
            draws = draws.at(t)
            now = situation(problem, x, draws)
            s = self._key(now.s[0], t)
            self.s_0 = s if self.s_0 is None else self.s_0
            a_A = tuple(now.a_A[0].tolist())
            row = self._row(s, a_A, x, now.law)
            u = draws.stream(NATURE, 1)
            a_E = int(pick(np.array([row.pi]), u)[0, 0])
            before = x.copy() if isinstance(x, np.ndarray) else x  # f_E may work in place
            x = problem.step(before, now.a_A, np.array([[a_E]]), draws)
            require_finite(problem.observe(x), draws.ids, t)
            t += 1
            self.steps += 1
            kind, ended = self._outcome(x, t)
            s_next = self._successor(x, t, kind, ended)
            remembered = self._remembered(x, t, kind, ended)
            row.successor[a_E] = remembered
            trace.append((s, tables.rho(s, a_A, a_E, remembered)))
            r = float(kind > 0)
            self._update_values(trace, r + tables.value(s_next), ended)
            tables.update_policy(s, a_A, a_E, r, s_next)
            self.failures_by_kind[kind] += int(kind > 0)
            self._watch()
            if ended or self.stopped:
                break
        simulation.count(t, 1, int(kind > 0), t)

    def _update_values(self, trace: list[tuple[State, float]], tail: float, ended: bool) -> None:
        """n-step targets (∏ρ)(r + v(s')) of all decisions whose window is complete."""
        while trace and (ended or len(trace) == self.config.n_step):
            target = 1.0
            for _, rho in trace:
                target *= rho
            s, _ = trace.pop(0)
            self.tables.update_value(s, target * tail)

    def _watch(self) -> None:
        v_0 = self.value()
        if v_0 != self.stopping.changes[-1][1]:
            self.stopping.change(self.steps, v_0)
        if self.config.stop_tolerance > 0.0:
            self.stopped = self.stopping.reached(self.steps, sum(self.failures_by_kind))
        self.note_curve(v_0)

    def _key(self, s: Array, t: int) -> State:
        values = whole_numbers(s, t)
        return (*values, t) if self.config.time_in_state else values

    def _row(self, s: State, a_A: Action, x: Any, law: Any) -> Row:
        rows = self.tables.rows.setdefault(s, {})
        if a_A not in rows:
            gt = [float(p) for p in law.probabilities[0]]
            agent = self.problem.agent
            pi_A = (
                float(agent.probabilities(x)[0][int(a_A[0])])
                if isinstance(agent, Stochastic)
                else 1.0
            )
            rows[a_A] = Row(gt, list(gt), list(gt), [None] * len(gt), pi_A)
        return rows[a_A]

    def _outcome(self, x: Any, t: int) -> tuple[int, bool]:
        kind = int(np.asarray(self.problem.failed(x))[0])
        done = self.problem.done is not None and bool(np.asarray(self.problem.done(x))[0])
        at_horizon = self.problem.horizon is not None and t >= self.problem.horizon
        if self.problem.judge_at_end and not (done or at_horizon):
            kind = 0
        if at_horizon and not (kind or done):
            return self.problem.horizon_kind, True
        return kind, bool(kind or done or t >= self.problem.longest)

    def _successor(self, x: Any, t: int, kind: int, ended: bool) -> State:
        if ended:
            return FAILURE if kind else END
        return self._key(self.problem.observe(x)[0], t)

    def _remembered(self, x: Any, t: int, kind: int, ended: bool) -> State:
        """The successor as f_E made it. Reaching the horizon is no property of the pair (s, a_E)
        unless time is in the state."""
        at_horizon = self.problem.horizon is not None and t >= self.problem.horizon
        if ended and at_horizon and not self.config.time_in_state:
            fails = int(np.asarray(self.problem.failed(x))[0]) > 0
            done = self.problem.done is not None and bool(np.asarray(self.problem.done(x))[0])
            if not (fails or done):
                return self._key(self.problem.observe(x)[0], t)
        return self._successor(x, t, kind, ended)

    def value(self) -> float:
        return self.config.v_init if self.s_0 is None else self.tables.value(self.s_0)

    def proposal(self) -> Mixture:
        """All visited rows brought up to date, then frozen."""
        c, rows = self.config, self.tables.rows
        if not c.planned:
            if c.policy_update == "row":
                for s in rows:
                    for a_A in rows[s]:
                        self.tables.update_policy(s, a_A, 0, 0.0, END)
            coded = code_rows(rows)
            last = KeyedAdversary(coded.pi, coded.states, coded.actions, self._key)
            return self.learned_mixture(last)
        coded = code_rows(without_time(rows, self.problem.horizon) if c.time_in_state else rows)
        model = coded.model(self.problem.horizon, self.problem.horizon_kind, self.problem.kinds)
        return self.planned_mixture(
            model,
            coded.memory,
            lambda pi: KeyedAdversary(pi, coded.states, coded.actions, whole_numbers),
        )
