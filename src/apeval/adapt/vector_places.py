"""Whether an episode of a vector environment follows from its own seed alone, wherever it runs."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from apeval.adapt.batches import LARGEST_ROUNDING
from apeval.adapt.observation_batches import take
from apeval.adapt.vector_sim import VectorMaker, VectorSim
from apeval.errors import SimulationError
from apeval.problem.types import Array

_LOOKS = 3  # steps by which episodes are looked at in another order


def not_addressed(make: VectorMaker, seeds: list[int]) -> str | None:
    """Why an episode does not follow from its own seed alone; None where it does, as far as the
    first observations and a few steps show."""
    sim, around = make(seeds), np.arange(make.num_envs)[::-1]
    try:
        actions = _some_actions(sim)
        seen, again = (_begun(make, sim, seeds, actions) for _ in range(2))
        back = _begun(make, sim, seeds[::-1], [these[around] for these in actions])
    finally:
        sim.close()
    if not _same(seen[0], again[0]):
        return "the same seeds gave other first observations"
    if not _same(take(seen[0], around), back[0]):
        return "the first observation of an episode depends on the seeds of the others"
    for one, two, three in zip(seen[1:], again[1:], back[1:], strict=False):
        if not _same(one, two, rounded=True):
            return "the same seeds and actions gave other observations"
        if not _same(take(one, around), three, rounded=True):
            return (
                "after a step its observation depends on the sub-environment that it runs in, or "
                "on those beside it"
            )
    return None


def _some_actions(sim: VectorSim) -> list[Array]:
    """Actions of a few steps, other ones for every sub-environment."""
    space = copy.deepcopy(sim.env.single_action_space)  # the user's own generator is left alone
    space.seed(0)
    return [np.stack([np.asarray(space.sample()) for _ in range(sim.n)]) for _ in range(_LOOKS)]


def _begun(make: VectorMaker, sim: VectorSim, seeds: list[int], actions: list[Array]) -> list[Any]:
    """The first observations and those after each step, until an episode ends or the environment
    raises; where seeds are given when it is made, those of another one."""
    mine = make(seeds) if make.by_seeds else sim
    try:
        return [mine.reset(seeds)[0], *_walked(mine, actions)]
    finally:
        if mine is not sim:
            mine.close()


def _walked(sim: VectorSim, actions: list[Array]) -> list[Any]:
    seen: list[Any] = []
    try:
        for these in actions:
            answer = sim.step(these)
            seen.append(answer.obs)
            if (answer.terminated | answer.truncated).any():
                break
    except SimulationError:  # by actions that the policy may never choose; else the run reports it
        return seen
    return seen


def _same(one: Any, two: Any, rounded: bool = False) -> bool:
    """Whether observations are equal; `rounded`: but for what a place in a batch may round."""
    if isinstance(one, dict):
        return all(_same(one[key], two[key], rounded) for key in one)
    if isinstance(one, tuple):
        return all(_same(a, b, rounded) for a, b in zip(one, two, strict=True))
    if np.array_equal(one, two, equal_nan=np.asarray(one).dtype.kind == "f"):
        return True
    if not rounded or np.shape(one) != np.shape(two) or np.asarray(one).dtype.kind != "f":
        return False
    scale = max(float(np.abs(one).max(initial=0.0)), 1e-12)
    return bool(np.allclose(one, two, rtol=0.0, atol=LARGEST_ROUNDING * scale, equal_nan=True))
