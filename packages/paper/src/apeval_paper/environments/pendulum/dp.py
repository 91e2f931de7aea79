"""v*(θ, ω, t) by dynamic programming, and importance sampling with the twist that it gives.

v*_t(s) = E[v*_{t+1}(s')] backwards from the horizon, on a grid over (θ, ω), interpolated in
Φ⁻¹(V). Falling is decided where θ' passes ± π/4, which is linear in the disturbance: the
continuous case integrates between the two crossings only and adds the tails in closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from scipy.special import ndtri

from apeval.problem.types import FloatArray
from apeval_paper.environments.pendulum.dynamics import (
    DT,
    LIMIT,
    START,
    STD,
    STEPS,
    TOP_SPEED,
    TORQUE,
    VALUES,
    discrete_probabilities,
)

_PROBIT_LIMIT = 8.2  # Φ(−8.2) = 1.2e-16
_REACH = 7.5  # standard deviations that are sampled; beyond lies 6e-14
_CELLS = 75
_DEFENSIVE = 1e-3
_CHUNK = 50_000
_TILES = 40  # of the rectangle of starts, along either side
_START_THETA, _START_OMEGA = float(START[0]), float(START[1])


def _kernel(function: Any) -> Any:
    return njit(cache=True, error_model="numpy")(function)


@_kernel
def _Phi(z):  # type: ignore[no-untyped-def]
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


@_kernel
def _drift(theta, omega):  # type: ignore[no-untyped-def]
    """ω' without disturbance, before it is clipped."""
    side = 1.0 if theta > 0.0 else (-1.0 if theta < 0.0 else 0.0)
    torque = -omega - side * math.sqrt(60.0 * (1.0 - math.cos(theta)))
    torque = min(max(torque, -TORQUE), TORQUE)
    return omega + DT * (15.0 * math.sin(theta) + 3.0 * torque)


@_kernel
def _look_up(layer, theta, omega):  # type: ignore[no-untyped-def]
    """v* at a state, 1 where it has fallen."""
    if abs(theta) > LIMIT:
        return 1.0
    n, m = layer.shape
    i = (theta + LIMIT) / (2.0 * LIMIT) * (n - 1)
    j = (min(max(omega, -TOP_SPEED), TOP_SPEED) + TOP_SPEED) / (2.0 * TOP_SPEED) * (m - 1)
    i0, j0 = min(int(i), n - 2), min(int(j), m - 2)
    f, g = i - i0, j - j0
    low = (1.0 - g) * layer[i0, j0] + g * layer[i0, j0 + 1]
    high = (1.0 - g) * layer[i0 + 1, j0] + g * layer[i0 + 1, j0 + 1]
    return _Phi((1.0 - f) * low + f * high)


@_kernel
def _expectation(layer, theta, omega, nodes, weights):  # type: ignore[no-untyped-def]
    """E[v*(s')] under the Gaussian disturbance."""
    drift, push = _drift(theta, omega), DT * 3.0 * STD
    low = ((-LIMIT - theta) / DT - drift) / push
    high = ((LIMIT - theta) / DT - drift) / push
    total = _Phi(low) + _Phi(-high)
    a, b = max(low, -_REACH), min(high, _REACH)
    if a < b:
        half = 0.5 * (b - a)
        for k in range(len(nodes)):
            z = a + half * (nodes[k] + 1.0)
            after = drift + push * z
            density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
            inside = min(max(theta + DT * after, -LIMIT), LIMIT)
            total += half * weights[k] * density * _look_up(layer, inside, after)
    return total


@_kernel
def _expectation_discrete(layer, theta, omega, p):  # type: ignore[no-untyped-def]
    drift, total = _drift(theta, omega), 0.0
    for k in range(len(p)):
        after = drift + DT * 3.0 * VALUES[k]
        total += p[k] * _look_up(layer, theta + DT * after, after)
    return total


@_kernel
def _layer(after, nodes, weights, discrete):  # type: ignore[no-untyped-def]
    n, m = after.shape
    V = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            theta = -LIMIT + 2.0 * LIMIT * i / (n - 1)
            omega = -TOP_SPEED + 2.0 * TOP_SPEED * j / (m - 1)
            if discrete:
                V[i, j] = _expectation_discrete(after, theta, omega, weights)
            else:
                V[i, j] = _expectation(after, theta, omega, nodes, weights)
    return V


@dataclass(frozen=True)
class PendulumSolution:
    """Φ⁻¹(v*) per decision, (T + 1, nodes along θ, nodes along ω)."""

    layers: FloatArray
    discrete: bool

    def v0(self, nodes: int = 40) -> float:
        """v* averaged over the uniform start."""
        u, w = np.polynomial.legendre.leggauss(nodes)
        v = sum(
            w[i] * w[j] * _look_up(self.layers[0], u[i] * _START_THETA, u[j] * _START_OMEGA)
            for i in range(nodes)
            for j in range(nodes)
        )
        return float(v) / 4.0


def solve(discrete: bool, theta: int = 401, omega: int = 1601) -> PendulumSolution:
    """The recursion on a grid; seconds."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    if discrete:
        weights = discrete_probabilities()
    layers = np.full((STEPS + 1, theta, omega), -_PROBIT_LIMIT)
    for t in range(STEPS - 1, -1, -1):
        V = _layer(layers[t + 1], nodes, weights, discrete)
        layers[t] = np.clip(ndtri(np.clip(V, 0.0, 1.0)), -_PROBIT_LIMIT, _PROBIT_LIMIT)
    return PendulumSolution(layers, discrete)


@_kernel
def _episodes(layers, p, discrete, starts, u):  # type: ignore[no-untyped-def]
    """p/q of each failing episode (0 for the others) under q ∝ p·(v*(s') + a defensive part)."""
    n, T = u.shape[0], layers.shape[0] - 1
    cells = len(p) if discrete else _CELLS
    width = 2.0 * _REACH / _CELLS
    mass = np.zeros(cells)
    value = np.zeros(cells)
    weight = np.zeros(n)
    for i in range(n):
        theta, omega, log_w = starts[i, 0], starts[i, 1], 0.0
        for t in range(T):
            drift = _drift(theta, omega)
            if discrete:
                for k in range(cells):
                    after = drift + DT * 3.0 * VALUES[k]
                    mass[k] = p[k]
                    value[k] = _look_up(layers[t + 1], theta + DT * after, after)
            else:
                # the mean of a cell's two ends: a fall inside the cell is never overlooked
                after = drift - DT * 3.0 * STD * _REACH
                end = _look_up(layers[t + 1], theta + DT * after, after)
                for k in range(cells):
                    z = -_REACH + width * (k + 0.5)
                    mass[k] = width * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
                    after = drift + DT * 3.0 * STD * (z + 0.5 * width)
                    value[k] = 0.5 * end
                    end = _look_up(layers[t + 1], theta + DT * after, after)
                    value[k] += 0.5 * end
            mean = 0.0
            for k in range(cells):
                mean += mass[k] * value[k]
            total = 0.0
            for k in range(cells):
                value[k] = mass[k] * (value[k] + _DEFENSIVE * mean)
                total += value[k]
            left, k = u[i, t, 0] * total, 0
            while k < cells - 1 and left >= value[k]:
                left -= value[k]
                k += 1
            q = value[k] / total
            if discrete:
                x = VALUES[k]
                log_w += math.log(mass[k] / q)
            else:
                z = -_REACH + width * (k + u[i, t, 1])
                x = STD * z
                density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
                log_w += math.log(density * width / q)
            after = drift + DT * 3.0 * x
            theta += DT * after
            omega = min(max(after, -TOP_SPEED), TOP_SPEED)
            if abs(theta) > LIMIT:
                weight[i] = math.exp(log_w) * (1.0 if theta > 0.0 else -1.0)
                break
    return weight


def importance_sampling(solution: PendulumSolution, n: int, seed: int) -> FloatArray:
    """n weights p/q of failures (0: no failure); negative for a fall to the left."""
    rng = np.random.default_rng(seed)
    p = discrete_probabilities()
    chunks = []
    for first in range(0, n, _CHUNK):
        m = min(_CHUNK, n - first)
        starts, ratio = _starts(solution, m, rng)
        u = rng.random((m, STEPS, 2))
        chunks.append(ratio * _episodes(solution.layers, p, solution.discrete, starts, u))
    weights: FloatArray = np.concatenate(chunks)
    return weights


def _starts(
    solution: PendulumSolution, n: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Starts from the tiles of the rectangle by their v*, and the ratio p/q of each."""
    middle = (np.arange(_TILES) + 0.5) / _TILES * 2.0 - 1.0
    V = [
        [_look_up(solution.layers[0], a * _START_THETA, b * _START_OMEGA) for b in middle]
        for a in middle
    ]
    q = np.ravel(V) / np.sum(V)
    tile = rng.choice(_TILES**2, n, p=q)
    corner = np.stack([tile // _TILES, tile % _TILES], axis=1)
    starts: FloatArray = START * ((corner + rng.random((n, 2))) / _TILES * 2.0 - 1.0)
    return starts, 1.0 / (_TILES**2 * q[tile])
