"""v*(s, t) by dynamic programming over the challenger's (y, v), for any geometry.

v*(s_n) = E[v*(s_{n+1})] backwards from the horizon. Layers are interpolated in Φ⁻¹(V):
interpolating log V comes out 17–25 % low on Int-v1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from scipy.special import ndtri

from apeval.environments.intersection.geometry import Geometry
from apeval.environments.intersection.highway import ego_path
from apeval.environments.intersection.line import PROBIT_LIMIT, REACH, Phi, axes, cells, doomed
from apeval.environments.intersection.state import PENDING, POSE_X, TOP_SPEED, K, V, Y
from apeval.environments.intersection.twin import HALF_WIDTH, scalars
from apeval.problem.types import Array, FloatArray

MAX_CELLS = 1024
SPREAD = 4.0
"""Layers are fine within this many standard deviations of the nominal motion."""


@dataclass(frozen=True)
class Grid:
    """How fine the recursion is."""

    u: int = 240
    """Nodes along u = y − shear·v."""
    v: int = 60
    """Nodes along the challenger's speed."""
    lines: int = 5
    """Gauss–Hermite nodes along each axis across the lines."""
    width: float = 0.75
    """Widest cell along a line, in standard deviations."""

    def __post_init__(self) -> None:
        if min(self.u, self.v) < 2 or self.lines < 1 or 4 * REACH / self.width > MAX_CELLS / 4:
            raise ValueError(f"unusable grid: {self}")


@dataclass(frozen=True)
class Solution:
    """The layers Φ⁻¹(v*(·, t)) for t = 1 … T−1, and what is needed to use them."""

    g: Geometry
    grid: Grid
    layers: FloatArray
    """Shape (T + 1, u, v); rows 0 and T are not used."""
    frames: FloatArray
    """Where each layer's nodes lie, see `line.U_CENTRE` and following."""

    def value(self, x: Array) -> FloatArray:
        """v* at the states of a batch, each at the start of a decision."""
        v: FloatArray = _values(
            np.ascontiguousarray(x), self.layers, self.frames, *_kernel_arguments(self.g, self.grid)
        )
        return v

    @property
    def v0(self) -> float:
        """v*(s_0)."""
        x = np.zeros((1, 6))
        x[0, Y], x[0, V] = ego_path(self.g).start_y, self.g.challenger_speed
        return float(self.value(x)[0])


def meeting_time(g: Geometry) -> float:
    """When the ego's centre comes within a car's width of the challenger's lane (else T)."""
    path = ego_path(g)
    near = np.abs(path.poses[:, POSE_X] - path.lane_x) <= 2.0 * HALF_WIDTH
    return float(np.argmax(near)) * g.dt if near.any() else float(g.decisions)


def layer_frames(g: Geometry, grid: Grid) -> FloatArray:
    """What each layer spans: all states within reach of the acceleration limit, finest where the
    nominal leads.

    With shear = −(time until the paths meet), u = y − shear·v is where the challenger would be
    then, which is nearly all that v* depends on: along v few nodes suffice.
    """
    frames = np.zeros((g.decisions + 1, 9))
    y0, v0 = ego_path(g).start_y, g.challenger_speed
    acc, noise = min(g.acc_limit, g.box * g.d_E), g.std * np.sqrt(g.d_E)
    meeting = meeting_time(g)
    for t in range(1, g.decisions):
        low, high = max(0.0, v0 - acc * t), min(TOP_SPEED + 1.0, v0 + acc * t)
        wait = max(meeting - t, 0.0)
        reach = acc * t * (0.5 * t + wait)
        spread = noise * np.sqrt(t * (t * t / 3.0 + t * wait + wait * wait))
        u_axis = _axis(max(-reach, -v0 * (t + wait)), reach, SPREAD * spread, grid.u)
        v_axis = _axis(low - v0, high - v0, SPREAD * noise * np.sqrt(t), grid.v)
        frames[t] = y0 + v0 * (t + wait), *u_axis, v0, *v_axis, -wait
    return frames


def _axis(low: float, high: float, scale: float, nodes: int) -> tuple[float, float, float]:
    """(scale, step, middle) of the nodes scale·sinh(step·(i − middle)) from low to high."""
    first, end = np.arcsinh(low / scale), np.arcsinh(high / scale)
    step = (end - first) / (nodes - 1)
    return scale, float(step), float(-first / step)


def solve(g: Geometry, grid: Grid = Grid()) -> Solution:
    """The recursion. Seconds to minutes, growing with the grid and the horizon."""
    return _solve(g, grid)


@lru_cache(maxsize=16)
def _solve(g: Geometry, grid: Grid) -> Solution:
    frames = layer_frames(g, grid)
    layers = np.full((g.decisions + 1, grid.u, grid.v), -PROBIT_LIMIT)
    arguments = _kernel_arguments(g, grid)
    for t in range(g.decisions - 1, 0, -1):
        V_t = np.clip(_layer(t, layers, frames, *arguments), 0.0, 1.0)
        layers[t] = np.clip(ndtri(V_t), -PROBIT_LIMIT, PROBIT_LIMIT)
    return Solution(g, grid, layers, frames)


def _kernel_arguments(g: Geometry, grid: Grid) -> tuple[object, ...]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(grid.lines)
    weights = weights / weights.sum()
    return ego_path(g).poses, scalars(g), g.std, g.box, grid.width, nodes, weights, g.frames, g.d_E


@njit(cache=True)
def _expectation(k, y, v, pending, t, layers, frames, poses, q, std, box, width, nodes, weights, d, edges, mass):  # type: ignore[no-untyped-def]  # noqa: E501
    """E[v*(next)] over the box: lines along axis 1, Gauss–Hermite across them. Dividing by the
    box's mass under the same rule makes V = 1 come out as 1."""
    T = layers.shape[0] - 1
    last = t == T - 1
    E = axes(k, y, v, d, poses, q)
    z = np.zeros(d)
    total, box_mass = 0.0, 0.0
    across = len(nodes) if d == 3 else 1
    for i in range(len(nodes)):
        z[1] = nodes[i]
        for j in range(across):
            weight = weights[i]
            if d == 3:
                z[2] = nodes[j]
                weight *= weights[j]
            n = cells(
                k, y, v, pending, z, E, std, box, width, poses, q, last,
                layers[t + 1], frames[t + 1], edges, mass,
            )  # fmt: skip
            if n > 0:
                total += weight * np.sum(mass[:n])
                box_mass += weight * (Phi(edges[n]) - Phi(edges[0]))
    return total / box_mass


@njit(cache=True)
def _layer(t, layers, frames, poses, q, std, box, width, nodes, weights, per, d):  # type: ignore[no-untyped-def]
    out = np.empty(layers.shape[1:])
    edges, mass = np.empty(MAX_CELLS + 1), np.empty(MAX_CELLS)
    u_centre, u_scale, u_step, u_middle, v_centre, v_scale, v_step, v_middle, shear = frames[t]
    k = t * per
    for j in range(out.shape[1]):
        v = v_centre + v_scale * np.sinh(v_step * (j - v_middle))
        for i in range(out.shape[0]):
            y = u_centre + u_scale * np.sinh(u_step * (i - u_middle)) + shear * v
            if doomed(k, y, v, poses, q):
                out[i, j] = 1.0
            else:
                out[i, j] = _expectation(
                    k, y, v, False, t, layers, frames, poses, q, std, box, width, nodes, weights,
                    d, edges, mass,
                )  # fmt: skip
    return out


@njit(cache=True)
def _values(x, layers, frames, poses, q, std, box, width, nodes, weights, per, d):  # type: ignore[no-untyped-def]
    out = np.zeros(x.shape[0])
    edges, mass = np.empty(MAX_CELLS + 1), np.empty(MAX_CELLS)
    for i in range(x.shape[0]):
        k = int(x[i, K])
        t = k // per
        if t < layers.shape[0] - 1:
            out[i] = _expectation(
                k, x[i, Y], x[i, V], x[i, PENDING] > 0.5, t, layers, frames, poses, q, std, box,
                width, nodes, weights, d, edges, mass,
            )  # fmt: skip
    return out
