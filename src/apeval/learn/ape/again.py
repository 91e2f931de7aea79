"""Does chance decide with nature? Failures are played again, with the same disturbances.

What nature decides alone fails again. Where other things are random too, an episode with the same
disturbances need not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.learn.ape.rows import Rows
from apeval.learn.whitened import to_action
from apeval.problem.laws import CategoricalLaw, Law
from apeval.problem.types import Array, FloatArray
from apeval.simulate.adversary import Adversary, Mixture, Situation, mixture

PLAYED = 8
"""Episodes that are spent on it."""
_FAILURES = 4


@dataclass(frozen=True, eq=False)
class Again(Adversary):
    """The disturbances of one episode, then π_E,gt: to look at, not to weigh."""

    e: FloatArray
    """As in `Rows`, (T, d)."""
    z_0: FloatArray
    """(d_0,); d_0 = 0: the start is drawn from its nominal law."""

    def sample(self, now: Situation, u: FloatArray) -> Array:
        a_E, known = now.law.sample(u), now.t < len(self.e)
        if isinstance(now.law, CategoricalLaw):
            a_E[known] = self.e[now.t[known]]
        elif known.any():
            a_E[known] = to_action(now.law.take(np.flatnonzero(known)), self.e[now.t[known]])
        return a_E

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        raise TypeError("an episode that is played again has no density")

    def sample_initial(self, law: Law, u: FloatArray) -> Array:
        if len(self.z_0) == 0:
            return law.sample(u)
        return to_action(law, np.broadcast_to(self.z_0, u.shape))


def play_again(failures: Rows, log_w: FloatArray) -> Mixture:
    """The failures with the largest weights, alike."""
    chosen = np.sort(np.argsort(-log_w)[:_FAILURES])
    parts = [Again(failures.e[failures.episode == k], failures.z_0[k]) for k in chosen]
    return mixture(parts, [1.0 / len(parts)] * len(parts))
