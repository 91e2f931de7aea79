"""A batch of landers as the simulator's state, and the functions of `Problem` on it."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from apeval.problem.draws import Draws
from apeval.problem.types import Array, BoolArray, FloatArray, IntArray
from apeval_paper.environments.lunarlander.kernel import MAX_FRAMES
from apeval_paper.environments.lunarlander.lander import FastLander, Lander
from apeval_paper.environments.lunarlander.tables import LOW, SPAN


class Flight:
    """One episode's hold on a lander; the lander is free for another when nobody holds it."""

    __slots__ = ("__weakref__", "lander")

    def __init__(self, lander: Lander, free: list[Lander]) -> None:
        self.lander = lander
        weakref.finalize(self, free.append, lander)


class Landers:
    """The state x: n landers in flight. A step moves them, so an older x is not kept."""

    def __init__(self, flights: Sequence[Flight]) -> None:
        self.flights = flights
        self.landers = [flight.lander for flight in flights]

    def __len__(self) -> int:
        return len(self.flights)

    def __getitem__(self, rows: Any) -> Landers:
        """The chosen landers, by a boolean mask, indices or a slice."""
        return Landers([self.flights[i] for i in np.arange(len(self))[rows]])


class Simulator:
    """f_E with the heuristic inside, over landers that are reused from rollout to rollout."""

    def __init__(self, fast: bool, frames: int, reset_seed: int, random_start: bool) -> None:
        self.fast, self.frames = fast, frames
        self.reset_seed, self.random_start = reset_seed, random_start
        self._free: list[Lander] = []

    def __reduce__(self) -> Any:  # Box2D's worlds cannot be pickled; another process has its own
        return Simulator, (self.fast, self.frames, self.reset_seed, self.random_start)

    def reset(self, draws: Draws) -> Landers:
        """Launch n landers. The dispersion's seed is the first that `draws` gives at reset, a
        random start's seed the second: both are functions of the run's key and the episode."""
        dispersions = draws.seeds()
        starts = draws.seeds() if self.random_start else [self.reset_seed] * draws.n
        flights = []
        for start, dispersion in zip(starts, dispersions, strict=True):
            lander = self._free.pop() if self._free else self._build()
            lander.launch(start, dispersion)
            flights.append(Flight(lander, self._free))
        return Landers(flights)

    def _build(self) -> Lander:
        return FastLander() if self.fast else Lander()

    def step(self, x: Landers, a_A: Array, a_E: Array, draws: Draws) -> Landers:
        """Each lander flies a decision's frames under its disturbance a_E = w. The heuristic
        acts anew in every frame; a_A is only what it commands in the first."""
        for lander, w in zip(x.landers, np.asarray(a_E).tolist(), strict=True):
            lander.fly(w[0], w[1], self.frames)
        return x


def heuristic_action(x: Landers) -> FloatArray:
    """a_A: the heuristic's command at the decision's start, shape (n, 2)."""
    return np.array([lander.command() for lander in x.landers]).reshape(-1, 2)


def failed(x: Landers) -> IntArray:
    """0, or the kind of failure: 1 crash, 2 away, 3 timeout."""
    return np.array([lander.kind for lander in x.landers], dtype=np.int64)


def done(x: Landers) -> BoolArray:
    """At rest on the ground."""
    return np.array([lander.ended and not lander.kind for lander in x.landers], dtype=np.bool_)


def margin(x: Landers) -> FloatArray:
    """The smallest margin so far (see `Lander`), at most 0 in a failure."""
    m = np.array([lander.margin for lander in x.landers], dtype=np.float64)
    return np.where(failed(x) > 0, np.minimum(m, 0.0), m)


def paper_view(x: Landers) -> FloatArray:
    """The 8-D observation, normalised by the appendix's bounds to [−1, 1] (not clipped)."""
    s = np.array([lander.observation() for lander in x.landers]).reshape(-1, 8)
    scaled: FloatArray = 2.0 * (s - LOW) / SPAN - 1.0
    return scaled


def markov_view(x: Landers) -> FloatArray:
    """The paper's view and the time, from −1 at launch to 1 at the time limit."""
    t = np.array([[2.0 * lander.frames / MAX_FRAMES - 1.0] for lander in x.landers])
    return np.hstack([paper_view(x), t.reshape(-1, 1)])
