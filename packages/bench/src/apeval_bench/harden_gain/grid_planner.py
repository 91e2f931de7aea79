"""A policy on the grid that learns how the agent moves and how often the lava does, and plans.

It knows when an episode ends, that the lava flows alike in all cells, and that it does not mind the
agent. Where the agent's steps lead, and how often the lava flows to each side, it learns from the
episodes that it plays: each counts with its importance weight, or, where weights are left out, as
it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apeval.hardening.minimax import exact_minimax
from apeval.problem.tabular_model import SAFE_END, TabularModel, failure_code
from apeval.problem.types import FloatArray, IntArray
from apeval_bench.harden_gain.timed_grid import cells_of
from apeval_paper.environments.minigrid import rules

_EXPLORED = 0.3  # of the training's actions: the one that was tried least
_PLANS = 5  # in a training
_CELLS = rules.SIDE**2
_NEVER = -1


@dataclass
class GridMemory:
    """What was seen."""

    steps: IntArray = field(
        default_factory=lambda: np.full((_CELLS, 4, rules.AGENT_ACTIONS, 2), _NEVER)
    )
    """Cell and direction after the agent's action, by cell, direction and action."""
    tried: IntArray = field(
        default_factory=lambda: np.zeros((_CELLS, 4, rules.AGENT_ACTIONS), np.int64)
    )
    """How often."""
    flows: FloatArray = field(default_factory=lambda: np.zeros((_CELLS, _CELLS)))
    """Weight of the lava's moves from cell to cell."""


class GridPlanner:
    """A table of actions by decisions made and state."""

    def __init__(self, table: IntArray) -> None:
        self.table = table

    def __call__(self, obs: Any) -> int:
        agent, direction, lava, t = cells_of(obs)
        return int(self.table[t, rules.INDEX[agent, direction, lava]])


@dataclass(frozen=True)
class GridTrainer:
    """``train(policy, env, steps, seed)`` of `apeval.harden`."""

    weighted: bool = True

    def __call__(self, policy: GridPlanner, env: Any, steps: int, seed: int) -> GridPlanner:
        """Play, remember, plan, again."""
        rng, memory = np.random.default_rng(seed), GridMemory()
        plan, flowed = policy, list[tuple[int, int]]()
        obs, _ = env.reset()
        for taken in range(1, steps + 1):
            agent, direction, lava, _ = cells_of(obs)
            a_A = plan(obs)
            if rng.random() < _EXPLORED:
                a_A = int(memory.tried[agent, direction].argmin())
            obs, _, terminated, truncated, info = env.step(a_A)
            moved, turned, after, _ = cells_of(obs)
            memory.steps[agent, direction, a_A] = moved, turned
            memory.tried[agent, direction, a_A] += 1
            flowed.append((lava, after))
            if terminated or truncated:
                weight = float(np.exp(info["log_weight"])) if self.weighted else 1.0
                for cells in flowed:
                    memory.flows[cells] += weight
                flowed.clear()
                obs, _ = env.reset()
            if taken % (steps // _PLANS) == 0:
                plan = GridPlanner(exact_minimax(believed(memory)).policy)
        return plan


def believed(memory: GridMemory) -> TabularModel:
    """The tables as they were seen. Steps that were never tried count as failures."""
    cells = np.arange(_CELLS)
    flowed = np.where(rules.MOVES == rules.GOAL_CELL, cells[:, None], rules.MOVES)
    p = np.zeros(rules.NATURE_ACTIONS)
    for a_E in range(1, rules.NATURE_ACTIONS):
        free = flowed[:, a_E] != cells  # elsewhere a wall or the goal hides the move
        visits = memory.flows[free].sum()
        p[a_E] = memory.flows[cells[free], flowed[free, a_E]].sum() / max(visits, 1e-12)
    p[rules.STAY] = 1.0 - p.sum()
    agent, direction, lava = rules.STATES.T
    after, turned = np.moveaxis(memory.steps[agent, direction], -1, 0)
    moved, turned, flows = after[:, :, None], turned[:, :, None], flowed[lava][:, None, :]
    burnt = (moved == lava[:, None, None]) | (moved == flows) | (moved == _NEVER)
    ends = np.where(moved == rules.GOAL_CELL, SAFE_END, failure_code(rules.LAVA))
    S, A, E = len(rules.STATES), rules.AGENT_ACTIONS, rules.NATURE_ACTIONS
    return TabularModel(
        agent=np.full((S, A), 1.0 / A),
        nominal=np.broadcast_to(p, (S, A, E)).copy(),
        successor=np.where(
            burnt | (moved == rules.GOAL_CELL), ends, rules.INDEX[moved, turned, flows]
        ),
        start=rules.start_state(rules.LAVA_STARTS["s1"]),
        horizon=rules.HORIZON,
        horizon_kind=rules.STUCK,
        kinds=rules.KINDS,
    )
