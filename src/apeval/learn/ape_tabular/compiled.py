"""Tabular APE for problems with transition tables: arrays and a compiled loop.

The learner does not read the tables: they are the simulator (f_E), entered pair by pair."""

from __future__ import annotations

import numpy as np

from apeval.errors import ApevalError
from apeval.learn.ape_tabular import kernel
from apeval.learn.ape_tabular.config import ApeTabularConfig
from apeval.learn.ape_tabular.frozen_adversary import ArrayAdversary, planned_mixture
from apeval.learn.ape_tabular.implied_adversaries import (
    UNKNOWN,
    plan,
    planned_basis,
    value_bounds,
)
from apeval.learn.ape_tabular.learner import CURVE_POINTS, TabularLearner
from apeval.learn.ape_tabular.transitions import transitions
from apeval.learn.method import Basis
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray, IntArray
from apeval.simulate.adversary import Adversary, Mixture, with_nominal
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Simulation


class CompiledLearner(TabularLearner):
    """`PlainLearner` on arrays."""

    config: ApeTabularConfig

    def __init__(self, problem: Problem, config: ApeTabularConfig) -> None:
        super().__init__(problem, config)
        if problem.table is None:
            raise ApevalError("the compiled form needs a problem with transition tables")
        self.model = problem.table
        S, A, E = self.model.shape
        self.layers = (problem.horizon or 0) if config.time_in_state else 1
        rows = S * self.layers
        self.v = np.full(rows, config.v_init)
        self.visits = np.zeros(rows, np.int64)
        self.pi = np.tile(self.model.nominal, (self.layers, 1, 1))
        self.tilde = self.pi.copy()  # π̃_E, before normalisation
        self.memory = np.full((rows, A, E), UNKNOWN)
        self.count = np.zeros(8, np.int64)
        self.count[kernel.FILLED] = 1  # v(s0) = v_init from step 0 on
        self.failures = np.zeros(len(problem.kinds) + 1, np.int64)
        self.ring_steps = np.zeros(config.stop_window + 2, np.int64)
        self.ring_values = np.full(config.stop_window + 2, config.v_init)
        self.curve_points = np.zeros((2 * CURVE_POINTS + 2, 2))

    def run_round(self, simulation: Simulation, limit: int, episodes: int, round_ends: int) -> None:
        c, model, before = self.config, self.model, self.count.copy()
        failures_before = int(self.failures.sum())
        kernel.learn(
            simulation.key,
            model.agent, model.nominal, model.successor, model.start,
            model.horizon or 0, model.horizon_kind, self.problem.cap,
            self.v, self.visits, self.pi, self.tilde, self.memory,
            self.count, self.failures, self.ring_steps, self.ring_values,
            self.curve_points, self.curve_every,
            limit, episodes, round_ends,
            c.value_update == "exact", c.policy_update == "row", c.n_step, c.time_in_state,
            c.step_size, c.v_init, c.v_floor, c.delta, c.true_floor,
            c.stop_window, c.stop_tolerance,
        )  # fmt: skip
        self.steps = int(self.count[kernel.STEPS])
        self.stopped = bool(self.count[kernel.STOPPED])
        self.failures_by_kind = self.failures.tolist()
        simulation.count(
            self.steps - int(before[kernel.STEPS]),
            int(self.count[kernel.EPISODES] - before[kernel.EPISODES]),
            int(self.failures.sum()) - failures_before,
            int(self.count[kernel.LONGEST]),
        )

    def value(self) -> float:
        return float(self.v[self.model.start])

    def curve(self) -> list[tuple[int, float]]:
        points = self.curve_points[: self.count[kernel.CURVE]]
        return [(int(n), float(v_0)) for n, v_0 in points]

    def proposal(self) -> Mixture:
        """All visited rows brought up to date, then frozen."""
        if not self.config.planned:
            return with_nominal(ArrayAdversary(self._last_rows()), self.config.nominal_share)
        return planned_mixture(
            self.config, self.mean_length, self.model, self._transitions(), ArrayAdversary
        )

    def basis(self) -> Basis:
        if not self.config.planned:
            return super().basis()
        return planned_basis(self.model, self._transitions(), {self.model.start: 1})

    def undecided(self) -> bool:
        if not self.config.planned:
            return False
        lowest, highest = value_bounds(self.model, self._transitions(), {self.model.start: 1})
        return highest - lowest > self.config.unknown * lowest

    def explorer(self) -> Adversary:
        return ArrayAdversary(plan(self.model, self._transitions(), 0.0, wary=True))

    def learn_transitions(self, episodes: Episodes) -> int:
        seen = transitions(episodes, self.problem)
        rows, S = seen.rows, self.model.shape[0]
        s, t = episodes.s[:, 0].astype(np.int64), episodes.t[rows]
        successor = np.where(seen.inside, np.append(s[1:], 0)[rows], seen.code)
        here = s[rows] + (t * S if self.config.time_in_state else 0)
        at = (here, episodes.a_A[rows, 0].astype(np.int64), episodes.a_E[rows, 0].astype(np.int64))
        before = int((self.memory != UNKNOWN).sum())
        self.memory[at] = successor
        return int((self.memory != UNKNOWN).sum()) - before

    def _transitions(self) -> IntArray:
        """f_E as remembered, (S, A, E). With time in the state the last layer's entries are the
        horizon's, not f_E's."""
        if not self.config.time_in_state:
            return self.memory
        layered = self.memory.reshape(self.layers, *self.model.shape)
        merged = np.full(self.model.shape, UNKNOWN)
        for layer in layered[:-1]:
            merged = np.where(merged == UNKNOWN, layer, merged)
        return merged

    def _last_rows(self) -> FloatArray:
        """π_E as TD left it, every remembered row updated once more with the last v."""
        c, S, pi, tilde = self.config, self.model.shape[0], self.pi.copy(), self.tilde.copy()
        if c.policy_update == "row":
            tried = (self.memory != UNKNOWN).any(axis=2)
            for here, a_A in zip(*np.nonzero(tried), strict=True):
                s, t = here % S, here // S
                offset = (t + 1) * S if c.time_in_state else 0
                kernel.update_row(
                    pi[here, a_A], tilde[here, a_A], self.model.nominal[s, a_A],
                    self.memory[here, a_A], self.v, offset, max(self.v[here], c.v_floor),
                    c.v_init, c.delta, c.true_floor,
                )  # fmt: skip
        return pi.reshape(self.layers, *self.model.shape) if c.time_in_state else pi
