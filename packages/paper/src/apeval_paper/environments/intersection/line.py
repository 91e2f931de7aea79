"""One decision's worth of failure probability, integrated along lines in action space.

With z = a_E / σ whitened and axis 1 along σ∘x_E, the acceleration depends almost only on z_1:
along it the integrand jumps (crash or no crash) and gets fine cells split at the jumps; along
the other axes it is smooth. The cells also are the zero-variance adversary's density in z_1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from apeval.problem.types import FloatArray
from apeval_paper.environments.intersection.columns import (
    POSE_COS,
    POSE_SIN,
    POSE_V,
    POSE_X,
    POSE_Y,
)
from apeval_paper.environments.intersection.kernel import kernel
from apeval_paper.environments.intersection.twin import (
    COS,
    DISTANCE,
    DT,
    LANE_X,
    REFERENCE,
    SIN,
    SPEED,
    advance,
    touch,
)

REACH = 8.5
"""Lines end at |z_1| = 8.5 (nominal tail 1e-17)."""
BISECTIONS = 14
MAX_CELLS = 1024
PROBIT_LIMIT = 9.0
"""Layers hold Φ⁻¹(V) cut to ± this, beyond the reach of a line: a deeper floor would drag
interpolated values down wherever V jumps."""

#: A layer's grid: u = y − shear·v = centre + scale·sinh(step·(i − middle)), then v likewise.
U_CENTRE, U_SCALE, U_STEP, U_MIDDLE, V_CENTRE, V_SCALE, V_STEP, V_MIDDLE, SHEAR = range(9)


class LineModel(NamedTuple):
    """All that a kernel needs to know about a geometry and its layers Φ⁻¹(v*(·, t))."""

    poses: FloatArray
    q: FloatArray
    std: float
    box: float
    frames: int
    d: int
    layers: FloatArray
    """Shape (T + 1, u, v); 0 and T are not used."""
    grids: FloatArray
    """Where each layer's nodes lie: U_CENTRE and following."""


class Cells(NamedTuple):
    """Room for the cells of a line."""

    edges: FloatArray
    mass: FloatArray
    """∫ φ(z_1) v*(z_1) dz_1 over each cell."""


@kernel
def room():  # type: ignore[no-untyped-def]
    """Empty cells."""
    return Cells(np.empty(MAX_CELLS + 1), np.empty(MAX_CELLS))


@kernel
def Phi(z):  # type: ignore[no-untyped-def]
    """Standard normal distribution function."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


@kernel
def dot(a, b):  # type: ignore[no-untyped-def]
    """a·b."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@kernel
def phi(z):  # type: ignore[no-untyped-def]
    """Standard normal density."""
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


@kernel
def doomed(k, y, v, m):  # type: ignore[no-untyped-def]
    """Whether the bodies overlap, or an impact is pending, after sub-step k."""
    q, poses = m.q, m.poses
    dx, dy = q[LANE_X] - poses[k, POSE_X], y - poses[k, POSE_Y]
    now, will = touch(
        dx, dy, poses[k, POSE_COS], poses[k, POSE_SIN], q[COS], q[SIN], poses[k, POSE_V], v, q[DT]
    )
    return now or will


@kernel
def axes(k, y, v, m):  # type: ignore[no-untyped-def]
    """Orthonormal rows, the first along x_E in the middle of the decision at constant speed
    (all components have the same σ). Householder reflection of the first unit vector."""
    q, poses, d = m.q, m.poses, m.d
    half = m.frames // 2
    k, y = k + half, y + v * q[DT] * half
    c, s = poses[k, POSE_COS], poses[k, POSE_SIN]
    dx, dy = q[LANE_X] - poses[k, POSE_X], y - poses[k, POSE_Y]
    e = np.zeros(d)
    e[0] = min(max((c * dx + s * dy) / q[DISTANCE], -1.0), 1.0)
    e[1] = min(max((c * dy - s * dx) / q[DISTANCE], -1.0), 1.0)
    if d == 3:
        e[2] = min(max((q[REFERENCE] - v) / q[SPEED], -1.0), 1.0)
    E = np.eye(d)
    norm = math.sqrt(dot(e, e))
    if norm < 1e-9:
        return E
    w = e
    for j in range(d):
        w[j] /= norm
    w[0] -= 1.0
    length = dot(w, w)
    if length > 1e-18:
        for i in range(d):
            for j in range(d):
                E[i, j] -= 2.0 * w[i] * w[j] / length
    return E


@kernel
def interpolate(y, v, layer, grid):  # type: ignore[no-untyped-def]
    """V between grid nodes, bilinear in Φ⁻¹(V)."""
    u = (y - grid[SHEAR] * v - grid[U_CENTRE]) / grid[U_SCALE]
    i = math.asinh(u) / grid[U_STEP] + grid[U_MIDDLE]
    j = math.asinh((v - grid[V_CENTRE]) / grid[V_SCALE]) / grid[V_STEP] + grid[V_MIDDLE]
    i = min(max(i, 0.0), layer.shape[0] - 1.000001)
    j = min(max(j, 0.0), layer.shape[1] - 1.000001)
    m, n = int(i), int(j)
    i, j = i - m, j - n
    low = (1.0 - j) * layer[m, n] + j * layer[m, n + 1]
    high = (1.0 - j) * layer[m + 1, n] + j * layer[m + 1, n + 1]
    return Phi((1.0 - i) * low + i * high)


@kernel
def outcome(k, y, v, pending, base, along, z, m):  # type: ignore[no-untyped-def]
    """v* after a decision with a_E = base + z·along, and whether the crash is then certain."""
    a = np.empty(m.d)
    for j in range(m.d):
        a[j] = base[j] + z * along[j]
    after = k // m.frames + 1
    last = after == m.layers.shape[0] - 1
    _, y, v, pending, crashed, _ = advance(k, y, v, pending, 0.0, a, m.poses, m.q, False)
    if crashed or (pending and not last):
        return 1.0, True
    if last:
        return 0.0, False
    return interpolate(y, v, m.layers[after], m.grids[after]), False


@kernel
def fill(k, y, v, pending, z, E, width, m, cells):  # type: ignore[no-untyped-def]
    """Fill the cells of the line through z along axis 1, none wider than `width`; return how
    many there are (0 where the line misses the box) and their total mass."""
    d, edges, mass = m.d, cells.edges, cells.mass
    base, along = np.zeros(d), np.zeros(d)
    low, high = -REACH, REACH
    for j in range(d):
        along[j] = E[0, j] * m.std
        for i in range(1, d):
            base[j] += z[i] * E[i, j] * m.std
        if abs(along[j]) < 1e-12:
            if abs(base[j]) > m.box:
                return 0, 0.0
        else:
            first, second = (-m.box - base[j]) / along[j], (m.box - base[j]) / along[j]
            low, high = max(low, min(first, second)), min(high, max(first, second))
    if low >= high:
        return 0, 0.0
    halves = 2 * max(1, math.ceil((high - low) / width))
    h = (high - low) / halves
    f, sure = np.empty(3), np.empty(3, np.bool_)
    f[2], sure[2] = outcome(k, y, v, pending, base, along, low, m)
    edges[0] = low
    count = 0
    for c in range(halves // 2):
        left = low + 2 * c * h
        f[0], sure[0] = f[2], sure[2]
        for i in range(1, 3):
            f[i], sure[i] = outcome(k, y, v, pending, base, along, left + i * h, m)
        if sure[0] == sure[1] and sure[1] == sure[2]:
            edges[count + 1] = left + 2 * h
            mass[count] = _whole(left, h, f, sure[0])
            count += 1
            continue
        for i in range(2):
            p, r, f_p, f_r = left + i * h, left + (i + 1) * h, f[i], f[i + 1]
            if sure[i] != sure[i + 1]:
                for _ in range(BISECTIONS):
                    mid = 0.5 * (p + r)
                    value, certain = outcome(k, y, v, pending, base, along, mid, m)
                    if certain == sure[i]:
                        p, f_p = mid, value
                    else:
                        r, f_r = mid, value
                edges[count + 1] = 0.5 * (p + r)
                mass[count] = _part(left + i * h, edges[count + 1], f[i], f_p, sure[i])
                count += 1
                p, f_p = edges[count], f_r
            edges[count + 1] = left + (i + 1) * h
            mass[count] = _part(p, edges[count + 1], f_p, f[i + 1], sure[i + 1])
            count += 1
    G = 0.0
    for c in range(count):
        G += mass[c]
    return count, G


@kernel
def _whole(left, h, f, sure):  # type: ignore[no-untyped-def]
    """Simpson's rule over a cell of width 2h without a jump."""
    normal = Phi(-left) - Phi(-left - 2 * h)
    if sure:
        return normal
    g0, g1, g2 = phi(left), 4.0 * phi(left + h), phi(left + 2 * h)
    if f[1] < 0.5:
        return (f[0] * g0 + f[1] * g1 + f[2] * g2) * h / 3.0
    # the complement is small: V = 1 must come out as 1
    rest = ((1.0 - f[0]) * g0 + (1.0 - f[1]) * g1 + (1.0 - f[2]) * g2) * h / 3.0
    return max(normal - rest, 0.0)


@kernel
def _part(p, r, f_p, f_r, sure):  # type: ignore[no-untyped-def]
    """The trapezoidal rule on one side of a jump."""
    if sure:
        return Phi(-p) - Phi(-r)
    return 0.5 * (f_p * phi(p) + f_r * phi(r)) * (r - p)
