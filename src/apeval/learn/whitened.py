"""Whitened disturbances: z = Φ⁻¹(F(a)) per component, so that the nominal of z is N(0, I).

F is the nominal's own CDF: for a Gaussian z = (a − mean)/std, for a law with bounded support a
bijection of its open interval onto R; each law knows its own. A density q over z gives
q(a)/π_E,gt(a) = q(z)/φ(z): weights need no Jacobian.
"""

from __future__ import annotations

import numpy as np

from apeval.problem.laws import Disturbance, Law
from apeval.problem.types import Array, FloatArray

_LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))


def can_whiten(disturbance: Disturbance | None) -> bool:
    """Whether the disturbance's laws have whitened coordinates (no disturbance at all is no
    obstacle).

    Args:
        disturbance: A nominal disturbance, or None.

    Returns:
        Whether methods can learn in whitened coordinates.
    """
    return disturbance is None or (disturbance.learnable and not disturbance.discrete)


def log_phi(z: FloatArray) -> FloatArray:
    """log N(z; 0, I), row by row.

    Args:
        z: Shape (n, d).

    Returns:
        Shape (n,).

    Examples:
        >>> log_phi(np.zeros((1, 2))).round(4).tolist()
        [-1.8379]
    """
    log_p: FloatArray = -0.5 * (z * z).sum(axis=-1) - z.shape[-1] * _LOG_SQRT_2PI
    return log_p


def to_z(law: Law, a: Array) -> FloatArray:
    """Disturbances (n, d) to whitened ones.

    Args:
        law: The nominal law, 1 or n rows.
        a: Shape (n, d).

    Returns:
        Shape (n, d).
    """
    return law.to_z(a)


def to_action(law: Law, z: FloatArray) -> FloatArray:
    """Whitened disturbances (n, d) to real ones, never outside the support.

    Args:
        law: The nominal law, 1 or n rows.
        z: Shape (n, d).

    Returns:
        Shape (n, d).
    """
    return law.to_action(z)


def log_density(law: Law, a: Array, z: FloatArray, log_q: FloatArray) -> FloatArray:
    """log q(a) of a density over z: the Jacobian dz/da is π_E,gt(a) / N(z; 0, I).

    Args:
        law: The nominal law, 1 or n rows.
        a: Disturbances, (n, d).
        z: The same in whitened coordinates, (n, d).
        log_q: Log-density of z, (n,).

    Returns:
        Log-density of a, (n,).
    """
    density: FloatArray = log_q + law.log_prob(a) - log_phi(z)
    return density
