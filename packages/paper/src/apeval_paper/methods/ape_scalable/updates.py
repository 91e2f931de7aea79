"""Gradient descent on θ: Algorithm 3's reverse KL, the warm start, weighted likelihood."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from apeval.learn.networks.flow import Flow
from apeval.problem.types import FloatArray
from apeval_paper.methods.ape_scalable.flow_target import FlowTarget

Tensor = torch.Tensor
_CLIP = 10.0  # gradient norm
_ROWS = 1_024  # per gradient step
PRETRAIN_STEPS, _PRETRAIN_ROWS = 300, 256


class Optimiser:
    """Adam on θ. A loss that is not finite is refused, and θ put back: `failed` counts these."""

    def __init__(self, flow: Flow, rate: float, beta_theta: float) -> None:
        self.flow, self.beta_theta = flow, beta_theta
        self.adam = torch.optim.Adam(flow.parameters(), lr=rate)
        self.failed = 0

    def descend(self, loss_of: Callable[[], Tensor], steps: int) -> bool:
        """Gradient steps to θ′, then θ ← β_θ θ′ + (1 − β_θ) θ. Whether θ changed."""
        before = [p.detach().clone() for p in self.flow.parameters()]
        for _ in range(steps):
            loss = loss_of()
            self.adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            norm = torch.nn.utils.clip_grad_norm_(self.flow.parameters(), _CLIP)
            if not (torch.isfinite(loss) and torch.isfinite(norm)):
                self._put_back(before)
                return False
            self.adam.step()
        with torch.no_grad():
            for p, old in zip(self.flow.parameters(), before, strict=True):
                p.copy_(self.beta_theta * p + (1.0 - self.beta_theta) * old)
        return True

    def _put_back(self, before: list[Tensor]) -> None:
        self.failed += 1
        self.adam.state.clear()
        with torch.no_grad():
            for p, old in zip(self.flow.parameters(), before, strict=True):
                p.copy_(old)


def reverse_kl(flow: Flow, target: FlowTarget, samples: int, rng: np.random.Generator) -> Tensor:
    """Eq. NF_loss: E_{π_E,θ}[log π_E,θ − log p_E] with M samples per context."""
    eps = torch.from_numpy(rng.standard_normal((samples * len(target.c), flow.d_E)))
    c = target.c.repeat(samples, 1)
    z = flow.generate(c, eps)
    return (flow.log_prob(c, z) - target.log_prob(z)).mean()


def pretrain(
    flow: Flow, contexts: FloatArray, shift: FloatArray, scale: FloatArray, rng: np.random.Generator
) -> Iterator[Tensor]:
    """Losses of Algorithm 1's first line: −E log π_E,θ(z | C), z ~ π̂_E, C around those given."""
    width = contexts.std(axis=0) + 0.5
    for _ in range(PRETRAIN_STEPS):
        c = contexts[rng.integers(len(contexts), size=_PRETRAIN_ROWS)]
        c = c + width * rng.standard_normal(c.shape)
        z = shift + scale * rng.standard_normal((_PRETRAIN_ROWS, flow.d_E))
        yield -flow.log_prob(torch.from_numpy(c), torch.from_numpy(z)).mean()


def likelihood(
    flow: Flow,
    c: FloatArray,
    z: FloatArray,
    weight: FloatArray,
    ess: FloatArray,
    shrinkage: float,
    rng: np.random.Generator,
) -> Callable[[], Tensor]:
    """Loss −Σ w log π_E,θ(z | C) over remembered rows, Σ w = 1 per decision.

    With an effective number of data `ess` behind each row and κ = `shrinkage`: disturbances are
    blurred by √(1/(ess + 1)), and κ/(2·ess) · E‖g_θ⁻¹(y) − y‖², y ~ N(0, I), draws π_E,θ to its
    warm start. For a Gaussian mean that is the estimate ess·z̄/(ess + κ).
    """
    total = float(weight.sum())
    shift, scale = flow.shift.numpy(), flow.scale.numpy()

    def loss() -> Tensor:
        rows: slice | np.ndarray[tuple[int], np.dtype[np.int64]] = slice(None)
        w = weight
        if len(z) > _ROWS:
            rows = rng.choice(len(z), _ROWS, p=weight / total)
            w = np.full(_ROWS, total / _ROWS)
        n, d = z[rows].shape
        blur = rng.standard_normal((n, d)) / np.sqrt(ess[rows] + 1.0)[:, None]
        y_data = (z[rows] + blur - shift) / scale
        y_free = rng.standard_normal((n, d))
        C, W = torch.from_numpy(c[rows]), torch.from_numpy(w)
        pull = torch.from_numpy(0.5 * shrinkage / ess[rows])
        y = torch.from_numpy(np.concatenate([y_data, y_free]))
        eps, ladj = flow.normalise(C.repeat(2, 1), y)
        log_q = flow.log_base(eps[:n]) + ladj[:n]  # up to the constant log scale
        away = (eps[n:] - y[n:]).square().sum(dim=1)
        return (W * (pull * away - log_q)).sum()

    return loss
