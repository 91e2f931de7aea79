"""How far an adversary is from the nominal disturbance, and where: KL(π_E‖π_E,gt)."""

from __future__ import annotations

import numpy as np

from apeval.problem.types import FloatArray
from apeval.simulate.adversary import Adversary, Situation
from apeval.simulate.episodes import Episodes


def kl_to_nominal(
    adversary: Adversary, now: Situation, d_E: int, samples: int = 256, seed: int = 0
) -> FloatArray:
    """KL(π_E‖π_E,gt) in each of n situations, (n,): the mean of log π_E − log π_E,gt over a
    Latin hypercube of samples from π_E. Its error may take a KL near 0 slightly below 0.

    >>> from apeval.problem.laws import Normal
    >>> from apeval.simulate.adversary import Nominal
    >>> law = Normal(0.0, 1.0).given(np.zeros((2, 1)), np.zeros((2, 0)))
    >>> now = Situation(np.zeros((2, 1)), np.zeros((2, 0)), np.zeros(2, np.int64), law)
    >>> kl_to_nominal(Nominal(), now, 1).tolist()
    [0.0, 0.0]
    """
    n, rng = len(now.t), np.random.default_rng(seed)
    strata = rng.permuted(np.tile(np.arange(samples), (n, d_E, 1)), axis=2)
    u = (strata + rng.random(strata.shape)) / samples
    often = now.take(np.repeat(np.arange(n), samples))
    a_E = adversary.sample(often, u.transpose(0, 2, 1).reshape(n * samples, d_E))
    log_ratio = adversary.log_prob(often, a_E) - often.law.log_prob(a_E)
    kl: FloatArray = log_ratio.reshape(n, samples).mean(axis=1)
    return kl


def kl_by_decision(
    adversary: Adversary, batch: Episodes, situations: int = 64, samples: int = 256, seed: int = 0
) -> FloatArray:
    """Mean KL(π_E‖π_E,gt) at decision 0, 1, … over at most `situations` situations that the
    batch met there."""
    means = []
    for t in range(int(batch.t.max()) + 1):
        now = batch.situation.take(np.flatnonzero(batch.t == t)[:situations])
        kl = kl_to_nominal(adversary, now, batch.a_E.shape[1], samples, seed + t)
        means.append(float(kl.mean()))
    return np.array(means)
