"""How much of each of many measured effects is real, learned from all of them together.

An effect is nothing with probability 1 − π, and N(0, τ²) otherwise; π and τ are those under which
the measurements are likeliest. Many effects of like size keep nearly all of it; where one stands
out, the others count as chance.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from apeval.problem.types import FloatArray

_ROUNDS = 12
_PRIOR = 1.0  # effects, real and none, that π is held to before any is seen


def believed(effect: FloatArray, variance: FloatArray) -> FloatArray:
    """The part of each effect that is believed, from 0 to 1; `variance` is that of its error.

    >>> one_stands_out = np.array([-2.4, 0.1, -0.2, 0.15, 0.05, -0.1])
    >>> believed(one_stands_out, np.full(6, 0.04)).round(1).tolist()
    [1.0, 0.0, 0.1, 0.0, 0.0, 0.0]
    >>> believed(np.array([0.4, 0.5, -0.45, -0.4]), np.full(4, 0.04)).round(1).tolist()
    [0.7, 0.8, 0.7, 0.7]
    """
    square, error = effect**2, np.broadcast_to(variance, effect.shape)
    pi, tau = 0.5, max(float(np.median(square)), float(square.mean()), 1e-12)
    real, sharpness = np.full(effect.shape, 0.5), 1.0 / error
    for _ in range(_ROUNDS):
        total = tau + error
        log_odds = math.log(pi / (1.0 - pi)) + 0.5 * (
            np.log(error / total) + square * (sharpness - 1.0 / total)
        )
        real = expit(log_odds)
        number = float(real.sum())
        pi = (number + _PRIOR) / (effect.size + 2.0 * _PRIOR)
        kept = tau / total
        second = kept * kept * square + kept * error
        tau = max(float((real * second).sum()) / max(number, 1e-12), 1e-12)
    part: FloatArray = real * (tau / (tau + error))
    return part
