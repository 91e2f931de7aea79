"""Feedback Gaussians bent by a conditional spline flow: z = m(x, t) + L_t · g_θ(ε | x, t).

g_θ starts as the identity, so that with few failures this is the feedback of `feedback.py`, and
it is kept only where failures that it was not trained on speak for it. For failures that lie on
curves or in several clusters per decision; training takes seconds, not milliseconds.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from scipy.special import ndtri

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.feedback import fit_feedback
from apeval.learn.ape.gaussian_part import GaussianPart
from apeval.learn.ape.part_learner import PartLearner
from apeval.learn.ape.proposal_part import ContinuousPart, ProposalPart
from apeval.learn.ape.regression import Smoothness
from apeval.learn.networks.flow import Flow, one_thread
from apeval.problem.types import FloatArray, IntArray

_TRANSFORMS, _HIDDEN, _SEED = 1, 16, 0
_STEPS, _PATIENCE, _RATE, _DECAY = 150, 20, 1e-2, 1e-4
_HELD_OUT = 4  # every fourth failure judges what the others taught
_FEWEST = 20.0  # effective failures below which there is nothing to bend by


@dataclass(frozen=True, eq=False)
class Spline(ContinuousPart):
    """A feedback part and the flow that bends what it leaves unexplained."""

    base: GaussianPart
    flow: Flow
    dof: float = field(default=0.0)

    def row_ratio(self, rows: DecisionRows) -> FloatArray:
        y, log_det = self.base.standardise(rows)
        with one_thread(), torch.no_grad():
            eps, ladj = self.flow.normalise(self._context(rows.x, rows.t), torch.from_numpy(y))
        ratio: FloatArray = 0.5 * ((rows.e**2).sum(axis=1) - (eps.numpy() ** 2).sum(axis=1))
        ratio += ladj.numpy() - log_det
        return ratio

    def start_ratio(self, z_0: FloatArray) -> FloatArray:
        return self.base.start_ratio(z_0)

    def start(self, u: FloatArray) -> FloatArray:
        return self.base.start(u)

    def draw(
        self, x: FloatArray, t: IntArray, u: FloatArray, whole: FloatArray | None
    ) -> FloatArray:
        with one_thread(), torch.no_grad():
            y = self.flow.generate(self._context(x, t), torch.from_numpy(ndtri(u))).numpy()
        return self.base.push(x, t, y)

    def relaxed(self, eta: float) -> Spline:
        return self if eta == 1.0 else replace(self, base=self.base.relaxed(eta))

    def _context(self, x: FloatArray, t: IntArray) -> torch.Tensor:
        return torch.from_numpy(context(x, t, len(self.base.C)))


def context(x: FloatArray, t: IntArray, times: int) -> FloatArray:
    """What the flow sees: the scaled state and the scaled time, (n, f+1)."""
    return np.concatenate([x, (t / max(1, times - 1))[:, None]], axis=1)


def fit_bent(
    rows: DecisionRows, w: FloatArray, times: int, smooth: Smoothness | None
) -> ProposalPart:
    """A Gaussian part, bent as far as failures that it was not trained on speak for it."""
    return bend(fit_feedback(rows, w, times, smooth)[0], rows, w, times)


def bend(part: GaussianPart, rows: DecisionRows, w: FloatArray, times: int) -> ProposalPart:
    """The part with a flow trained on three quarters of the failures, if the last quarter is
    likelier under it; otherwise the part as it was."""
    if float(w.sum()) < _FEWEST:
        return part
    judges = np.arange(rows.n)[rows.episode] % _HELD_OUT == _HELD_OUT - 1
    W = w[rows.episode]
    if not W[judges].any() or not W[~judges].any():
        return part
    d = rows.e.shape[1]
    flow = Flow(
        d, rows.x.shape[1] + 1, "spline", _TRANSFORMS, _HIDDEN, np.zeros(d), np.ones(d), _SEED
    )
    y = torch.from_numpy(part.standardise(rows)[0])
    c = torch.from_numpy(context(rows.x, rows.t, times))
    weight = torch.from_numpy(W / W.sum())
    taught, judged = torch.from_numpy(~judges), torch.from_numpy(judges)
    with one_thread():
        best = _train(flow, c, y, weight, taught, judged)
    return part if best is None else Spline(part, best.frozen(), part.dof + d)


def _train(
    flow: Flow,
    c: torch.Tensor,
    y: torch.Tensor,
    weight: torch.Tensor,
    taught: torch.Tensor,
    judged: torch.Tensor,
) -> Flow | None:
    """The flow at its best on the judges; None where it never beat the identity."""
    optimiser = torch.optim.Adam(flow.parameters(), lr=_RATE, weight_decay=_DECAY)
    with torch.no_grad():
        least = float(-(weight * flow.log_prob(c, y))[judged].sum())
    best, since = None, 0
    for _ in range(_STEPS):
        optimiser.zero_grad()
        terms = -weight * flow.log_prob(c, y)
        terms[taught].sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        with torch.no_grad():
            loss = float(-(weight * flow.log_prob(c, y))[judged].sum())
        since += 1
        if loss < least:
            least, best, since = loss, copy.deepcopy(flow), 0
        if since > _PATIENCE:
            break
    return best


LEARNER = PartLearner(fit_feedback, fit_bent)
