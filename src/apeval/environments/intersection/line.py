"""One decision's worth of failure probability, integrated along lines in action space.

With z = a_E / σ whitened and axis 1 along σ∘x_E, the acceleration depends almost only on z_1:
along it the integrand jumps (crash or no crash) and gets fine cells split at the jumps; along
the other axes it is smooth. The cells also are the zero-variance adversary's density in z_1.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from apeval.environments.intersection.state import POSE_COS, POSE_SIN, POSE_V, POSE_X, POSE_Y
from apeval.environments.intersection.twin import (
    COS,
    DISTANCE,
    DT,
    FRAMES,
    LANE_X,
    REFERENCE,
    SIN,
    SPEED,
    _touch,
    advance,
)

REACH = 8.5
"""Lines end at |z_1| = 8.5 (nominal tail 1e-17)."""
BISECTIONS = 14
PROBIT_LIMIT = 9.0
"""Layers hold Φ⁻¹(V) cut to ± this, beyond the reach of a line: a deeper floor would drag
interpolated values down wherever V jumps."""

#: A layer's grid: u = y − shear·v = centre + scale·sinh(step·(i − middle)), then v likewise.
U_CENTRE, U_SCALE, U_STEP, U_MIDDLE, V_CENTRE, V_SCALE, V_STEP, V_MIDDLE, SHEAR = range(9)


@njit(cache=True, inline="always")
def Phi(z):  # type: ignore[no-untyped-def]
    """Standard normal distribution function."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


@njit(cache=True, inline="always")
def phi(z):  # type: ignore[no-untyped-def]
    """Standard normal density."""
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


@njit(cache=True)
def doomed(k, y, v, poses, q):  # type: ignore[no-untyped-def]
    """Whether the bodies overlap, or an impact is pending, after sub-step k."""
    dx, dy = q[LANE_X] - poses[k, POSE_X], y - poses[k, POSE_Y]
    now, will = _touch(
        dx, dy, poses[k, POSE_COS], poses[k, POSE_SIN], q[COS], q[SIN], poses[k, POSE_V], v, q[DT]
    )
    return now or will


@njit(cache=True)
def axes(k, y, v, d, poses, q):  # type: ignore[no-untyped-def]
    """Orthonormal rows, the first along x_E in the middle of the decision at constant speed
    (all components have the same σ). Householder reflection of the first unit vector."""
    half = int(q[FRAMES]) // 2
    k, y = k + half, y + v * q[DT] * half
    c, s = poses[k, POSE_COS], poses[k, POSE_SIN]
    dx, dy = q[LANE_X] - poses[k, POSE_X], y - poses[k, POSE_Y]
    e = np.zeros(d)
    e[0] = min(max((c * dx + s * dy) / q[DISTANCE], -1.0), 1.0)
    e[1] = min(max((c * dy - s * dx) / q[DISTANCE], -1.0), 1.0)
    if d == 3:
        e[2] = min(max((q[REFERENCE] - v) / q[SPEED], -1.0), 1.0)
    E = np.eye(d)
    norm = math.sqrt(np.sum(e * e))
    if norm < 1e-9:
        return E
    e /= norm
    w = e.copy()
    w[0] -= 1.0
    length = np.sum(w * w)
    if length > 1e-18:
        for i in range(d):
            for j in range(d):
                E[i, j] -= 2.0 * w[i] * w[j] / length
    return E


@njit(cache=True)
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


@njit(cache=True)
def outcome(k, y, v, pending, a, poses, q, last, layer, grid):  # type: ignore[no-untyped-def]
    """v* after one decision with a_E = a, and whether the crash is then certain."""
    _, y, v, pending, crashed, _ = advance(k, y, v, pending, 0.0, a, poses, q, False)
    if crashed or (pending and not last):
        return 1.0, True
    if last:
        return 0.0, False
    return interpolate(y, v, layer, grid), False


@njit(cache=True)
def cells(k, y, v, pending, z, E, sigma, box, width, poses, q, last, layer, grid, edges, mass):  # type: ignore[no-untyped-def]
    """Fill `edges` and `mass` with the cells of the line through z along axis 1, where mass is
    ∫ φ(z_1) v*(z_1) dz_1 over a cell; return how many (0 where the line misses the box)."""
    d = E.shape[0]
    a, base = np.empty(d), np.zeros(d)
    low, high = -REACH, REACH
    for j in range(d):
        for i in range(1, d):
            base[j] += z[i] * E[i, j] * sigma
        slope = E[0, j] * sigma
        if abs(slope) < 1e-12:
            if abs(base[j]) > box:
                return 0
        else:
            first, second = (-box - base[j]) / slope, (box - base[j]) / slope
            low, high = max(low, min(first, second)), min(high, max(first, second))
    if low >= high:
        return 0
    halves = 2 * max(1, math.ceil((high - low) / width))
    h = (high - low) / halves
    count = 0
    edges[0] = low
    f_left, s_left = 0.0, False
    f = np.empty(3)
    sure = np.empty(3, np.bool_)
    for c in range(halves // 2):
        left = low + 2 * c * h
        for m in range(3):
            if m == 0 and c > 0:
                f[0], sure[0] = f_left, s_left
                continue
            for j in range(d):
                a[j] = base[j] + (left + m * h) * E[0, j] * sigma
            f[m], sure[m] = outcome(k, y, v, pending, a, poses, q, last, layer, grid)
        f_left, s_left = f[2], sure[2]
        right = left + 2 * h
        if sure[0] == sure[1] and sure[1] == sure[2]:
            count += 1
            edges[count] = right
            if sure[0]:
                mass[count - 1] = Phi(-left) - Phi(-right)
            else:
                g0, g1, g2 = phi(left), 4.0 * phi(left + h), phi(right)
                if f[1] < 0.5:
                    mass[count - 1] = (f[0] * g0 + f[1] * g1 + f[2] * g2) * h / 3.0
                else:  # the complement is small: V = 1 must come out as 1
                    rest = ((1.0 - f[0]) * g0 + (1.0 - f[1]) * g1 + (1.0 - f[2]) * g2) * h / 3.0
                    mass[count - 1] = max(Phi(-left) - Phi(-right) - rest, 0.0)
            continue
        for m in range(2):
            p, r = left + m * h, left + (m + 1) * h
            f_p, f_r = f[m], f[m + 1]
            if sure[m] != sure[m + 1]:
                for _ in range(BISECTIONS):
                    mid = 0.5 * (p + r)
                    for j in range(d):
                        a[j] = base[j] + mid * E[0, j] * sigma
                    value, certain = outcome(k, y, v, pending, a, poses, q, last, layer, grid)
                    if certain == sure[m]:
                        p, f_p = mid, value
                    else:
                        r, f_r = mid, value
                jump = 0.5 * (p + r)
                start = left + m * h
                count += 1
                edges[count] = jump
                mass[count - 1] = _part(start, jump, f[m], f_p, sure[m])
                count += 1
                edges[count] = left + (m + 1) * h
                mass[count - 1] = _part(jump, edges[count], f_r, f[m + 1], sure[m + 1])
            else:
                count += 1
                edges[count] = r
                mass[count - 1] = _part(p, r, f_p, f_r, sure[m])
    return count


@njit(cache=True, inline="always")
def _part(p, r, f_p, f_r, sure):  # type: ignore[no-untyped-def]
    if sure:
        return Phi(-p) - Phi(-r)
    return 0.5 * (f_p * phi(p) + f_r * phi(r)) * (r - p)
