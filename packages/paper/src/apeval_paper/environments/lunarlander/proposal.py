"""The importance sampler's proposal, tuned by hand on pilot runs (seeds below 1,000).

Nearly all crashes begin with too little thrust of the main engine while it brakes: through the
disturbance of decision 1 (frames 50 to 100), about −2.6 σ, together with a dispersion that
happens to point the same way. Sampling both from where failures are brings the relative variance
per episode from about 100 (disturbance alone) to below 10.
"""

from __future__ import annotations

import numpy as np

from apeval_paper.environments.lunarlander.sampling import Proposal

DECISIONS = 4  # a lander is down by then; later decisions stay nominal


BRAKING, TOUCHDOWN = slice(57, 100), slice(100, 114)  # frames


def _hand_tuned() -> Proposal:
    alpha = np.array([0.10, 0.55, 0.25, 0.10])  # nominal (defensive), weak, unlucky, wide
    mean, std = np.zeros((4, DECISIONS, 2)), np.ones((4, DECISIONS, 2))
    tilt = np.zeros((4, TOUCHDOWN.stop))
    mean[1, 1, 0], std[1, 1, 0], mean[1, 2, 0] = -2.5, 0.75, -0.3
    tilt[1, BRAKING], tilt[1, TOUCHDOWN] = -0.45, -0.25
    mean[2, 1, 0], std[2, 1, 0], mean[2, 2, 0] = -1.6, 0.75, -0.3
    tilt[2, BRAKING], tilt[2, TOUCHDOWN] = -0.7, -0.35
    mean[3, 1, 0], std[3] = -1.3, 1.3  # other ways to fail than the known one
    std[3, 1, 0] = 1.0
    return Proposal(alpha, mean, std, tilt)


HAND_TUNED = _hand_tuned()
