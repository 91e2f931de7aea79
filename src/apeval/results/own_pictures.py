"""Pictures that a Gymnasium environment draws of itself while a recorded episode is replayed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from apeval.problem.draws import Tape
from apeval.problem.problem import Problem
from apeval.problem.types import Array, IntArray
from apeval.simulate.episodes import Episodes

_MODE = "rgb_array"


def own_pictures(problem: Problem, it: Episodes, key: IntArray) -> list[Array] | None:
    """One picture per decision of the single episode `it`, and one of its start.

    None where the problem is not made of environments, where they cannot draw, or where drawing
    changes what happens: some simulators add bodies for their picture.
    """
    tape = Tape(key, it.ids, problem.longest, it.lineage)
    draws, only = tape.start(), np.zeros(1, np.int64)
    x = problem.reset(draws) if problem.initial is None else problem.reset(draws, it.a_0)
    env = _environment(x)
    if env is None:
        return None
    pictures = []
    with _drawing(env):
        pictures.append(_picture(env))
        for t, a_E in enumerate(it.a_E):
            now = tape.at(t, only)
            if pictures[-1] is None or not _same(problem.observe(x), it.s[t]):
                return None
            x = problem.step(x, problem.act(x, now), a_E[None, :], now)
            pictures.append(_picture(env))
    shown = [picture for picture in pictures if picture is not None]
    return shown if len(shown) == len(pictures) and _same(problem.observe(x), it.s_end[0]) else None


def _environment(x: Any) -> Any:
    """The environment of the only episode in a state of `from_gymnasium` or `from_env`."""
    envs = getattr(x, "envs", None)
    if not isinstance(envs, list) or len(envs) != 1:
        return None
    env = getattr(getattr(envs[0], "moment", None), "env", envs[0])
    modes = getattr(env, "metadata", None) or {}
    return env if _MODE in (modes.get("render_modes") or ()) else None


@contextmanager
def _drawing(env: Any) -> Iterator[None]:
    """Let the environment draw, for as long as it is needed."""
    inner = getattr(env, "unwrapped", env)
    before = getattr(inner, "render_mode", None)
    inner.render_mode = _MODE
    try:
        yield
    finally:
        inner.render_mode = before


def _picture(env: Any) -> Array | None:
    try:
        picture = np.asarray(getattr(env, "unwrapped", env).render())
    except Exception:  # no display, no library to draw with: the series are shown instead
        return None
    fits = picture.ndim == 3 and picture.shape[2] == 3 and picture.dtype == np.uint8
    return picture.copy() if fits else None


def _same(s: Array, recorded: Array) -> bool:
    return s.shape == (1, len(recorded)) and bool(np.allclose(s[0], recorded, 1e-6, 1e-9))
