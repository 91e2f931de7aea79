"""Adversaries of `ape-scalable`: its warm start π̂_E and the flow π_E,θ, in whitened coordinates."""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import ndtri

from apeval.learn.networks.flow import Flow, Tensor, one_thread
from apeval.learn.whitened import (
    log_density,
    log_phi,
    to_action,
    to_z,
)
from apeval.problem.types import Array, FloatArray
from apeval.simulate.adversary import Adversary, Situation
from apeval_paper.methods.ape_scalable.context import Context


class FlowAdversary(Adversary):
    """A frozen flow that samples episodes."""

    def __init__(self, flow: Flow, context: Context) -> None:
        self.flow, self.context = flow.frozen(), context

    def sample(self, now: Situation, u: FloatArray) -> Array:
        with one_thread(), torch.no_grad():
            z = self.flow.generate(self._c(now), torch.from_numpy(ndtri(u))).numpy()
        return to_action(now.law, z)

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        z = to_z(now.law, a_E)
        with one_thread(), torch.no_grad():
            log_q_z = self.flow.log_prob(self._c(now), torch.from_numpy(z)).numpy()
        return log_density(now.law, a_E, z, log_q_z)

    def _c(self, now: Situation) -> Tensor:
        return torch.from_numpy(self.context(now.s, now.a_A, now.t))


class WarmStart(Adversary):
    """π̂_E = N(shift, scale²) in whitened coordinates, at every context."""

    def __init__(self, shift: FloatArray, scale: FloatArray) -> None:
        self.shift, self.scale = shift, scale

    def sample(self, now: Situation, u: FloatArray) -> Array:
        return to_action(now.law, self.shift + self.scale * ndtri(u))

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        z = to_z(now.law, a_E)
        log_q_z = log_phi((z - self.shift) / self.scale)
        return log_density(now.law, a_E, z, log_q_z - float(np.log(self.scale).sum()))
