"""z_t ~ N(B_t [1, x, tanh 3x, waves], C_t): a push that answers to the state, shared over time
and without waves as far as the data do not ask for more.

π_E* ∝ π_E,gt · (r + v(s')) has this form where log v is quadratic; the fit is Bayesian, so that
with few failures it stays near π_E,gt and near constant in time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.gaussian_part import GaussianPart, fit_spread
from apeval.learn.ape.local_model import LocalModel
from apeval.learn.ape.part_learner import PartLearner
from apeval.learn.ape.potential import Steered, fit_potential
from apeval.learn.ape.regression import FittedRegression, Smoothness, design_of, regress
from apeval.problem.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Feedback(GaussianPart):
    """Means B (T, d, features)."""

    B: FloatArray = field(default_factory=lambda: np.zeros((1, 1, 1)))

    def mean(self, x: FloatArray, t: IntArray) -> FloatArray:
        mean: FloatArray = np.einsum("ndf,nf->nd", self.B[t], design_of(x, self.B.shape[2]))
        return mean

    def scaled(self, eta: float) -> Feedback:
        return replace(self, B=eta * self.B)


def fit_feedback(
    rows: DecisionRows, w: FloatArray, times: int, smooth: Smoothness | None
) -> tuple[Feedback, Smoothness]:
    """The fit to episodes with weights w, whose sum is the number of episodes that they are
    worth; `smooth` repeats an earlier choice of smoothness, None chooses by evidence."""
    return _fit(rows, w, w[rows.episode], times, smooth, False)


def fit_rows(
    rows: DecisionRows, w: FloatArray, part: FloatArray, times: int, smooth: Smoothness | None
) -> tuple[Feedback, Smoothness]:
    """With waves; of each decision only a `part` counts."""
    return _fit(rows, w, w[rows.episode] * part, times, smooth, True)


def let_wave(
    rows: DecisionRows,
    w: FloatArray,
    times: int,
    smooth: object,
    model: LocalModel | None = None,
) -> GaussianPart:
    """With waves where the evidence asks for them, which chooses all smoothness anew; or, where the
    evidence prefers it, a push that follows a potential."""
    W = w[rows.episode]
    fit = regress(rows, W, times, None, True)
    if model is None:
        return _part_of(fit, rows, w, W, times)
    found = fit_potential(model, rows, W, times, fit.noise)
    if found.evidence <= max(fit.evidence, 0.0):  # 0: an empty potential explains nothing
        return _part_of(fit, rows, w, W, times)
    it = fit_spread(rows, w, W, rows.e - found.potential.mean(rows.x, rows.t), times)
    return Steered(it.C, it.m_0, it.C_0, found.dof + it.dof, potential=found.potential)


def _fit(
    rows: DecisionRows,
    w: FloatArray,
    W: FloatArray,
    times: int,
    smooth: Smoothness | None,
    waving: bool,
) -> tuple[Feedback, Smoothness]:
    fit = regress(rows, W, times, smooth, waving)
    return _part_of(fit, rows, w, W, times), fit.smooth


def _part_of(
    fit: FittedRegression, rows: DecisionRows, w: FloatArray, W: FloatArray, times: int
) -> Feedback:
    it = fit_spread(rows, w, W, fit.residual, times)
    return Feedback(it.C, it.m_0, it.C_0, fit.dof + it.dof, fit.B)


LEARNER = PartLearner(fit_feedback, let_wave, steer=let_wave)
