"""All ways by name: `ways.every:problem`, with `way` and `proper` as its parameters."""

from __future__ import annotations

import apeval

from . import arguments, memory, monitors, one_env, outside, vector_envs

WAYS = {
    **arguments.WAYS,
    **memory.WAYS,
    **outside.WAYS,
    **monitors.WAYS,
    **one_env.WAYS,
    **vector_envs.WAYS,
}


def problem(way: str = "step scales a_E in place", proper: bool = False) -> apeval.Problem:
    """A problem that misbehaves, or the same written properly."""
    return WAYS[way].problem(proper)
