"""v*(s, t) by dynamic programming over the challenger's (y, v), for any geometry.

v*(s_n) = E[v*(s_{n+1})] backwards from the horizon. Layers are interpolated in Φ⁻¹(V):
interpolating log V comes out 17–25 % low on Int-v1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from apeval.problem.types import Array, FloatArray
from apeval_paper.environments.intersection.columns import PENDING, POSE_X, TOP_SPEED, K, V, Y
from apeval_paper.environments.intersection.geometry import Geometry
from apeval_paper.environments.intersection.highway import ego_path
from apeval_paper.environments.intersection.kernel import kernel
from apeval_paper.environments.intersection.line import (
    MAX_CELLS,
    PROBIT_LIMIT,
    REACH,
    LineModel,
    Phi,
    axes,
    doomed,
    fill,
    room,
)
from apeval_paper.environments.intersection.twin import HALF_WIDTH, scalars

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


DEFAULT = Grid()


@dataclass(frozen=True)
class IntersectionSolution:
    """v* of a geometry on a grid."""

    g: Geometry
    grid: Grid
    model: LineModel

    def value(self, x: Array) -> FloatArray:
        """v* at the states of a batch, each at the start of a decision."""
        v: FloatArray = _values(np.ascontiguousarray(x), self.model, *_rule(self.g, self.grid))
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


def layer_grids(g: Geometry, grid: Grid) -> FloatArray:
    """What each layer spans: all states within reach of the acceleration limit, finest where the
    nominal leads.

    With shear = −(time until the paths meet), u = y − shear·v is where the challenger would be
    then, which is nearly all that v* depends on: along v few nodes suffice.
    """
    grids = np.zeros((g.decisions + 1, 9))
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
        grids[t] = y0 + v0 * (t + wait), *u_axis, v0, *v_axis, -wait
    return grids


def _axis(low: float, high: float, scale: float, nodes: int) -> tuple[float, float, float]:
    """(scale, step, middle) of the nodes scale·sinh(step·(i − middle)) from low to high."""
    first, end = np.arcsinh(low / scale), np.arcsinh(high / scale)
    step = (end - first) / (nodes - 1)
    return scale, float(step), float(-first / step)


def solve(g: Geometry, grid: Grid = DEFAULT) -> IntersectionSolution:
    """The recursion. Seconds to minutes, growing with the grid and the horizon."""
    return _solve(g, grid)


@lru_cache(maxsize=16)
def _solve(g: Geometry, grid: Grid) -> IntersectionSolution:
    layers = np.full((g.decisions + 1, grid.u, grid.v), -PROBIT_LIMIT)
    m = LineModel(
        ego_path(g).poses, scalars(g), float(g.std), float(g.box), g.frames, g.d_E,
        layers, layer_grids(g, grid),
    )  # fmt: skip
    for t in range(g.decisions - 1, 0, -1):
        V_t = np.clip(_values(_nodes(t, g, grid, m), m, *_rule(g, grid)), 0.0, 1.0)
        layers[t] = np.clip(ndtri(V_t), -PROBIT_LIMIT, PROBIT_LIMIT).reshape(grid.u, grid.v)
    return IntersectionSolution(g, grid, m)


def _rule(g: Geometry, grid: Grid) -> tuple[float, FloatArray, FloatArray]:
    """Cell width, and nodes and weights across the lines: Gauss–Hermite, or where the box cuts
    into the bulk of the nominal, Gauss–Legendre over the box."""
    edge = g.box / g.std
    if edge >= 3.5:
        nodes, weights = np.polynomial.hermite_e.hermegauss(grid.lines)
    else:
        nodes, weights = np.polynomial.legendre.leggauss(3 * grid.lines)
        nodes = nodes * edge * np.sqrt(g.d_E)
        weights = weights * np.exp(-0.5 * nodes**2)
    return grid.width, nodes, weights / weights.sum()


@kernel
def _expectation(k, y, v, pending, m, width, nodes, weights, cells):  # type: ignore[no-untyped-def]
    """E[v*(next)] over the box: lines along axis 1, Gauss–Hermite across them. Dividing by the
    box's mass under the same rule makes V = 1 come out as 1."""
    E = axes(k, y, v, m)
    z = np.zeros(m.d)
    total, box_mass = 0.0, 0.0
    for i in range(len(nodes)):
        z[1] = nodes[i]
        for j in range(len(nodes) if m.d == 3 else 1):
            weight = weights[i]
            if m.d == 3:
                z[2] = nodes[j]
                weight *= weights[j]
            n, G = fill(k, y, v, pending, z, E, width, m, cells)
            if n > 0:
                total += weight * G
                box_mass += weight * (Phi(cells.edges[n]) - Phi(cells.edges[0]))
    return total / box_mass


def _nodes(t: int, g: Geometry, grid: Grid, m: LineModel) -> FloatArray:
    """The states at the nodes of layer t."""
    u_centre, u_scale, u_step, u_middle, v_centre, v_scale, v_step, v_middle, shear = m.grids[t]
    u = u_centre + u_scale * np.sinh(u_step * (np.arange(grid.u) - u_middle))
    v = v_centre + v_scale * np.sinh(v_step * (np.arange(grid.v) - v_middle))
    x = np.zeros((grid.u, grid.v, 6))
    x[..., K], x[..., Y], x[..., V] = t * g.frames, u[:, None] + shear * v, v
    return x.reshape(-1, 6)


@kernel
def _values(x, m, width, nodes, weights):  # type: ignore[no-untyped-def]
    out, cells = np.zeros(x.shape[0]), room()
    for i in range(x.shape[0]):
        k, y, v, pending = int(x[i, K]), x[i, Y], x[i, V], x[i, PENDING] > 0.5
        if k < m.frames * (m.layers.shape[0] - 1):
            if doomed(k, y, v, m):
                out[i] = 1.0
            else:
                out[i] = _expectation(k, y, v, pending, m, width, nodes, weights, cells)
    return out
