"""Pictures that a Gymnasium environment draws of itself while a recorded episode is replayed."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apeval.problem.draws import Tape
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray, IntArray
from apeval.simulate.episodes import Episodes

_MODE, _MUJOCO = "rgb_array", "MUJOCO_GL"


@dataclass(frozen=True)
class OwnPictures:
    """One picture of the start, and one after every step of the environment."""

    pictures: list[Array]
    """RGB, (height, width, 3) bytes each."""
    time: FloatArray
    """In decisions: the steps of one are spread evenly over it, (F,)."""
    decision: IntArray
    """The decision under way, from 1, (F,)."""


def own_pictures(problem: Problem, it: Episodes, key: IntArray) -> OwnPictures | None:
    """What the environment of the single episode `it` draws, also within a decision that holds for
    several of its steps.

    None where the problem is not made of environments, where they cannot draw, or where drawing
    changes what happens: some simulators add bodies for their picture. Nor where all are blank, as
    those of highway-env under SDL_VIDEODRIVER=dummy.
    """
    tape = Tape(key, it.ids, problem.longest, it.lineage)
    draws, only = tape.start(), np.zeros(1, np.int64)
    x = problem.reset(draws) if problem.initial is None else problem.reset(draws, it.a_0)
    env = _environment(x)
    if env is None:
        return None
    with _drawing(env), _watched(env) as seen:
        seen.look()
        for t, a_E in enumerate(it.a_E):
            now = tape.at(t, only)
            if not seen.complete or not _same(problem.observe(x), it.s[t]):
                return None
            x = problem.step(x, problem.act(x, now), a_E[None, :], now)
            seen.decided()
    if not seen.complete or not _same(problem.observe(x), it.s_end[0]):
        return None
    found = seen.found()
    return found if any(picture.min() < picture.max() for picture in found.pictures) else None


@dataclass
class _Watcher:
    """Looks at an environment after each of its steps."""

    env: Any
    pictures: list[Array | None] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """Pictures there were at the end of each decision."""

    def look(self) -> None:
        """Once more, unless it could not draw before."""
        if self.complete:
            self.pictures.append(_picture(self.env))

    def decided(self) -> None:
        """A decision is over; an environment whose steps nobody saw is looked at now."""
        if len(self.pictures) == (self.ends[-1] if self.ends else 1):
            self.look()
        self.ends.append(len(self.pictures))

    @property
    def complete(self) -> bool:
        """Whether every look gave a picture."""
        return not self.pictures or self.pictures[-1] is not None

    def found(self) -> OwnPictures:
        """All of them, with their times."""
        time, decision, start = [0.0], [1], 1
        for t, end in enumerate(self.ends):
            steps = end - start
            time += [t + (k + 1.0) / steps for k in range(steps)]
            decision += [t + 1] * steps
            start = end
        pictures = [it for it in self.pictures if it is not None]
        return OwnPictures(pictures, np.array(time), np.array(decision, np.int64))


@contextmanager
def _watched(env: Any) -> Iterator[_Watcher]:
    """Take a picture after every step that the environment makes, whoever asks for it."""
    seen, step = _Watcher(env), env.step

    def watched_step(*arguments: Any, **options: Any) -> Any:
        answer = step(*arguments, **options)
        seen.look()
        return answer

    env.step = watched_step
    try:
        yield seen
    finally:
        del env.step


def _environment(x: Any) -> Any:
    """The environment of the only episode in a state of `from_gymnasium` or `from_env`."""
    envs = getattr(x, "envs", None)
    if not isinstance(envs, list) or len(envs) != 1:
        return None
    env = getattr(getattr(envs[0], "moment", None), "env", envs[0])
    modes = getattr(env, "metadata", None) or {}
    able = _MODE in (modes.get("render_modes") or ()) and hasattr(env, "__dict__")
    return env if able and "step" not in vars(env) else None


@contextmanager
def _drawing(env: Any) -> Iterator[None]:
    """Let the environment draw, for as long as it is needed; MuJoCo's without a display too, where
    the user does not say by MUJOCO_GL how."""
    inner = getattr(env, "unwrapped", env)
    before = getattr(inner, "render_mode", None)
    screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", _MUJOCO))
    without = sys.platform == "linux" and not screen
    inner.render_mode = _MODE
    if without:
        os.environ[_MUJOCO] = "egl"
    try:
        yield
    finally:
        inner.render_mode = before
        if without:
            del os.environ[_MUJOCO]


def _picture(env: Any) -> Array | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where there is no display, drawing libraries say so
            picture = np.asarray(getattr(env, "unwrapped", env).render())
    except Exception:  # no display, no library to draw with: the series are shown instead
        return None
    fits = picture.ndim == 3 and picture.shape[2] == 3 and picture.dtype == np.uint8
    return picture.copy() if fits else None


def _same(s: Array, recorded: Array) -> bool:
    return s.shape == (1, len(recorded)) and bool(np.allclose(s[0], recorded, 1e-6, 1e-9))
