"""How much of each of many measured effects is real, learned from all of them together.

An effect is nothing with probability 1 − π, and N(0, τ²) otherwise; π and τ are those under which
the measurements are likeliest. Many effects of like size keep nearly all of it; where one stands
out, the others count as chance.
"""

from __future__ import annotations

import numpy as np

from apeval.problem.types import FloatArray

_ROUNDS = 30
_SETTLED = 1e-6  # relative change of τ² and π at which rounds end
_PRIOR = 1.0  # effects, real and none, that π is held to before any is seen


def believed(effect: FloatArray, variance: FloatArray) -> FloatArray:
    """The part of each effect that is believed, from 0 to 1; `variance` is that of its error.

    >>> one_stands_out = np.array([-2.4, 0.1, -0.2, 0.15, 0.05, -0.1])
    >>> believed(one_stands_out, np.full(6, 0.04)).round(1).tolist()
    [1.0, 0.0, 0.1, 0.0, 0.0, 0.0]
    >>> believed(np.array([0.4, 0.5, -0.45, -0.4]), np.full(4, 0.04)).round(1).tolist()
    [0.7, 0.8, 0.7, 0.7]
    """
    square, error = effect**2, np.broadcast_to(variance, effect.shape).copy()
    certain = 1.0 / error
    pi, tau = 0.5, max(float(np.median(square)), float(square.mean()), 1e-12)
    real = np.full(effect.shape, 0.5)
    for _ in range(_ROUNDS):
        total = tau + error
        log_odds = np.log(pi / (1.0 - pi)) + 0.5 * (
            np.log(error / total) + square * (certain - 1.0 / total)
        )
        real = 1.0 / (1.0 + np.exp(np.minimum(-log_odds, 500.0)))
        number, before = float(real.sum()), (pi, tau)
        pi = (number + _PRIOR) / (effect.size + 2.0 * _PRIOR)
        kept = tau / total
        second = kept * kept * square + kept * error
        tau = max(float((real * second).sum()) / max(number, 1e-12), 1e-12)
        if abs(pi - before[0]) < _SETTLED * pi and abs(tau - before[1]) < _SETTLED * tau:
            break
    part: FloatArray = real * (tau / (tau + error))
    return part
