"""The learned π_E, frozen, as an adversary that samples episodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from apeval.learn.ape_tabular.config import ApeTabularConfig
from apeval.learn.ape_tabular.implied_adversaries import plan
from apeval.problem.laws import CategoricalLaw, pick
from apeval.problem.tabular_model import TabularModel
from apeval.problem.types import Array, FloatArray, IntArray
from apeval.simulate.adversary import Adversary, Mixture, Nominal, Situation, mixture


class _Tabular(Adversary):
    """Samples from rows of probabilities, however they are looked up."""

    @abstractmethod
    def probabilities(self, now: Situation) -> FloatArray:
        """π_E(· | s, a_A), (n, E)."""

    def sample(self, now: Situation, u: FloatArray) -> Array:
        return pick(self.probabilities(now), u)

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        return CategoricalLaw(self.probabilities(now)).log_prob(a_E)


class ArrayAdversary(_Tabular):
    """π_E as an array over (s, a_A, a_E), or over (t, s, a_A, a_E) with time in the state."""

    def __init__(self, pi: FloatArray) -> None:
        self.pi = pi

    def probabilities(self, now: Situation) -> FloatArray:
        s, a_A = now.s[:, 0], now.a_A[:, 0]
        rows: FloatArray = self.pi[s, a_A] if self.pi.ndim == 3 else self.pi[now.t, s, a_A]
        return rows


class KeyedAdversary(_Tabular):
    """π_E as an array behind two dictionaries, of states and of agent actions; where either is
    new, nature acts nominally."""

    def __init__(
        self,
        pi: FloatArray,
        states: Mapping[Any, int],
        actions: Mapping[Any, int],
        key: Callable[[Array, int], Hashable],
    ) -> None:
        self.pi, self.states, self.actions, self.key = pi, states, actions, key

    def probabilities(self, now: Situation) -> FloatArray:
        nominal = now.law.outcome_probabilities()
        p = np.broadcast_to(nominal, (len(now.t), nominal.shape[1])).copy()
        for i, t in enumerate(now.t):
            s = self.states.get(self.key(now.s[i], int(t)))
            a_A = self.actions.get(tuple(now.a_A[i].tolist()))
            if s is not None and a_A is not None:
                p[i] = self.pi[s, a_A] if self.pi.ndim == 3 else self.pi[t, s, a_A]
        return p


def planned_mixture(
    config: ApeTabularConfig,
    mean_length: float,
    model: TabularModel,
    memory: IntArray,
    adversary: Callable[[FloatArray], Adversary],
) -> Mixture:
    """The sharp and the wary adversary of what is remembered, with π_E,gt."""
    caution = min(1.0, config.caution / mean_length)
    sharp, wary = (adversary(plan(model, memory, caution, wary)) for wary in (False, True))
    sharp_share = max(0.0, 1.0 - config.nominal_share - config.wary_share)
    shares = [sharp_share, config.wary_share, config.nominal_share]
    return mixture([sharp, wary, Nominal()], shares)
