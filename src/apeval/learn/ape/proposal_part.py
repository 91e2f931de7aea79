"""A part of a proposal: one learned or given adversary, with its density relative to π_E,gt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.episode_features import EpisodeFeatures, decisions
from apeval.learn.ape.russian_roulette import RussianRoulette
from apeval.learn.whitened import to_action, to_z
from apeval.problem.laws import Law, pick
from apeval.problem.types import Array, FloatArray, IntArray
from apeval.simulate.adversary import Adversary, Nominal, Situation
from apeval.simulate.episodes import Episodes


class ProposalPart(ABC):
    """q(e_0, e_1, … | states), known through log q/p."""

    persistent: bool = False
    asks_again: ClassVar[bool] = False
    """Whether the same states at another time cost less than fewer states."""
    dof: float = 0.0
    """Parameters that the data, not the prior, decided."""

    @abstractmethod
    def row_ratio(self, rows: DecisionRows) -> FloatArray:
        """log q/p of each decision, (N,)."""

    def start_ratio(self, z_0: FloatArray) -> FloatArray:
        """log q/p of each initial disturbance, (n,)."""
        return np.zeros(len(z_0))

    def log_ratio(self, rows: DecisionRows) -> FloatArray:
        """log q/p of whole episodes, (n,)."""
        return rows.total(self.row_ratio(rows)) + self.start_ratio(rows.z_0)

    def relaxed(self, eta: float) -> ProposalPart:
        """On the way from p (η = 0) to this part (η = 1)."""
        return self

    def start(self, u: FloatArray) -> FloatArray:
        """z_0 from uniforms (n, d_0)."""
        z: FloatArray = ndtri(u)
        return z


class ContinuousPart(ProposalPart):
    """Decides on z."""

    @abstractmethod
    def draw(
        self, x: FloatArray, t: IntArray, u: FloatArray, whole: FloatArray | None
    ) -> FloatArray:
        """z from uniforms (n, d)."""


class DiscretePart(ProposalPart):
    """Decides among outcomes."""

    @abstractmethod
    def probabilities(self, x: FloatArray, t: IntArray, p: FloatArray) -> FloatArray:
        """q of every outcome, (n, K), from π_E,gt's."""

    def decide(
        self, x: FloatArray, t: IntArray, p: FloatArray, u: FloatArray, whole: FloatArray | None
    ) -> Array:
        """Outcomes from uniforms (n, 1)."""
        return pick(self.probabilities(x, t, p), u)


@dataclass(frozen=True, eq=False)
class PartAdversary(Adversary):
    """A part as an adversary, in a scene."""

    part: ProposalPart
    scene: EpisodeFeatures
    roulette: RussianRoulette | None = None

    def survival_probability(self, s: Array, t: int) -> FloatArray | None:
        if self.roulette is None:
            return None
        return self.roulette.part(self.scene.features(s), self.scene.time(np.full(len(s), t)))

    @property
    def persistent(self) -> bool:  # type: ignore[override]
        return self.part.persistent

    def sample(self, now: Situation, u: FloatArray) -> Array:
        x, t = self.scene.features(now.s), self.scene.time(now.t)
        if isinstance(self.part, DiscretePart):
            _, p = decisions(now, np.zeros((len(t), 1)))
            return self.part.decide(x, t, p, u, now.whole)
        if not isinstance(self.part, ContinuousPart):
            raise TypeError(f"{type(self.part).__name__} decides on nothing")
        return to_action(now.law, self.part.draw(x, t, u, now.whole))

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        e, p = decisions(now, a_E)
        n = len(a_E)
        alone = DecisionRows(
            e, p, self.scene.features(now.s), self.scene.time(now.t), np.arange(n), n,
            np.zeros((n, 0)),
        )  # fmt: skip
        return now.law.log_prob(a_E) + self.part.row_ratio(alone)

    def log_density(self, episodes: Episodes) -> FloatArray:
        rows = self.scene.rows(episodes)
        total = Nominal().log_density(episodes) + self.part.log_ratio(rows)
        return total if self.roulette is None else total + self.roulette.log_survival(rows)

    def sample_initial(self, law: Law, u: FloatArray) -> Array:
        if not self.scene.learns_start or law.discrete:
            return law.sample(u)
        return to_action(law, self.part.start(u))

    def log_prob_initial(self, law: Law, a_0: Array) -> FloatArray:
        if not self.scene.learns_start or law.discrete:
            return law.log_prob(a_0)
        return law.log_prob(a_0) + self.part.start_ratio(to_z(law, a_0))
