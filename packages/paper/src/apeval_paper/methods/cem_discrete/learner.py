"""The cross-entropy method for Markov chains on slots: the update rules of the appendix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from apeval.learn.method import Learner
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray
from apeval.remedies import Note
from apeval.simulate.adversary import Mixture, Nominal, only, with_nominal
from apeval.simulate.episodes import Episodes, join
from apeval.simulate.simulation import Simulation
from apeval_paper.methods.cem_discrete.config import CemDiscreteConfig
from apeval_paper.methods.slots.cut import Cutter
from apeval_paper.methods.slots.policy import Joint, Key, SlotAdversary, SlotRow
from apeval_paper.methods.widened_start import WidenedStart, find_start


class CrossEntropyLearner(Learner):
    """k episodes under a fixed π_E⁽ᵐ⁾, then π_E⁽ᵐ⁺¹⁾ and v⁽ᵐ⁺¹⁾ from the failures among them."""

    def __init__(self, problem: Problem, config: CemDiscreteConfig) -> None:
        self.problem, self.config = problem, config
        self.cutter = Cutter(config)
        self.pi_E = self._adversary({})
        self.learning: Simulation | None = None
        self.batches: list[Episodes] = []  # of the present π_E
        self.failures = 0
        self.above = 0
        self._curve: list[tuple[int, float]] = []
        self.pilot: WidenedStart | None = None

    def _adversary(self, rows: Mapping[Key, SlotRow]) -> SlotAdversary:
        c = self.config
        return SlotAdversary(rows, self.cutter, c.state_slots, c.time_in_state)

    def _widened(self, scale: float) -> SlotAdversary:
        c = self.config
        cutter = Cutter(replace(c, warm_scale=scale))
        return SlotAdversary({}, cutter, c.state_slots, c.time_in_state)

    def advance(self, simulation: Simulation) -> bool:
        """One batch of episodes, and an update once there are k."""
        if self.config.learn_share == 0.0:
            return False
        if self.learning is None:
            self.learning = simulation.part(simulation.budget.share(self.config.learn_share))
        if self.pilot is None and self.config.open_start:
            self.pilot = find_start(self.learning, self.learning.budget, self._widened)
            self.pi_E = self._widened(self.pilot.scale)
            self.cutter = self.pi_E.cutter
        gathered = sum(b.n for b in self.batches)
        n = min(self.config.episodes_per_update - gathered, self.learning.affordable())
        if n > 0:
            batch = self.learning.run(only(self.pi_E), n, 0)
            self.failures += int(batch.failed.sum())
            self.batches.append(batch)
        if gathered + n == self.config.episodes_per_update or (n == 0 and not self._curve):
            self._update()
        return n > 0

    def _update(self) -> None:
        if not self.batches:
            return
        episodes = join(self.batches)
        self.batches = []
        log_L = episodes.log_density(Nominal()) - episodes.log_density(self.pi_E)
        steps = 0 if self.learning is None else self.learning.steps
        self._curve.append((steps, self._value(episodes, log_L)))
        if episodes.failed.any():
            self.pi_E = self._adversary({**self.pi_E.rows, **self._new_rows(episodes, log_L)})

    def _value(self, episodes: Episodes, log_L: FloatArray) -> float:
        """v⁽ᵐ⁺¹⁾ = (1/k) Σ L_j I_j, a probability."""
        with np.errstate(over="ignore"):
            v = float(np.where(episodes.failed, np.exp(log_L), 0.0).sum()) / episodes.n
        self.above += int(v > 1.0)
        return min(v, 1.0)

    def _new_rows(self, episodes: Episodes, log_L: FloatArray) -> dict[Key, SlotRow]:
        """π̃_E⁽ᵐ⁺¹⁾ = max(δ_CEM, Σ L_j N_j(s, a_A, a_E) I_j / Σ L_j N_j(s, a_A) I_j). A state that
        no failing episode met has no such ratio and keeps its row."""
        failing = np.flatnonzero(episodes.failed[episodes.episode])
        now, a_E = episodes.situation.take(failing), episodes.a_E[failing]
        L = np.exp(log_L - log_L[episodes.failed].max())[episodes.episode[failing]]
        cut = self.cutter(now.law)
        delta = self.config.delta / cut.joint_slots
        joints: list[Joint] = list(map(tuple, cut.locate(a_E).tolist()))
        counts: dict[Key, dict[Joint, float]] = {}
        for key, joint, L_j in zip(self.pi_E.keys(now), joints, L.tolist(), strict=True):
            of_row = counts.setdefault(key, {})
            of_row[joint] = of_row.get(joint, 0.0) + L_j
        rows = {}
        for key, of_row in counts.items():
            L_N = sum(of_row.values())
            if L_N > 0.0:
                row = rows[key] = SlotRow(a_E.shape[1], rest=delta, flat=True)
                for joint, L_N_a in of_row.items():
                    row.put(joint, max(delta, L_N_a / L_N))
        return rows

    def value(self) -> float | None:
        return self._curve[-1][1] if self._curve else None

    def curve(self) -> list[tuple[int, float]]:
        return self._curve

    def proposal(self) -> Mixture:
        return with_nominal(self.pi_E, self.config.nominal_share)

    def warnings(self) -> list[Note]:
        found = [] if self.pilot is None else self.pilot.notes()
        if self._curve and not self.failures:
            text = (
                f"learning saw no failure in {len(self._curve):,} updates, so the adversary "
                "learned nothing. It may also start wider (warm_scale, warm_shift)"
            )
            found.append(Note(text, serious=False, more=1.0))
        if self.above:
            text = (
                f"(1/k) Σ L·I was above 1 in {self.above:,} of {len(self._curve):,} updates and "
                "was cut to 1: raise delta or episodes_per_update. The estimate does not depend "
                "on it"
            )
            found.append(Note(text, serious=False))
        return found
