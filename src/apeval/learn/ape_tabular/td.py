"""The loop of APE over tables, one decision at a time, however π_E is stored."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from apeval.learn.ape_tabular.config import TdConfig
from apeval.learn.ape_tabular.learner import TabularLearner
from apeval.learn.ape_tabular.policy_rows import END, FAILURE, State
from apeval.problem.draws import Draws
from apeval.problem.problem import Problem
from apeval.problem.types import Array
from apeval.simulate.adversary import Situation
from apeval.simulate.answer_checks import failure_kinds, require_finite
from apeval.simulate.rollout import situation
from apeval.simulate.simulation import Simulation

Choice = TypeVar("Choice")


@dataclass
class Values:
    """v, as a dictionary."""

    v_init: float
    step_size: float
    v: dict[State, float] = field(default_factory=dict)
    visits: dict[State, int] = field(default_factory=dict)

    def value(self, s: State) -> float:
        """v(s); 0 at a terminal state."""
        return 0.0 if s in (END, FAILURE) else self.v.get(s, self.v_init)

    def update_value(self, s: State, target: float) -> None:
        """Eq. ape_v_update_approx with α = c/(c + k − 1) at the k-th visit."""
        k = self.visits.get(s, 0) + 1
        self.visits[s] = k
        alpha = self.step_size / (self.step_size + k - 1)
        self.v[s] = (1.0 - alpha) * self.value(s) + alpha * target


class TdLearner(TabularLearner, Generic[Choice]):
    """Act, weigh, update v, update π_E. A `Choice` is what nature did in one decision."""

    def __init__(self, problem: Problem, config: TdConfig, tables: Values) -> None:
        super().__init__(problem, config)
        self.tables = tables
        self.starts: dict[State, int] = {}  # how often episodes started where

    @abstractmethod
    def key(self, s: Array, t: int) -> State:
        """The state's place in the tables."""

    @abstractmethod
    def choose(self, s: State, x: Any, now: Situation, draws: Draws) -> tuple[Array, Choice]:
        """a_E ~ π_E(· | s, a_A), shape (1, d_E)."""

    @abstractmethod
    def weigh(self, choice: Choice, remembered: State) -> float:
        """ρ of the decision; also the place to remember its successor."""

    @abstractmethod
    def update_policy(self, choice: Choice, r: float, s_next: State) -> None:
        """Eq. MDP_p_update."""

    def watch(self, v_0: float) -> None:
        """Called after every step with the present v(s0)."""
        self.note_curve(v_0)

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
            s = self.key(now.s[0], t)
            if t == 0:
                self.starts[s] = self.starts.get(s, 0) + 1
            a_E, choice = self.choose(s, x, now, draws)
            t += 1
            self.steps += 1
            try:
                x = problem.step(x, now.a_A, a_E, draws)
                seen = problem.observe(x)
                require_finite(seen, draws.ids, t - 1)
            except Exception as error:
                simulation.source.lost(error, simulation.episodes, t)
                break
            kind, ended = self._outcome(x, t)
            s_next = self._successor(seen[0], t, kind, ended)
            remembered = self._remembered(x, seen[0], t, s_next)
            trace.append((s, self.weigh(choice, remembered)))
            r = float(kind > 0)
            self._update_values(trace, r + tables.value(s_next), ended)
            self.update_policy(choice, r, s_next)
            self.failures_by_kind[kind] += int(kind > 0)
            self.watch(self.value())
            if ended or self.stopped:
                break
        simulation.count(t, 1, int(kind > 0), t)
        simulation.pause()

    def _update_values(self, trace: list[tuple[State, float]], tail: float, ended: bool) -> None:
        """n-step targets (∏ρ)(r + v(s')) of all decisions whose window is complete."""
        while trace and (ended or len(trace) == self.config.n_step):
            target = 1.0
            for _, rho in trace:
                target *= rho
            s, _ = trace.pop(0)
            self.tables.update_value(s, target * tail)

    def _outcome(self, x: Any, t: int) -> tuple[int, bool]:
        kind = int(failure_kinds(self.problem, x, 1)[0])
        done = self.problem.done is not None and bool(np.asarray(self.problem.done(x))[0])
        at_horizon = self.problem.horizon is not None and t >= self.problem.horizon
        if self.problem.judge_at_end and not (done or at_horizon):
            kind = 0
        if at_horizon and not (kind or done):
            return self.problem.horizon_kind, True
        return kind, bool(kind or done or t >= self.problem.longest)

    def _successor(self, s: Array, t: int, kind: int, ended: bool) -> State:
        if ended:
            return FAILURE if kind else END
        return self.key(s, t)

    def _remembered(self, x: Any, s: Array, t: int, s_next: State) -> State:
        """The successor as f_E made it. Reaching the horizon is no property of the pair (s, a_E)
        unless time is in the state."""
        at_horizon = self.problem.horizon is not None and t >= self.problem.horizon
        if at_horizon and not self.config.time_in_state:
            fails = int(np.asarray(self.problem.failed(x))[0]) > 0
            done = self.problem.done is not None and bool(np.asarray(self.problem.done(x))[0])
            if not (fails or done):
                return self.key(s, t)
        return s_next

    def value(self) -> float:
        """v(s0); its mean over the starts seen where the start is random."""
        if len(self.starts) == 1:
            return self.tables.value(next(iter(self.starts)))
        total = sum(self.starts.values())
        if total == 0:
            return self.config.v_init
        return sum(n * self.tables.value(s) for s, n in self.starts.items()) / total
