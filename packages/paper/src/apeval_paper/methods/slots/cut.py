"""a_E in slots: the nominal law cut into pieces, component by component.

Nature chooses a slot per component and then a point in it by the nominal law restricted to the
slot. So π_E(a_E | s) = P(slot | s) · π_E,gt(a_E) / π_E,gt(slot), an exact density on the continuous
space, and its weight π_E,gt/π_E is the same for all points of a slot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from apeval.learn.whitened import log_density
from apeval.problem.laws import Law, TruncatedNormalLaw
from apeval.problem.types import Array, FloatArray, IntArray
from apeval_paper.methods.slots.config import SlotConfig

_STANDARD = (0.0, 1.0, -np.inf, np.inf)  # mean, std and ends of a whitened component


@dataclass(frozen=True)
class Cut(ABC):
    """A batch of laws in slots; every array has 1 or n rows."""

    mass: FloatArray
    """π_E,gt(slot) per component, (n, d_E, K)."""
    start: FloatArray
    """The same of the distribution that π_E starts from."""

    def nominal(self, slot: IntArray) -> FloatArray:
        """π_E,gt of joint slots (m, d_E), (m,)."""
        rows = np.zeros(len(slot), np.int64) if len(self.mass) == 1 else np.arange(len(slot))
        p = np.ones(len(slot))
        for j in range(slot.shape[1]):
            p *= self.mass[rows, j, slot[:, j]]
        return p

    @cached_property
    def joint_slots(self) -> int:
        """How many joint slots there are, empty ones left out."""
        return int(np.prod((self.mass[0] > 0.0).sum(axis=1)))

    @abstractmethod
    def locate(self, a_E: Array) -> IntArray:
        """The slot of each component, (n, d_E)."""

    @abstractmethod
    def place(self, slot: IntArray, u: FloatArray) -> Array:
        """a_E ~ π_E,gt(· | slot) from uniforms (n, d_E)."""

    @abstractmethod
    def log_prob_within(self, slot: IntArray, a_E: Array) -> FloatArray:
        """log π_E,gt(a_E | slot), (n,)."""

    def take(self, rows: Any) -> Cut:
        """The chosen rows."""
        if len(self.mass) == 1:
            return self
        return replace(self, **{f.name: getattr(self, f.name)[rows] for f in fields(self)})


@dataclass(frozen=True)
class CategoricalCut(Cut):
    """K outcomes are K slots of one component."""

    def locate(self, a_E: Array) -> IntArray:
        return np.asarray(a_E, np.int64)

    def place(self, slot: IntArray, u: FloatArray) -> Array:
        return slot

    def log_prob_within(self, slot: IntArray, a_E: Array) -> FloatArray:
        return np.zeros(len(slot))


@dataclass(frozen=True)
class GaussianCut(Cut):
    """Equal slots over the box, or over ± reach standard deviations, between two outer slots:
    the tails, which are empty where there is a box."""

    mean: FloatArray
    std: FloatArray
    edges: FloatArray
    """(n, d_E, K + 1)."""

    def locate(self, a_E: Array) -> IntArray:
        e = self.edges
        slot = (a_E[:, :, None] >= e[:, :, 1:-1]).sum(axis=2)
        first, last = e[:, :, 0] == e[:, :, 1], e[:, :, -1] == e[:, :, -2]  # the empty ones
        low, high = first.astype(np.int64), e.shape[2] - 2 - last.astype(np.int64)
        located: IntArray = np.minimum(np.maximum(slot, low), high)
        return located

    def place(self, slot: IntArray, u: FloatArray) -> Array:
        return self._within(slot).sample(u)

    def log_prob_within(self, slot: IntArray, a_E: Array) -> FloatArray:
        return self._within(slot).log_prob(a_E)

    def _within(self, slot: IntArray) -> TruncatedNormalLaw:
        rows = np.zeros(len(slot), np.int64) if len(self.edges) == 1 else np.arange(len(slot))
        here = (rows[:, None], np.arange(slot.shape[1])[None, :])
        low, high = self.edges[(*here, slot)], self.edges[(*here, slot + 1)]
        return TruncatedNormalLaw(self.mean, self.std, low, high)


@dataclass(frozen=True)
class WhitenedCut(Cut):
    """Slots of a law that is no Gaussian: those of its whitened coordinates."""

    law: Law
    in_z: GaussianCut

    def locate(self, a_E: Array) -> IntArray:
        return self.in_z.locate(self.law.to_z(a_E))

    def place(self, slot: IntArray, u: FloatArray) -> Array:
        return self.law.to_action(np.asarray(self.in_z.place(slot, u)))

    def log_prob_within(self, slot: IntArray, a_E: Array) -> FloatArray:
        z = self.law.to_z(a_E)
        return log_density(self.law, a_E, z, self.in_z.log_prob_within(slot, z))


class Cutter:
    """Cuts laws, and keeps the last one: most nominals do not depend on the situation."""

    def __init__(self, config: SlotConfig) -> None:
        self.config = config
        self._last: tuple[Law, Cut] | None = None

    def __call__(self, law: Law) -> Cut:
        if self._last is None or not _same(self._last[0], law):
            self._last = law, self._cut(law)
        return self._last[1]

    def _cut(self, law: Law) -> Cut:
        c = self.config
        if law.discrete:
            p = law.outcome_probabilities()[:, None, :]
            widened = p ** (1.0 / c.start_scale**2)
            return CategoricalCut(p, widened / widened.sum(axis=2, keepdims=True))
        gaussian = law.gaussian()
        if gaussian is not None:
            return self._gaussian_cut(*gaussian)
        in_z = self._gaussian_cut(*(np.array([[v] * law.components()]) for v in _STANDARD))
        return WhitenedCut(in_z.mass, in_z.start, law, in_z)

    def _gaussian_cut(
        self, mean: FloatArray, std: FloatArray, low: FloatArray, high: FloatArray
    ) -> GaussianCut:
        c = self.config
        mean, std, low, high = np.broadcast_arrays(mean, std, low, high)
        edges = self._edges(mean, std, low, high)
        mass = _masses(edges, mean, std)
        start = _masses(edges, mean + c.warm_shift * std, c.start_scale * std)
        return GaussianCut(mass, start, mean, std, edges)

    def _edges(
        self, mean: FloatArray, std: FloatArray, low: FloatArray, high: FloatArray
    ) -> FloatArray:
        K, width = self.config.action_slots, self.config.reach * std
        first = np.where(np.isfinite(low), low, np.minimum(mean, high) - width)
        last = np.where(np.isfinite(high), high, np.maximum(mean, low) + width)
        share = np.arange(K + 1) / K
        inner = first[..., None] * (1.0 - share) + last[..., None] * share
        return np.concatenate([low[..., None], inner, high[..., None]], axis=2)


def _masses(edges: FloatArray, mean: FloatArray, std: FloatArray) -> FloatArray:
    """N(mean, std²) of each slot, conditioned on all of them; in logarithms, and in the tail
    where the normal CDF is accurate."""
    z = (edges - mean[..., None]) / std[..., None]
    low, high = z[..., :-1], z[..., 1:]
    mirror = low > 0.0
    low, high = np.where(mirror, -high, low), np.where(mirror, -low, high)
    upper = log_ndtr(high)
    with np.errstate(divide="ignore"):  # an empty slot has mass 0
        log_mass = upper + np.log(-np.expm1(log_ndtr(low) - upper))
    mass = np.exp(log_mass - log_mass.max(axis=2, keepdims=True))
    normalised: FloatArray = mass / mass.sum(axis=2, keepdims=True)
    return normalised


def _same(a: Law, b: Law) -> bool:
    """Whether two laws of one row are equal."""
    x, y = vars(a), vars(b)
    return type(a) is type(b) and all(
        len(x[k]) == len(y[k]) == 1 and np.array_equal(x[k], y[k]) for k in x
    )
