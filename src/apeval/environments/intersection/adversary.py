"""The zero-variance adversary of the dynamic programme: π_E*(a_E | s, t) ∝ π_E,gt(a_E)·v*(s').

Sampled exactly from a density that is close to it and known exactly: across the lines of
`line.cells` a Gaussian fitted to the line totals, along a line the cells' masses with a uniform
density inside each, and a small share ε of the nominal, so that nothing is missed.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy.special import ndtri

from apeval.environments.intersection.dp import MAX_CELLS, Solution
from apeval.environments.intersection.highway import ego_path
from apeval.environments.intersection.line import axes, cells
from apeval.environments.intersection.state import PENDING, K, V, Y
from apeval.environments.intersection.twin import scalars
from apeval.problem.types import Array, FloatArray

EPSILON = 0.002
"""The nominal's share in every decision."""
WIDTH = 0.2
"""Widest cell along a line, in standard deviations."""
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


class ZeroVariance:
    """q(a_E | s, t) for states at the start of a decision. Uses d_E + 2 uniforms per decision.

    Its support is slightly larger than the box: a sample outside it has π_E,gt = 0, weight 0.
    """

    def __init__(self, solution: Solution) -> None:
        g = self.g = solution.g
        self.law = g.nominal().given(None, None)
        self.uniforms = g.d_E + 2
        self._arguments = (
            solution.layers, solution.frames, ego_path(g).poses, scalars(g), g.std, g.box,
            g.frames, g.d_E,
        )  # fmt: skip

    def sample(self, x: Array, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """a_E and log q(a_E | s, t) from uniforms of shape (n, d_E + 2)."""
        d = self.g.d_E
        nominal = self.law.sample(u[:, :d])
        normals = ndtri(u[:, :d])
        a, log_tilt = _twist(
            np.ascontiguousarray(x), nominal, u[:, d] < EPSILON, normals, u[:, d + 1].copy(), u[:, 0].copy(),
            *self._arguments,
        )  # fmt: skip
        return a, self._mixed(log_tilt, a)

    def log_prob(self, x: Array, a: FloatArray) -> FloatArray:
        """log q(a_E | s, t) for given disturbances."""
        n = len(x)
        every, nothing = np.ones(n, np.bool_), np.zeros((n, self.g.d_E))
        _, log_tilt = _twist(
            np.ascontiguousarray(x), np.ascontiguousarray(a), every, nothing, np.zeros(n),
            np.zeros(n), *self._arguments,
        )  # fmt: skip
        return self._mixed(log_tilt, a)

    def _mixed(self, log_tilt: FloatArray, a: FloatArray) -> FloatArray:
        log_p = self.law.log_prob(a)
        nominal = np.isnan(log_tilt)  # no failure left to steer to
        tilt = np.where(nominal, log_p, log_tilt)
        mixed = np.logaddexp(math.log1p(-EPSILON) + tilt, math.log(EPSILON) + log_p)
        log_q: FloatArray = np.where(nominal, log_p, mixed)
        return log_q


@njit(cache=True)
def _twist(x, given, fixed, normals, u_cell, u_inside, layers, frames, poses, q, std, box, per, d):  # type: ignore[no-untyped-def]
    """Per row: the disturbance (`given` where `fixed`, else sampled) and the tilted log-density,
    NaN where the line through the origin holds no failure: there the nominal serves."""
    out, log_tilt = given.copy(), np.full(len(x), np.nan)
    edges, mass = np.empty(MAX_CELLS + 1), np.empty(MAX_CELLS)
    z, mean, sd, total = np.zeros(d), np.zeros(d), np.ones(d), np.zeros(3)
    T = layers.shape[0] - 1
    for r in range(len(x)):
        k, y, v, pending = int(x[r, K]), x[r, Y], x[r, V], x[r, PENDING] > 0.5
        t = k // per
        last, layer, frame = t == T - 1, layers[t + 1], frames[t + 1]
        E = axes(k, y, v, d, poses, q)
        # a Gaussian across the lines: log G(z_i) at −1, 0, 1 gives slope and curvature
        for i in range(1, d):
            for m in range(3):
                z[:] = 0.0
                z[i] = m - 1.0
                n = cells(
                    k, y, v, pending, z, E, std, box, WIDTH, poses, q, last, layer, frame,
                    edges, mass,
                )  # fmt: skip
                total[m] = np.sum(mass[:n])
            mean[i], sd[i], hope = 0.0, 1.0, total[1]
            if min(total) > 1e-300:
                low, mid, high = np.log(total[0]), np.log(total[1]), np.log(total[2])
                precision = min(max(1.0 - (low + high - 2.0 * mid), 0.5), 3.0)
                mean[i] = min(max(0.5 * (high - low) / precision, -3.0), 3.0)
                sd[i] = 1.0 / np.sqrt(precision)
        if hope < 1e-300:
            continue  # `out` holds the nominal's sample
        for i in range(d):
            z[i] = 0.0
            if fixed[r]:
                for j in range(d):
                    z[i] += E[i, j] * given[r, j] / std
            elif i > 0:
                z[i] = mean[i] + sd[i] * normals[r, i]
        n = cells(
            k, y, v, pending, z, E, std, box, WIDTH, poses, q, last, layer, frame, edges, mass
        )
        G = np.sum(mass[:n])
        c, line = 0, G >= 1e-300
        if fixed[r]:
            while c < n - 1 and edges[c + 1] < z[0]:
                c += 1
        else:
            left = u_cell[r] * G
            while c < n - 1 and left >= mass[c]:
                left -= mass[c]
                c += 1
            z[0] = normals[r, 0]
            if line:
                z[0] = edges[c] + u_inside[r] * (edges[c + 1] - edges[c])
            for j in range(d):
                out[r, j] = 0.0
                for i in range(d):
                    out[r, j] += z[i] * E[i, j] * std
        log_q = -0.5 * z[0] * z[0] - LOG_SQRT_2PI  # a line without failures: N(0, 1) along it
        if line:
            log_q = np.log(max(mass[c], 1e-300) / G / (edges[c + 1] - edges[c]))
        log_q -= d * np.log(std)
        for i in range(1, d):
            s = (z[i] - mean[i]) / sd[i]
            log_q -= 0.5 * s * s + LOG_SQRT_2PI + np.log(sd[i])
        log_tilt[r] = log_q
    return out, log_tilt
