"""π_E,θ: a conditional masked autoregressive flow over whitened disturbances (zuko)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
import zuko

from apeval.problem.types import FloatArray

Tensor = torch.Tensor
_LOG_2PI = float(np.log(2.0 * np.pi))


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums in torch depend on the number of threads; results must not."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Flow(torch.nn.Module):
    """z = shift + scale · g_θ(ε | C), ε ~ N(0, I): zuko's MAF (affine) or NSF (spline) g_θ.

    The last layer of every conditioner starts at zero, which makes g_θ the identity: before any
    training the flow is the warm start π̂_E = N(shift, scale²) exactly, at every context.
    """

    shift: Tensor
    scale: Tensor

    def __init__(
        self,
        d_E: int,
        d_context: int,
        kind: str,
        transforms: int,
        hidden: int,
        shift: FloatArray,
        scale: FloatArray,
        seed: int,
    ) -> None:
        super().__init__()
        family = {"affine": zuko.flows.MAF, "spline": zuko.flows.NSF}[kind]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            flow = family(
                d_E,
                d_context,
                transforms=transforms,
                hidden_features=(hidden, hidden),
                activation=torch.nn.Tanh,
            )
        self.flow = flow.double()
        for transform in self.flow.transform.transforms:
            last = transform.hyper[-1]
            torch.nn.init.zeros_(last.weight)
            torch.nn.init.zeros_(last.bias)
        self.register_buffer("shift", torch.as_tensor(shift, dtype=torch.float64))
        self.register_buffer("scale", torch.as_tensor(scale, dtype=torch.float64))
        self.d_E = d_E

    def normalise(self, c: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """ε = g_θ⁻¹(y | C), (n, d), and log |det ∂ε/∂y|, (n,); y = (z − shift)/scale."""
        eps, ladj = self.flow(c).transform.call_and_ladj(y)
        return eps, ladj

    def log_prob(self, c: Tensor, z: Tensor) -> Tensor:
        """log π_E,θ(z | C), in whitened coordinates, (n,)."""
        eps, ladj = self.normalise(c, (z - self.shift) / self.scale)
        return self.log_base(eps) + ladj - torch.log(self.scale).sum()

    def log_base(self, eps: Tensor) -> Tensor:
        """log p_Z(ε) = log N(ε; 0, I), (n,)."""
        return -0.5 * eps.square().sum(dim=1) - 0.5 * self.d_E * _LOG_2PI

    def generate(self, c: Tensor, eps: Tensor) -> Tensor:
        """z = shift + scale · g_θ(ε | C)."""
        z: Tensor = self.shift + self.scale * self.flow(c).transform.inv(eps)
        return z

    def frozen(self) -> Flow:
        """A copy that no longer learns."""
        return copy.deepcopy(self).requires_grad_(False)
