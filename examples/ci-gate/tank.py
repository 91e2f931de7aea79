"""The system under test: a controller that keeps a tank from overflowing."""

from __future__ import annotations

import numpy as np

import apeval

CAPACITY = 9  # litres
OPENS_AT = 5  # litres, where the controller opens its second valve


def controller(x):
    return 1 + (x > OPENS_AT)  # litres that flow out in a minute


def problem():
    return apeval.Problem(
        nominal=apeval.Categorical([0.6, 0.25, 0.1, 0.05]),  # nature: 0 … 3 litres flow in
        agent=controller,
        reset=lambda draws: np.full((draws.n, 1), 3),
        step=lambda x, a_A, a_E, draws: np.maximum(x - a_A + a_E, 0),
        failed=apeval.spec("always level <= 9", level=lambda x: x[:, 0], kind="overflow"),
        horizon=30,
    )
