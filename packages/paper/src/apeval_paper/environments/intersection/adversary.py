"""The zero-variance adversary of the dynamic programme: π_E*(a_E | s, t) ∝ π_E,gt(a_E)·v*(s').

Sampled exactly from a density that is close to it and known exactly: across the lines of
`line.cells` a Gaussian fitted to the line totals, along a line the cells' masses with a uniform
density inside each, and a small share ε of the nominal, so that nothing is missed.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from apeval.problem.types import Array, FloatArray
from apeval_paper.environments.intersection.columns import PENDING, K, V, Y
from apeval_paper.environments.intersection.dp import IntersectionSolution
from apeval_paper.environments.intersection.kernel import kernel
from apeval_paper.environments.intersection.line import axes, dot, fill, room

EPSILON = 0.002
"""The nominal's share in every decision."""
WIDTH = 0.2
"""Widest cell along a line, in standard deviations."""
NOTHING = 1e-300
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


class ZeroVariance:
    """q(a_E | s, t) for states at the start of a decision. Uses d_E + 2 uniforms per decision.

    Its support is slightly larger than the box: a sample outside it has π_E,gt = 0, weight 0.
    """

    def __init__(self, solution: IntersectionSolution) -> None:
        g = self.g = solution.g
        self.law = g.nominal().given(None, None)
        self.uniforms = g.d_E + 2
        self.model = solution.model

    def sample(self, x: Array, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """a_E and log q(a_E | s, t) from uniforms of shape (n, d_E + 2)."""
        d = self.g.d_E
        nominal = self.law.sample(u[:, :d])
        normals = ndtri(u[:, :d])
        places = np.ascontiguousarray(u[:, [d + 1, 0]])
        a, log_tilt = _twist(
            np.ascontiguousarray(x), nominal, u[:, d] < EPSILON, normals, places, self.model
        )
        return a, self._mixed(log_tilt, a)

    def log_prob(self, x: Array, a: FloatArray) -> FloatArray:
        """log q(a_E | s, t) for given disturbances."""
        n = len(x)
        every, unused = np.ones(n, np.bool_), np.zeros((n, self.g.d_E))
        _, log_tilt = _twist(
            np.ascontiguousarray(x), np.ascontiguousarray(a), every, unused, np.zeros((n, 2)),
            self.model,
        )  # fmt: skip
        return self._mixed(log_tilt, a)

    def _mixed(self, log_tilt: FloatArray, a: FloatArray) -> FloatArray:
        log_p = self.law.log_prob(a)
        nominal = np.isnan(log_tilt)  # no failure left to steer to
        tilt = np.where(nominal, log_p, log_tilt)
        mixed = np.logaddexp(math.log1p(-EPSILON) + tilt, math.log(EPSILON) + log_p)
        log_q: FloatArray = np.where(nominal, log_p, mixed)
        return log_q


@kernel
def _across(k, y, v, pending, E, m, cells, mean, sd):  # type: ignore[no-untyped-def]
    """Fit N(mean_i, sd_i²) across the lines from log G(z_i) at −1, 0 and 1; return G(0)."""
    z, G = np.zeros(m.d), np.zeros(3)
    for i in range(1, m.d):
        for j in range(3):
            z[i] = j - 1.0
            _, G[j] = fill(k, y, v, pending, z, E, WIDTH, m, cells)
        z[i], mean[i], sd[i] = 0.0, 0.0, 1.0
        if min(G[0], G[1], G[2]) > NOTHING:
            low, mid, high = np.log(G[0]), np.log(G[1]), np.log(G[2])
            precision = min(max(1.0 - (low + high - 2.0 * mid), 0.5), 3.0)
            mean[i] = min(max(0.5 * (high - low) / precision, -3.0), 3.0)
            sd[i] = 1.0 / np.sqrt(precision)
    return G[1]


@kernel
def _twist(x, given, fixed, normals, places, m):  # type: ignore[no-untyped-def]
    """Per row: the disturbance (`given` where `fixed`, else sampled) and the tilted log-density,
    NaN where the line through the origin holds no failure: there the nominal serves."""
    d, cells = m.d, room()
    edges, mass = cells.edges, cells.mass
    out, log_tilt = given.copy(), np.full(len(x), np.nan)
    z, mean, sd = np.zeros(d), np.zeros(d), np.ones(d)
    for r in range(len(x)):
        k, y, v, pending = int(x[r, K]), x[r, Y], x[r, V], x[r, PENDING] > 0.5
        E = axes(k, y, v, m)
        if _across(k, y, v, pending, E, m, cells, mean, sd) < NOTHING:
            continue  # `out` holds the nominal's sample
        for i in range(d):
            z[i] = mean[i] + sd[i] * normals[r, i]
            if fixed[r]:
                z[i] = dot(E[i], given[r]) / m.std
        n, G = fill(k, y, v, pending, z, E, WIDTH, m, cells)
        c, hopeful = 0, G >= NOTHING
        if fixed[r]:
            while c < n - 1 and edges[c + 1] < z[0]:
                c += 1
        else:
            left = places[r, 0] * G
            while c < n - 1 and left >= mass[c]:
                left -= mass[c]
                c += 1
            if hopeful:
                z[0] = edges[c] + places[r, 1] * (edges[c + 1] - edges[c])
            for j in range(d):
                out[r, j] = dot(z, E[:, j]) * m.std
        log_q = -0.5 * z[0] * z[0] - LOG_SQRT_2PI  # a line without failures: N(0, 1) along it
        if hopeful:
            log_q = np.log(max(mass[c] / G, NOTHING) / (edges[c + 1] - edges[c]))
        for i in range(1, d):
            s = (z[i] - mean[i]) / sd[i]
            log_q -= 0.5 * s * s + LOG_SQRT_2PI + np.log(sd[i])
        log_tilt[r] = log_q - d * np.log(m.std)
    return out, log_tilt
