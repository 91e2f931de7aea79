"""Tabular APE with slots for states and for nature's actions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from apeval.learn.ape_tabular.policy_rows import FAILURE, State
from apeval.learn.ape_tabular.td import TdLearner, Values
from apeval.problem.draws import NATURE, Draws
from apeval.problem.problem import Problem
from apeval.problem.types import Array
from apeval.remedies import Note
from apeval.simulate.adversary import Adversary, Mixture, Situation, with_nominal
from apeval.simulate.simulation import Simulation
from apeval_paper.methods.ape_discrete.config import ApeDiscreteConfig
from apeval_paper.methods.slots.cut import Cut, Cutter
from apeval_paper.methods.slots.policy import (
    Joint,
    Key,
    SlotAdversary,
    SlotRow,
    draw,
)
from apeval_paper.methods.slots.state import agent_keys, state_keys
from apeval_paper.methods.widened_start import WidenedStart, find_start


@dataclass(frozen=True)
class SlotChoice:
    """A slot that nature chose, and all that its weight and its update need."""

    s: State
    row: RememberedRow
    cut: Cut
    slot: Joint
    gt: float
    """π_E,gt(slot | s, a_A)."""
    pi: float
    """π_E(slot | s, a_A)."""


@dataclass
class RememberedRow(SlotRow):
    """A row that remembers what followed each slot."""

    successor: dict[Joint, State] = field(default_factory=dict)


@dataclass
class BoundedValues(Values):
    """v as a probability: weights are not bounded while π_E moves, and a target above 1 would
    leave v above 1 for good."""

    above: int = 0
    """How many targets were above 1."""

    def update_value(self, s: State, target: float) -> None:
        self.above += int(target > 1.0)
        super().update_value(s, min(target, 1.0))


class DiscreteLearner(TdLearner[SlotChoice]):
    """π_E changes at every decision."""

    config: ApeDiscreteConfig
    tables: BoundedValues

    def __init__(self, problem: Problem, config: ApeDiscreteConfig) -> None:
        super().__init__(problem, config, BoundedValues(config.v_init, config.step_size))
        self.cutter = Cutter(config)
        self.rows: dict[Key, RememberedRow] = {}
        self.pilot: WidenedStart | None = None

    def advance(self, simulation: Simulation) -> bool:
        """One round of episodes; before the first one a pilot, where the start is left open."""
        if self.pilot is None and self.config.open_start and self.config.learn_share > 0.0:
            budget = simulation.budget.share(self.config.learn_share)
            self.pilot = find_start(simulation, budget, self._widened)
            self.steps = simulation.steps
            self.cutter = self._cutter(self.pilot.scale)
        return super().advance(simulation)

    def _cutter(self, scale: float) -> Cutter:
        return Cutter(replace(self.config, warm_scale=scale))

    def _widened(self, scale: float) -> Adversary:
        c = self.config
        return SlotAdversary({}, self._cutter(scale), c.state_slots, c.time_in_state)

    def key(self, s: Array, t: int) -> State:
        time = np.array([t]) if self.config.time_in_state else None
        return state_keys(s[None, :], time, self.config.state_slots)[0]

    def choose(self, s: State, x: Any, now: Situation, draws: Draws) -> tuple[Array, SlotChoice]:
        cut, d = self.cutter(now.law), self.problem.nominal.dim
        row = self.rows.setdefault((s, agent_keys(now.a_A)[0]), RememberedRow(d))
        slot, left, pi = draw(row, cut, draws.stream(NATURE, d))
        joint, gt = tuple(slot[0].tolist()), cut.nominal(slot)
        return cut.place(slot, left), SlotChoice(s, row, cut, joint, float(gt[0]), float(pi[0]))

    def weigh(self, choice: SlotChoice, remembered: State) -> float:
        """Eq. ape_is_weight: π_E,gt/π_E is the same all over the slot."""
        choice.row.successor[choice.slot] = remembered
        return choice.gt / choice.pi

    def update_policy(self, choice: SlotChoice, r: float, s_next: State) -> None:
        """Eq. MDP_p_update; rows are normalised when they are read."""
        c, row = self.config, choice.row
        v_s = max(self.tables.value(choice.s), c.v_floor)
        delta = c.delta / choice.cut.joint_slots
        if c.policy_update == "visited":
            row.put(choice.slot, max(delta, choice.gt * (r + self.tables.value(s_next)) / v_s))
            return
        row.rest = max(c.v_init, v_s) / v_s
        gt = choice.cut.nominal(np.array(list(row.successor)))
        for (slot, known), mass in zip(row.successor.items(), gt.tolist(), strict=True):
            r_plus_v = float(known == FAILURE) + self.tables.value(known)
            row.put(slot, max(delta, mass * r_plus_v / v_s))

    def proposal(self) -> Mixture:
        c = self.config
        learned = SlotAdversary(self.rows, self.cutter, c.state_slots, c.time_in_state)
        return with_nominal(learned, c.nominal_share)

    def warnings(self) -> list[Note]:
        found = [] if self.pilot is None else self.pilot.notes()
        if sum(self.failures_by_kind) == 0 and self.steps:
            text = (
                f"learning saw no failure in {self.steps:,} decisions, so the adversary learned "
                "nothing. It may also start wider (warm_scale, warm_shift)"
            )
            found.append(Note(text, serious=False, more=1.0))
        if self.tables.above:
            text = (
                f"{self.tables.above:,} of {self.steps:,} TD targets ρ·(r + v) were above 1 and "
                "were cut to 1, so the learned v is biased: raise delta"
            )
            found.append(Note(text, serious=False))
        return found
