"""What a problem's functions and its nature answered in a rollout, looked at before it is used."""

from __future__ import annotations

from typing import Any

import numpy as np

from apeval.errors import ProblemError, SimulationError
from apeval.problem.problem import Problem
from apeval.problem.returned_arrays import as_array
from apeval.problem.types import Array, IntArray
from apeval.simulate.adversary import Situation


def rows_of(part: str, values: Array, n: int) -> Array:
    """One row for each episode: NumPy would stretch or cut others without a word."""
    if len(values) != n:
        raise ProblemError(
            f"`{part}` answered for {len(values)} episodes where there were {n}: one row for each"
        )
    return values


def same_precision(what: str, before: Array, after: Array, episode: int) -> None:
    """A problem that goes on in another precision gives other numbers than it began with."""
    if before.dtype != after.dtype and before.dtype.kind == after.dtype.kind == "f":
        raise ProblemError(
            f"{what} is {after.dtype} in episode {episode}, earlier {before.dtype}: the precision "
            "must not change"
        )


def same_width(problem: Problem, before: Array, after: Array) -> None:
    """NumPy would stretch a state that becomes narrower without a word."""
    if before.shape[1:] != after.shape[1:]:
        raise ProblemError(
            f"view '{problem.view}' returned {after.shape[1]} columns, earlier {before.shape[1]}: "
            "the number of columns must not change"
        )


def one_each(part: str, answer: Any, n: int) -> Array:
    """One number per episode: NumPy would stretch any other shape without a word."""
    values = as_array(part, answer)
    if values.shape != (n,) or values.dtype.kind not in "biuf":
        raise ProblemError(
            f"`{part}` returned {values.dtype} of shape {values.shape}, expected a number for each "
            f"of {n} states, shape ({n},)"
        )
    return values


def failure_kinds(problem: Problem, x: Any, n: int) -> IntArray:
    """What `failed` says of n states: 0, or the kind of failure; anything else is refused."""
    said = as_array("failed", problem.failed(x))
    if said.shape == (n,) and said.dtype.kind in "biu":  # the usual answers, in few operations
        kind = said.astype(np.int64)
        if said.dtype.kind == "b" or (kind.min() >= 0 and kind.max() <= len(problem.kinds)):
            return kind
    with np.errstate(invalid="ignore"):  # NaN becomes some number that is not equal to it
        kind = said.astype(np.int64) if said.dtype.kind in "biuf" else np.full(said.shape, -1)
    allowed = (kind == said) & (kind >= 0) & (kind <= len(problem.kinds))
    if kind.shape != (n,) or not np.all(allowed):
        raise ProblemError(
            f"`failed` must return a boolean or a kind from 0 to {len(problem.kinds)} for each of "
            f"{n} states, shape ({n},); it returned {said.dtype} of shape {said.shape}, such as "
            f"{said.ravel()[:1].tolist()}. Name every kind in `kinds`"
        )
    return kind


def require_finite(s: Array, ids: IntArray, t: int) -> None:
    """Refuse states that no estimate can be built on."""
    if s.dtype.kind == "f" and not np.isfinite(s).all():
        bad = int(np.flatnonzero(~np.isfinite(s).all(axis=1))[0])
        raise SimulationError(
            f"the simulator returned a non-finite state in episode {int(ids[bad])} at decision "
            f"{t + 1}: mend f_E, or end the episode (`done`, `failed`) before its state leaves the "
            "range"
        )


def require_sound(now: Situation, a_E: Array, ids: IntArray, t: int) -> None:
    """Refuse what would make a weight that is no number."""
    if t == 0:
        require_finite(now.s, ids, t)
    for values, what in ((now.a_A, "the agent's action"), (a_E, "the disturbance")):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            bad = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
            raise SimulationError(
                f"{what} in episode {int(ids[bad])} at decision {t + 1} is not finite: mend the "
                "policy or the nominal disturbance"
            )
