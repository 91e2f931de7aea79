"""The MiniGrid environment: an agent on its way to the goal, and lava that flows."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Goal, Lava
from minigrid.minigrid_env import MiniGridEnv

from apeval.problem.types import Array
from apeval_paper.environments.minigrid import rules

# one row per state, and zeros at the end: row −1, for an episode that is over
_OBSERVATIONS = np.zeros((len(rules.STATES) + 1, rules.OBSERVATION_SIZE), dtype=np.float32)
_OBSERVATIONS[:-1] = rules.one_hot(np.arange(len(rules.STATES)))
_OCCUPIED = (rules.AGENT_START, rules.GOAL)
Step = tuple[Any, float, bool, bool, dict[str, Any]]


def _mission() -> str:
    return "reach the goal, keep off the lava"


class FlowingLavaEnv(MiniGridEnv):
    """The agent turns or walks (actions 0 left, 1 right, 2 forward), then the lava flows.

    `step` lets the lava flow by its nominal law; `advance` takes nature's action from outside.
    The lava starts at `lava`, or with None anywhere. Observations are one-hot (`rules.one_hot`),
    the reward is 1 on the goal, ``info["kind"]`` names a failure ("" otherwise).
    """

    def __init__(
        self,
        p_stay: float,
        lava: tuple[int, int] | None = None,
        max_steps: int = rules.HORIZON,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            MissionSpace(mission_func=_mission),
            grid_size=rules.GRID_SIZE,
            max_steps=max_steps,
            render_mode=render_mode,
            highlight=False,
        )
        self.action_space = spaces.Discrete(rules.AGENT_ACTIONS)
        self.observation_space = spaces.Box(0.0, 1.0, (rules.OBSERVATION_SIZE,), np.float32)
        self.lava = lava
        self._nature = np.cumsum(rules.nature(p_stay))
        self._start: int | None = None
        # walls and goal never change: the grid is built once, a reset only moves the lava
        self.grid.wall_rect(0, 0, rules.GRID_SIZE, rules.GRID_SIZE)
        self.put_obj(Goal(), *rules.GOAL)
        self._lava = Lava()  # type: ignore[no-untyped-call]
        self.lava_pos = lava or rules.LAVA_STARTS["s1"]
        self.put_obj(self._lava, *self.lava_pos)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; ``options={"state": s}`` starts it in state s of the table."""
        self._start = (options or {}).get("state")
        return super().reset(seed=seed)

    def _gen_grid(self, width: int, height: int) -> None:
        """Put agent and lava where the episode starts (called by MiniGrid's reset)."""
        if self._start is None:
            self._start = rules.start_state(self.lava or self._anywhere())
        agent, direction, lava = (int(v) for v in rules.STATES[self._start])
        self.agent_pos = rules.position(agent)
        self.agent_dir = direction
        self._put_lava(rules.position(lava))

    def _anywhere(self) -> tuple[int, int]:
        free = [c for c in range(rules.SIDE**2) if rules.position(c) not in _OCCUPIED]
        return rules.position(int(self.np_random.choice(free)))

    def _put_lava(self, to: tuple[int, int]) -> None:
        x, y = self.lava_pos
        self.grid.set(x, y, None)
        self.put_obj(self._lava, *to)
        self.lava_pos = to

    def step(self, action: Any) -> Step:
        """One step with the lava under its nominal law."""
        a_E = int(np.searchsorted(self._nature, self.np_random.random(), side="right"))
        return self.advance(int(action), min(a_E, rules.NATURE_ACTIONS - 1))

    def advance(self, a_A: int, a_E: int) -> Step:
        """One step with nature's action given: MiniGrid moves the agent, then the lava flows."""
        observation, reward, ended, truncated, _ = super().step(a_A)
        kind = ""
        if not ended:
            x, y = self.lava_pos
            dx, dy = rules.STEPS[a_E]
            if self.grid.get(x + dx, y + dy) is None:  # neither wall nor goal nor itself
                self._put_lava((x + dx, y + dy))
            ended = self.lava_pos == self.agent_pos
            kind = "lava" if ended else "stuck" if truncated else ""
            observation = self.gen_obs()
        elif not reward:
            kind = "lava"
        if self.render_mode == "human":
            self.render()  # type: ignore[no-untyped-call]
        return observation, float(reward), ended, truncated and not ended, {"kind": kind}

    def state(self) -> int:
        """The number of the present state in the table, −1 where the episode has ended."""
        (x, y), (u, v) = self.agent_pos, self.lava_pos
        return int(rules.INDEX[rules.cell(x, y), self.agent_dir, rules.cell(u, v)])

    def gen_obs(self) -> Array:
        """The one-hot observation. MiniGrid's own view costs ten times the rest of a step."""
        observation: Array = _OBSERVATIONS[self.state()].copy()
        return observation

    def _reward(self) -> float:
        """1 on the goal: MiniGrid's own falls with the time, which the agent does not see."""
        return 1.0
