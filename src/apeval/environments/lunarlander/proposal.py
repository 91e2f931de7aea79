"""The importance sampler's proposal, tuned by hand on pilot runs.

Nearly all failures begin with too little thrust of the main engine in decision 1 (frames 50 to
100), about −2.6 σ. As dispersion is not controlled, no proposal on w reaches zero variance.
"""

from __future__ import annotations

import numpy as np

from apeval.environments.lunarlander.sampling import Proposal

DECISIONS = 4  # a lander is down by then; later decisions stay nominal


def _hand_tuned() -> Proposal:
    alpha = np.array([0.07, 0.85, 0.08])  # nominal (defensive), focused, wide
    mean, std = np.zeros((3, DECISIONS, 2)), np.ones((3, DECISIONS, 2))
    mean[1, 1, 0], std[1, 1, 0] = -2.1, 0.65
    mean[1, 2, 0] = -0.3
    std[2] = 1.3  # other ways to fail than the known one
    mean[2, 1, 0], std[2, 1, 0] = -1.3, 1.0
    return Proposal(alpha, mean, std)


HAND_TUNED = _hand_tuned()
