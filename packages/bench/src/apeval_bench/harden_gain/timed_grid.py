"""MiniGrid with flowing lava as an environment whose agent sees the time too."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from apeval.adapt.events import Event
from apeval.adapt.from_env import from_env
from apeval.problem.problem import Problem
from apeval.problem.types import Array
from apeval_paper.environments.minigrid import P_STAY, rules

_PARTS = (rules.SIDE, rules.SIDE, 4, rules.SIDE, rules.SIDE, rules.HORIZON + 1)
TURNS = (-1, 1, 0)  # of the direction, by the agent's action


class TimedGrid(gymnasium.Env[Any, Any]):
    """The rules of `minigrid-s1`. What is seen: x, y and direction of the agent, x and y of the
    lava, and the decisions made. The reward is 1 on the goal."""

    observation_space = gymnasium.spaces.Box(0.0, np.array(_PARTS, np.float32), dtype=np.float32)
    action_space = gymnasium.spaces.Discrete(rules.AGENT_ACTIONS)

    def __init__(self) -> None:
        self.a_E = rules.STAY
        self.agent = self.direction = self.lava = self.t = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """At the start of s1."""
        super().reset(seed=seed)
        start = rules.STATES[rules.start_state(rules.LAVA_STARTS["s1"])]
        self.agent, self.direction, self.lava = (int(v) for v in start)
        self.t = 0
        return self._seen(), {"failed": False}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """The agent moves, then the lava does as `a_E` says."""
        before, a_A = self.lava, int(action)
        if a_A == rules.FORWARD:
            self.agent = int(rules.MOVES[self.agent, 1 + self.direction])
        self.direction = (self.direction + TURNS[a_A]) % 4
        flowed = int(rules.MOVES[before, self.a_E])
        self.lava = before if flowed == rules.GOAL_CELL else flowed
        self.t += 1
        there = self.agent == rules.GOAL_CELL
        burnt = not there and self.agent in (before, self.lava)
        failed = burnt or (not there and self.t == rules.HORIZON)
        return self._seen(), float(there), there or failed, False, {"failed": failed}

    def _seen(self) -> Array:
        side = rules.SIDE
        agent, lava = divmod(self.agent, side)[::-1], divmod(self.lava, side)[::-1]
        return np.array([*agent, self.direction, *lava, self.t], np.float32)


def cells_of(obs: Any) -> tuple[int, int, int, int]:
    """Agent cell, direction, lava cell and decisions made, from what is seen."""
    x, y, direction, u, v, t = (int(k) for k in obs)
    return x + rules.SIDE * y, direction, u + rules.SIDE * v, t


def timed_problem(policy: Any) -> Problem:
    """`minigrid-s1` for a policy that sees the time."""
    return from_env(
        TimedGrid,
        policy=policy,
        disturb=Event(rules.nature(P_STAY).tolist(), apply=_flow),
        fails="info.failed",
        horizon=rules.HORIZON,
        name="minigrid-s1-timed",
    )


def _flow(env: Any, a_E: int) -> None:
    env.unwrapped.a_E = a_E
