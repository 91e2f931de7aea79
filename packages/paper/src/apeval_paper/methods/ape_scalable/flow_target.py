"""The target of π_E,θ as printed: Eqs. NF_point_target and NF_target, in whitened coordinates.

σ^d times a density is the same number in every affine coordinate, so β and the bump mean in z
what they mean in a_E, with σ in nominal standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from apeval.learn.networks.flow import Flow
from apeval.problem.types import FloatArray, IntArray

Tensor = torch.Tensor
BETA_LOW = -0.99  # 1 + β must stay positive
_LEAST = 1e-9  # of π_E,θ, that the target keeps where a negative β would take it below zero


def dense_rewards(t: IntArray, length: IntArray, gamma_r: float) -> FloatArray:
    """r̂ = γ_r^(τ − n) at the n-th of τ transitions of a failing episode.

    >>> dense_rewards(np.array([0, 1, 2]), np.array([3, 3, 3]), 0.5).tolist()
    [0.25, 0.5, 1.0]
    """
    return np.asarray(gamma_r ** (length - 1.0 - t), np.float64)


def point_target(
    density: FloatArray, r_hat: FloatArray, v_next: FloatArray, v: FloatArray, v_floor: float
) -> FloatArray:
    """Eq. NF_point_target: π̃_E(a_E,n | C_n) = π_E · (r̂ + v(s')) / v(s), v(s) floored."""
    target: FloatArray = density * (r_hat + v_next) / np.maximum(v, v_floor)
    return target


def bump_weight(target: FloatArray, density: FloatArray, sigma: float, d: int) -> FloatArray:
    """β = (√(2π) σ)^d (π̃_E − π_E,θ).

    As printed the constant is that of d = 1: only with the power d does the bump's peak make up
    the difference of the densities.
    """
    beta: FloatArray = (np.sqrt(2.0 * np.pi) * sigma) ** d * (target - density)
    return beta


def keep_finite(beta: FloatArray, limit: float) -> FloatArray:
    """β in (−1, limit]: below −1 the target would not be a density."""
    finite = np.nan_to_num(beta, nan=0.0, posinf=limit, neginf=BETA_LOW)
    return np.clip(finite, BETA_LOW, limit)


@dataclass(frozen=True)
class FlowTarget:
    """p_E(· | C_n) of Eq. NF_target for n contexts; π_E,θ in it is a frozen copy."""

    flow: Flow
    c: Tensor
    center: Tensor
    """a_E,n, whitened, (n, d)."""
    beta: Tensor
    sigma: float

    def log_prob(self, z: Tensor) -> Tensor:
        """log p_E at M points per context, (M·n, d) with contexts running fastest."""
        M, d = len(z) // len(self.c), z.shape[1]
        log_pi: Tensor = self.flow.log_prob(self.c.repeat(M, 1), z)
        off = (z - self.center.repeat(M, 1)) / self.sigma
        log_bump = -0.5 * off.square().sum(dim=1) - d * float(
            np.log(np.sqrt(2 * np.pi) * self.sigma)
        )
        beta = self.beta.repeat(M)
        ratio = torch.exp(torch.clamp(log_bump - log_pi, max=600.0))
        inside = torch.clamp(1.0 + beta * ratio, min=_LEAST)
        return log_pi + torch.log(inside) - torch.log1p(beta)
