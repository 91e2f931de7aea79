"""Nature without disturbances: the control arm of a comparison."""

from __future__ import annotations

import numpy as np

from apeval.problem.laws import Law
from apeval.problem.types import Array, FloatArray
from apeval.simulate.adversary import Adversary, Situation


class Undisturbed(Adversary):
    """The median of every continuous disturbance, the likeliest of outcomes: no chance is left but
    the simulator's own and the agent's. Its episodes carry no weight."""

    def sample(self, now: Situation, u: FloatArray) -> Array:
        return middle(now.law, u)

    def sample_initial(self, law: Law, u: FloatArray) -> Array:
        return middle(law, u)

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        raise TypeError("a fixed disturbance has no density")


def middle(law: Law, u: FloatArray) -> Array:
    """The middle of a law for as many rows as u has: medians, or the likeliest outcome."""
    if not law.discrete:
        return law.sample(np.full(u.shape, 0.5))
    likeliest = np.argmax(law.outcome_probabilities(), axis=1)
    return np.broadcast_to(likeliest[:, None], (len(u), 1)).astype(np.int64)
