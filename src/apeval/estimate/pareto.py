"""The tail index of the failures' weights: do the heaviest ones seen speak for the unseen?"""

from __future__ import annotations

import numpy as np

from apeval.problem.types import FloatArray

FEWEST = 25  # failures below which a tail cannot be fitted


def pareto_k(w: FloatArray) -> float | None:
    """Shape k of a generalised Pareto law fitted to the largest weights, as in Pareto-smoothed
    importance sampling (Vehtari et al., 2024): the weights have about 1/k finite moments. None
    where there are too few weights, or where the largest are all the same.

    >>> rng = np.random.default_rng(0)
    >>> 0.3 < (pareto_k(rng.pareto(2.0, 20_000)) or 0.0) < 0.7  # k = 1/2
    True
    """
    w = w[w > 0.0]
    n = len(w)
    if n < FEWEST:
        return None
    tail = int(min(0.2 * n, 3.0 * np.sqrt(n)))
    ordered = np.sort(w / w.max())
    beyond = ordered[-tail:] - ordered[-tail - 1]
    beyond = beyond[beyond > 1e-12]
    return fit_shape(beyond) if len(beyond) >= 5 else None


def fit_shape(x: FloatArray) -> float:
    """k of a generalised Pareto law from its exceedances x > 0, by the quasi-Bayesian estimate of
    Zhang and Stephens (2009), drawn towards ½ with the weight of ten observations."""
    x = np.sort(x)
    n = len(x)
    m = 30 + int(np.sqrt(n))
    quartile = x[int(n / 4 + 0.5) - 1]
    theta = 1.0 / x[-1] + (1.0 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))) / (3.0 * quartile)
    theta = np.where(theta == 0.0, 1e-12, theta)
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    profile = n * (np.log(-theta / k) - k - 1.0)
    posterior = np.exp(profile - profile.max())
    best = float((theta * posterior).sum() / posterior.sum())
    shape = float(np.log1p(-best * x).mean())
    return (n * shape + 5.0) / (n + 10.0)
