"""Nature's policy π_E while it samples: frozen, with an exact density."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from apeval.problem.laws import Law
from apeval.problem.types import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from apeval.simulate.episodes import Episodes

_GOLDEN = 0.6180339887498949


@dataclass(slots=True)  # not frozen, which costs microseconds at every decision
class Situation:
    """What nature knows when it decides, for n rows: s, a_A, the decision number t, and the
    nominal law π_E,gt(· | s, a_A) itself."""

    s: Array
    a_A: Array
    t: IntArray
    law: Law
    whole: FloatArray | None = None
    """Uniforms drawn once for the whole episode, (n, d_E); only where an adversary samples that
    is `persistent`."""

    def take(self, rows: Any) -> Situation:
        """The chosen rows.

        Args:
            rows: Row numbers, a mask or a slice.

        Returns:
            The situation of these episodes.
        """
        whole = None if self.whole is None else self.whole[rows]
        return Situation(self.s[rows], self.a_A[rows], self.t[rows], self.law.take(rows), whole)


class Adversary(ABC):
    """π_E(a_E | s, a_A, t): samples from uniforms, and knows its density."""

    persistent: ClassVar[bool] = False
    """Whether its decisions share the episode's own random numbers, `Situation.whole`."""

    def survival_probability(self, s: Array, t: int) -> FloatArray | None:
        """Which part of the episodes in states s may take decision t, (n,); None: all.

        An episode ends at the first decision whose part lies below the episode's own uniform, so
        that the smallest part met so far is the probability of having come this far, and belongs
        to `log_density`. Ending early what can hardly fail any more leaves budget for the rest.

        Args:
            s: What the method sees of the states, (n, d_s).
            t: The decision.

        Returns:
            Shape (n,), or None where every episode goes on.
        """
        return None

    @abstractmethod
    def sample(self, now: Situation, u: FloatArray) -> Array:
        """Nature's actions from uniforms (n, d_E).

        Args:
            now: States, the agent's actions, the decision and the nominal law of n episodes.
            u: Uniforms, (n, d_E).

        Returns:
            Disturbances a_E, (n, d_E).
        """

    @abstractmethod
    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        """log π_E(a_E | s, a_A, t), shape (n,).

        Args:
            now: As in `sample`.
            a_E: Disturbances, (n, d_E).

        Returns:
            Shape (n,); −∞ where they cannot come.
        """

    def log_density(self, episodes: Episodes) -> FloatArray:
        """log q(τ) of whole episodes, (n,).

        Args:
            episodes: Episodes, whoever drew them.

        Returns:
            Shape (n,).
        """
        total = episodes.sum_rows(self.log_prob(episodes.situation, episodes.a_E))
        if episodes.law_0 is not None:
            total += self.log_prob_initial(episodes.law_0, episodes.a_0)
        return total

    def sample_initial(self, law: Law, u: FloatArray) -> Array:
        """A controlled initial disturbance; nominal unless an adversary learns it.

        Args:
            law: Its nominal law.
            u: Uniforms, (n, d_0).

        Returns:
            Initial disturbances a_0, (n, d_0).
        """
        return law.sample(u)

    def log_prob_initial(self, law: Law, a_0: Array) -> FloatArray:
        """Log-density of a controlled initial disturbance, shape (n,).

        Args:
            law: The nominal law.
            a_0: Initial disturbances, (n, d_0).

        Returns:
            Shape (n,).
        """
        return law.log_prob(a_0)


class Nominal(Adversary):
    """π_E = π_E,gt."""

    def sample(self, now: Situation, u: FloatArray) -> Array:
        return now.law.sample(u)

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        return now.law.log_prob(a_E)


@dataclass(frozen=True)
class Mixture:
    """A trajectory-level mixture: each episode is drawn by one component from start to end.

    The episode at position k of a stage belongs to a component by a golden-ratio sequence:
    the shares are kept to within three episodes at every k below 200,000, whatever the batching.
    """

    components: tuple[Adversary, ...]
    shares: tuple[float, ...]

    def assign(self, position: IntArray) -> IntArray:
        """The component of the episode at each position of the stage.

        Args:
            position: Places of episodes in their stage, (n,).

        Returns:
            Numbers of components, (n,).
        """
        phase = np.mod(0.5 + _GOLDEN * np.asarray(position, np.float64), 1.0)
        edges = np.cumsum(self.shares)[:-1] / sum(self.shares)
        return np.searchsorted(edges, phase, side="right")


def only(adversary: Adversary) -> Mixture:
    """A mixture of one.

    Args:
        adversary: What draws every episode.

    Returns:
        The mixture.
    """
    return Mixture((adversary,), (1.0,))


def mixture(components: Sequence[Adversary], shares: Sequence[float]) -> Mixture:
    """A mixture without the components whose share is zero.

    Args:
        components: Adversaries.
        shares: The share of the episodes that each draws.

    Returns:
        The mixture.
    """
    kept = [(c, w) for c, w in zip(components, shares, strict=True) if w > 0.0]
    return Mixture(tuple(c for c, _ in kept), tuple(w for _, w in kept))


def with_nominal(learned: Adversary, nominal_share: float) -> Mixture:
    """A learned π_E with a share of π_E,gt, which bounds every weight.

    Args:
        learned: The adversary as learning left it.
        nominal_share: The part of the episodes that π_E,gt samples, from 0 to 1.

    Returns:
        A mixture of the two.
    """
    return mixture([learned, Nominal()], [1.0 - nominal_share, nominal_share])
