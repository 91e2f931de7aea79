"""The MiniGrid problem run by the MiniGrid package itself, n environments side by side."""

from __future__ import annotations

from typing import Any

from apeval.problem.gym import from_gymnasium
from apeval.problem.laws import Categorical
from apeval.problem.problem import Problem
from apeval.problem.tabular_model import SAFE_END, TabularModel, failure_code
from apeval_paper.environments.minigrid import rules
from apeval_paper.environments.minigrid.env import FlowingLavaEnv, Step

_CODES = {"": SAFE_END, "lava": failure_code(rules.LAVA)}  # of episodes that are over


def package_problem(table: TabularModel, p_stay: float) -> Problem:
    """The problem of `table`, played by MiniGrid: the same states, draws and episodes. What is
    observed is the state's number in the table, or an end's code."""
    greedy = table.agent.argmax(axis=1)

    def start(env: FlowingLavaEnv, seed: int, a_0: None) -> tuple[int, dict[str, Any]]:
        env.reset(options={"state": table.start})  # nothing in it is random: needs no seed
        return table.start, {}

    return from_gymnasium(
        lambda: FlowingLavaEnv(p_stay),
        nominal=Categorical(rules.nature(p_stay)),
        agent=lambda s: greedy[max(s, 0)],
        reset=start,
        apply=_advance,
        failed=lambda s, *_: max(SAFE_END - s, 0),
        done=lambda s, *_: s == SAFE_END,  # at the horizon the problem itself judges
        horizon=rules.HORIZON,
        horizon_kind=rules.STUCK,
        kinds=rules.KINDS,
        views={"state": lambda s, info: s},
        chunk=512,
    )


def _advance(env: FlowingLavaEnv, a_A: int, a_E: int) -> Step:
    _, reward, ended, truncated, info = env.advance(a_A, a_E)
    state = _CODES[info["kind"]] if ended else env.state()
    return state, reward, ended, truncated, info
