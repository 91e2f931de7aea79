"""Pushes that take turns: q = π_0(x, t) · π_E,gt + Σ_k π_k(x, t) · N(B_k,t φ(x), C_k,t), chosen
anew at every decision.

Where a failure may begin at any of many times, π_E* waits until chance has brought the state near
enough, and pushes from there on. In between it does either, which no Gaussian can: an episode
that went back although the Gaussian pushed has a heavy weight. A mixture of whole episodes would
need a part for every time at which a failure may begin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtri

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.feedback import fit_feedback, fit_rows, let_wave
from apeval.learn.ape.gaussian_part import GaussianPart
from apeval.learn.ape.log_sum import log_sum
from apeval.learn.ape.part_learner import PartLearner
from apeval.learn.ape.proposal_part import ContinuousPart, ProposalPart
from apeval.learn.ape.regression import Smoothness, cosines, waving_design
from apeval.problem.types import FloatArray, IntArray

_CUTS = (0.5, 0.85)  # parts of the decisions, by size of push: none, one, the other
_GUESS = 0.8  # how far that first guess is believed
_ROUNDS, _AGAIN = 12, 3  # of expectation-maximisation, from the guess and from an earlier fit
_CHOOSE_AT = (0, 4)  # rounds in which smoothness is chosen anew
_STEPS = 8  # of the gate's regression, in each round
_SETTLED = 0.01  # gain per episode at which rounds end
_BASES = 3  # cosines in time that the gate sees
_PRECISION = 1.0  # of the gate's coefficients
_WAITING = 0.1  # share of π_E,gt that must gain something to begin with


@dataclass(frozen=True, eq=False)
class Experts(ContinuousPart):
    """Pushes, and a gate (features, K): log π_k/π_0 are linear in its features, of which `psi`
    (T, bases) are those of time."""

    pushes: tuple[GaussianPart, ...]
    gate: FloatArray
    psi: FloatArray
    dof: float = 0.0

    def log_shares(self, x: FloatArray, t: IntArray) -> FloatArray:
        """log π of nothing and of each push, (n, 1+K)."""
        return _log_shares(_features(x, self.psi[t]), self.gate)

    def row_ratio(self, rows: DecisionRows) -> FloatArray:
        return log_sum(self._terms(rows))

    def belongs(self, rows: DecisionRows) -> FloatArray:
        """The probability that a decision was each one's, (N, 1+K)."""
        terms = self._terms(rows)
        return np.exp(terms - log_sum(terms)[:, None])

    def _terms(self, rows: DecisionRows) -> FloatArray:
        return self.log_shares(rows.x, rows.t) + _ratios(self.pushes, rows)

    def start_ratio(self, z_0: FloatArray) -> FloatArray:
        return self.pushes[0].start_ratio(z_0)

    def start(self, u: FloatArray) -> FloatArray:
        return self.pushes[0].start(u)

    def draw(
        self, x: FloatArray, t: IntArray, u: FloatArray, whole: FloatArray | None
    ) -> FloatArray:
        upper = np.cumsum(np.exp(self.log_shares(x, t)), axis=1)
        who = (u[:, :1] >= upper[:, :-1]).sum(axis=1)
        row = np.arange(len(who))
        lower = np.where(who > 0, upper[row, who - 1], 0.0)
        # what the choice leaves of the first uniform is uniform again
        first = (u[:, 0] - lower) / np.maximum(upper[row, who] - lower, 1e-300)
        z: FloatArray = ndtri(np.column_stack([np.clip(first, 1e-16, 1.0 - 1e-16), u[:, 1:]]))
        for k, push in enumerate(self.pushes, 1):
            mine = who == k
            z[mine] = push.push(x[mine], t[mine], z[mine])
        return z

    def relaxed(self, eta: float) -> Experts:
        pushes = tuple(push.relaxed(eta) for push in self.pushes)
        return Experts(pushes, self.gate, self.psi, self.dof)


def fit_experts(
    rows: DecisionRows,
    w: FloatArray,
    times: int,
    before: ProposalPart | None = None,
    plain: ProposalPart | None = None,
) -> Experts | None:
    """The fit to episodes with weights w, whose sum is the number of episodes that they are
    worth; from where an earlier one ended, or anew: None where waiting cannot help."""
    if isinstance(before, Experts):
        return _maximise(rows, w, times, before.belongs(rows), _AGAIN)
    if not isinstance(plain, GaussianPart):
        plain = let_wave(rows, w, times, None)
    if not _waits(plain, rows, w):
        return None
    return _maximise(rows, w, times, _guess(plain, rows, w), _ROUNDS)


def _waits(plain: GaussianPart, rows: DecisionRows, w: FloatArray) -> bool:
    """Whether the failures would be likelier if some decisions were left to π_E,gt."""
    ratio = plain.row_ratio(rows)
    mixed = np.logaddexp(np.log1p(-_WAITING) + ratio, np.log(_WAITING))
    return float(w[rows.episode] @ (mixed - ratio)) > 0.0


def _guess(plain: GaussianPart, rows: DecisionRows, w: FloatArray) -> FloatArray:
    """The larger the push, the later its turn."""
    size = np.linalg.norm(plain.mean(rows.x, rows.t), axis=1)
    order = np.argsort(size)
    below = np.empty(len(size))
    below[order] = np.cumsum(w[rows.episode][order])
    turn = (below[:, None] > below[order[-1]] * np.array(_CUTS)).sum(axis=1)
    K = len(_CUTS)
    belongs = np.full((len(size), 1 + K), (1.0 - _GUESS) / K)
    belongs[np.arange(len(size)), turn] = _GUESS
    return belongs


def _maximise(
    rows: DecisionRows, w: FloatArray, times: int, belongs: FloatArray, rounds: int
) -> Experts:
    K, W = belongs.shape[1] - 1, w[rows.episode]
    psi = cosines(times, min(_BASES, times))
    F = _features(rows.x, psi[rows.t])
    precision = np.full(F.shape[1], _PRECISION)
    precision[0] *= 0.01
    # Böhning's bound of the softmax's curvature (1992) for K = 1; for two pushes it is a third too
    # small, and steps that are half too long still climb
    curvature = 0.5 * (1.0 - 1.0 / (1 + K)) * (F * W[:, None]).T @ F + np.diag(precision)
    factor = cho_factor(curvature)
    gate, reached = np.zeros((F.shape[1], K)), -np.inf
    pushes: tuple[GaussianPart, ...] = ()
    smooth: list[Smoothness | None] = [None] * K
    for k in range(rounds):
        for _ in range(_STEPS):
            missing = belongs - np.exp(_log_shares(F, gate))
            slope = F.T @ (W[:, None] * missing[:, 1:]) - precision[:, None] * gate
            gate = gate + cho_solve(factor, slope)
        chosen = [None] * K if k in _CHOOSE_AT else smooth
        fits = [fit_rows(rows, w, belongs[:, 1 + j], times, chosen[j]) for j in range(K)]
        pushes, smooth = tuple(fit[0] for fit in fits), [fit[1] for fit in fits]
        terms = _log_shares(F, gate) + _ratios(pushes, rows)
        total = log_sum(terms)
        belongs = np.exp(terms - total[:, None])
        before, reached = reached, float(W @ total)
        if reached - before < _SETTLED * float(w.sum()):
            break
    spent = K * (len(precision) - float(precision @ np.diag(np.linalg.inv(curvature))))
    return Experts(pushes, gate, psi, spent + sum(push.dof for push in pushes))


def _features(x: FloatArray, psi: FloatArray) -> FloatArray:
    """[1, x, tanh 3x, waves, cosines in time]."""
    return np.concatenate([waving_design(x), psi[:, 1:]], axis=1)


def _log_shares(F: FloatArray, gate: FloatArray) -> FloatArray:
    scores = np.concatenate([np.zeros((len(F), 1)), F @ gate], axis=1)
    return scores - log_sum(scores)[:, None]


def _ratios(pushes: tuple[GaussianPart, ...], rows: DecisionRows) -> FloatArray:
    """log q/p of each decision under nothing and each push, (N, 1+K)."""
    return np.column_stack([np.zeros(len(rows.t)), *(push.row_ratio(rows) for push in pushes)])


LEARNER = PartLearner(fit_feedback, let_wave, fit_experts, let_wave)
