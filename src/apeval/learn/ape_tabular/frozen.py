"""The learned π_E, frozen, as an adversary that samples episodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from apeval.learn.ape_tabular.config import ApeTabularConfig
from apeval.problem.laws import CategoricalLaw, pick
from apeval.problem.types import Array, FloatArray
from apeval.simulate.adversary import Adversary, Mixture, Nominal, Situation, mixture


class _Tabular(Adversary):
    """Samples from rows of probabilities, however they are looked up."""

    def probabilities(self, now: Situation) -> FloatArray:
        """π_E(· | s, a_A), (n, E)."""
        raise NotImplementedError

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
        law = now.law
        if not isinstance(law, CategoricalLaw):
            raise TypeError("a tabular adversary needs a categorical nominal")
        p = np.broadcast_to(law.probabilities, (len(now.t), law.probabilities.shape[1])).copy()
        for i, t in enumerate(now.t):
            s = self.states.get(self.key(now.s[i], int(t)))
            a_A = self.actions.get(tuple(now.a_A[i].tolist()))
            if s is not None and a_A is not None:
                p[i] = self.pi[s, a_A] if self.pi.ndim == 3 else self.pi[t, s, a_A]
        return p


def frozen_mixture(learned: Adversary, wary: Adversary | None, config: ApeTabularConfig) -> Mixture:
    """The trajectory-level mixture that the estimate is drawn from."""
    if wary is None:
        shares = [1.0 - config.nominal_share, config.nominal_share]
        return mixture([learned, Nominal()], shares)
    learned_share = max(0.0, 1.0 - config.nominal_share - config.wary_share)
    shares = [learned_share, config.wary_share, config.nominal_share]
    return mixture([learned, wary, Nominal()], shares)
