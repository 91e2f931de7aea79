"""The passage probability of the Ornstein-Uhlenbeck process, by quadrature forward in time."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from apeval.problem.truth import Truth

THETA, EPSILON, DT, STEPS = 1.0, 0.5, 0.01, 500
SIGMA, NOISE = float(np.sqrt(EPSILON / THETA)), float(np.sqrt(2.0 * EPSILON * DT))
NODES = (600, 900)
SOURCE = "github.com/nlesc-eTAOC/pyTAMS, examples/OrnsteinUhlenbeck"
_LOWEST = -9.0


@lru_cache(maxsize=16)
def passage(level: float, nodes: int) -> float:
    """P(X_t ≥ level·σ for some t = 1 … 500).

    The density of the paths still below is carried on Gauss-Legendre nodes; only positive terms are
    added, so that small probabilities keep their digits.

    Args:
        level: In standard deviations of the stationary law.
        nodes: How many nodes.

    Returns:
        The probability.
    """
    top, low, noise = level * SIGMA, _LOWEST * SIGMA, NOISE
    u, w = np.polynomial.legendre.leggauss(nodes)
    x = low + 0.5 * (u + 1.0) * (top - low)
    w = w * 0.5 * (top - low)
    drift = (1.0 - THETA * DT) * x
    K = np.exp(-0.5 * ((x[:, None] - drift[None, :]) / noise) ** 2)
    K *= w / (np.sqrt(2.0 * np.pi) * noise)
    passes = ndtr((drift - top) / noise) * w
    # the first step from the stationary start, which may lie above the level
    spread = float(np.hypot((1.0 - THETA * DT) * SIGMA, noise))
    f = np.exp(-0.5 * (x / spread) ** 2) / (np.sqrt(2.0 * np.pi) * spread)
    p = float(ndtr(-top / spread))
    for _ in range(STEPS - 1):
        p += float(passes @ f)
        f = K @ f
    return p


def truth(level: float) -> Truth:
    """The passage probability with its error.

    Args:
        level: In standard deviations of the stationary law.

    Returns:
        The truth; its error is the difference between two numbers of nodes.
    """
    coarse, fine = (passage(level, n) for n in NODES)
    return Truth(
        fine,
        abs(fine - coarse),
        "deterministic quadrature",
        {
            "source": SOURCE,
            "error_is": "difference of two numbers of Gauss–Legendre nodes",
            "nodes": {str(n): v for n, v in zip(NODES, (coarse, fine), strict=True)},
        },
    )
