"""The MiniGrid problem run by the MiniGrid package itself, n environments side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.environments.minigrid import rules
from apeval.environments.minigrid.env import FlowingLavaEnv
from apeval.problem.draws import Draws
from apeval.problem.laws import Categorical
from apeval.problem.problem import Problem
from apeval.problem.table import SAFE_END, TabularModel, failure_code
from apeval.problem.types import Array

_CODES = {"": SAFE_END, "lava": failure_code(rules.LAVA)}  # of episodes that are over


@dataclass(frozen=True)
class Running:
    """A batch of running environments, each with the state it shows: a number of the table, or
    an end's code. An environment whose episode is over has gone back to the pool (None)."""

    envs: Array
    states: Array

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, rows: Array) -> Running:
        return Running(self.envs[rows], self.states[rows])


class Pool:
    """Environments to be used again: an episode takes one and gives it back at its end."""

    def __init__(self, p_stay: float) -> None:
        self.p_stay = p_stay
        self._free: list[FlowingLavaEnv] = []

    def start(self, n: int, state: int) -> Running:
        """n episodes in the given state."""
        envs = np.empty(n, dtype=object)
        for i in range(n):
            envs[i] = self._free.pop() if self._free else FlowingLavaEnv(self.p_stay)
            envs[i].reset(options={"state": state})
        return Running(envs, np.full(n, state, dtype=np.int64))

    def step(self, x: Running, a_A: Array, a_E: Array) -> Running:
        """f_E in each environment; ended episodes stay as they are."""
        envs, states = x.envs.copy(), x.states.copy()
        for i, env in enumerate(envs):
            if env is None:
                continue
            _, _, ended, truncated, info = env.advance(int(a_A[i, 0]), int(a_E[i, 0]))
            # at the horizon the problem itself judges; until then the state is an interior one
            states[i] = _CODES[info["kind"]] if ended else env.state()
            if ended or truncated:
                envs[i] = None
                self._free.append(env)
        return Running(envs, states)


def package_problem(table: TabularModel, p_stay: float) -> Problem:
    """The problem of `table`, played by MiniGrid: the same states, draws and episodes."""
    pool = Pool(p_stay)
    greedy = table.agent.argmax(axis=1)

    def reset(draws: Draws) -> Running:
        return pool.start(draws.n, table.start)

    def step(x: Running, a_A: Array, a_E: Array, draws: Draws) -> Running:
        return pool.step(x, a_A, a_E)

    return Problem(
        nominal=Categorical(rules.nature(p_stay)),
        agent=lambda x: greedy[np.maximum(x.states, 0)],
        reset=reset,
        step=step,
        failed=lambda x: np.where(x.states < SAFE_END, SAFE_END - x.states, 0),
        done=lambda x: x.states == SAFE_END,
        horizon=rules.HORIZON,
        horizon_kind=rules.STUCK,
        kinds=rules.KINDS,
        views={"state": lambda x: x.states[:, None]},
    )
