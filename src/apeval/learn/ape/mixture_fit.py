"""A trajectory-level mixture of parts, fitted to weighted episodes by expectation-maximisation.

One part unless the data speak for more: each further one doubles the parameters that a few
effective failures must pay for (BIC, with the effective sample size as n).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.delayed_part import begun_later
from apeval.learn.ape.log_sum import log_sum
from apeval.learn.ape.part_learner import PartLearner
from apeval.learn.ape.proposal_part import ProposalPart
from apeval.learn.ape.russian_roulette import RussianRoulette
from apeval.problem.types import BoolArray, FloatArray, IntArray

_SIZES = (1, 2, 4, 8)
_PER_PART = 5.0  # effective failures that a part needs
_ROUNDS = 8
_CHOOSE_AT = (0, 3)  # rounds in which smoothness is chosen anew
_PENALTY = 0.5  # of BIC's
_DIRECTIONS = 10  # in which episodes are told apart


@dataclass(frozen=True)
class MixtureFit:
    """Parts and their shares, and the roulette that ends their episodes early."""

    parts: tuple[ProposalPart, ...]
    shares: FloatArray
    roulette: RussianRoulette | None = None

    def log_ratio(self, rows: DecisionRows) -> FloatArray:
        """log q/p of the mixture, for episodes that were not ended early."""
        ratio = self.decision_ratio(rows)
        return ratio if self.roulette is None else ratio + self.roulette.log_survival(rows)

    def decision_ratio(self, rows: DecisionRows) -> FloatArray:
        """log q/p of the decisions alone, whatever the roulette."""
        return log_sum(self.ratios(rows))

    def ratios(self, rows: DecisionRows) -> FloatArray:
        """log share + log q/p, part by part, (n, M)."""
        columns = np.stack([part.log_ratio(rows) for part in self.parts], axis=1)
        return columns + np.log(self.shares)

    def relaxed(self, eta: float) -> MixtureFit:
        """Every part on the way from p (η = 0) to itself (η = 1)."""
        return replace(self, parts=tuple(part.relaxed(eta) for part in self.parts))

    def begun_later(self, times: int) -> MixtureFit:
        """Every part after a delay."""
        return replace(self, parts=tuple(begun_later(part, times) for part in self.parts))


@dataclass(frozen=True)
class FittedMixture:
    """A fit with what is needed to repeat it on other weights."""

    fit: MixtureFit
    belongs: FloatArray
    """Responsibilities, (n, M)."""
    smooth: tuple[Any, ...]
    score: float
    whole: ProposalPart | None = None
    """The part, where one for all episodes took the place of a mixture."""

    def refit(
        self, rows: DecisionRows, w: FloatArray, learner: PartLearner, times: int
    ) -> MixtureFit | None:
        """The same parts on other weights, as in a half of the data, finished by these alone; None
        where one has none."""
        if self.whole is not None and learner.whole is not None:
            if effective(w) < 1.0:
                return None
            again = learner.whole(rows, _worth(w), times, self.whole, None)
            return None if again is None else alone(again)
        parts = []
        for j, smooth in enumerate(self.smooth):
            mine = w * self.belongs[:, j]
            if effective(mine) < 1.0:
                return None
            parts.append(learner.finish(rows, _worth(mine), times, smooth))
        return MixtureFit(tuple(parts), self.fit.shares)


def effective(w: FloatArray) -> float:
    """(Σw)²/Σw²."""
    top = float(w.max(initial=0.0))
    if top <= 0.0:
        return 0.0
    r = w / top
    return float(r.sum()) ** 2 / float((r * r).sum())


def _worth(w: FloatArray) -> FloatArray:
    """Scaled so that the sum is the effective number."""
    return w * (effective(w) / float(w.sum()))


def fit_mixture(
    rows: DecisionRows,
    w: FloatArray,
    learner: PartLearner,
    times: int,
    rng: np.random.Generator,
    before: ProposalPart | None = None,
) -> FittedMixture:
    """The best of several sizes; shares are half-way between the fitted ones and equal ones, so
    that no mode is sampled too rarely to be corrected. Or one part for all episodes, which may go
    on from the one `before`, where the data speak for that."""
    w = w / w.sum()
    best: FittedMixture | None = None
    for size in _SIZES:
        if size > 1 and size * _PER_PART > effective(w):
            break
        found = _maximise(rows, w, learner, times, size, rng)
        if best is not None and found.score <= best.score:
            break
        best = found
    if best is None:
        raise ValueError("no episode to fit to")
    shares = 0.5 * best.fit.shares + 0.5 / len(best.fit.shares)
    parts = tuple(
        learner.finish(rows, _worth(w * mine), times, smooth)
        for mine, smooth in zip(best.belongs.T, best.smooth, strict=True)
    )
    fit = MixtureFit(parts, shares)
    mixed = FittedMixture(fit, best.belongs, best.smooth, _score(fit, rows, w))
    if learner.whole is None:
        return mixed
    plain = parts[0] if len(parts) == 1 else None
    whole = learner.whole(rows, _worth(w), times, before, plain)
    if whole is None:
        return mixed
    score = _score(alone(whole), rows, w)
    if score <= mixed.score:
        return mixed
    return FittedMixture(alone(whole), np.ones((rows.n, 1)), (None,), score, whole)


@dataclass(frozen=True)
class GroupedFit:
    """Mixtures fitted to groups of episodes, each on its own, as one mixture."""

    groups: tuple[FittedMixture, ...]
    members: tuple[BoolArray, ...]
    """Which episodes each was fitted to."""
    shares: FloatArray
    names: tuple[int, ...]

    @property
    def wholes(self) -> dict[int, ProposalPart | None]:
        """Group → the part that took the place of its mixture."""
        return {name: group.whole for name, group in zip(self.names, self.groups, strict=True)}

    @property
    def fit(self) -> MixtureFit:
        """All parts."""
        return _joined([group.fit for group in self.groups], self.shares)

    def refit(
        self, rows: DecisionRows, w: FloatArray, learner: PartLearner, times: int
    ) -> MixtureFit | None:
        """The same parts on other weights; a group that has none is left out."""
        fits = [
            group.refit(rows.take(mine), w[mine], learner, times)
            for group, mine in zip(self.groups, self.members, strict=True)
        ]
        there = [k for k, fit in enumerate(fits) if fit is not None]
        if not there:
            return None
        shares = self.shares[there] / self.shares[there].sum()
        return _joined([fit for fit in fits if fit is not None], shares)


def _joined(fits: list[MixtureFit], shares: FloatArray) -> MixtureFit:
    parts = tuple(part for fit in fits for part in fit.parts)
    each = [share * fit.shares for share, fit in zip(shares, fits, strict=True)]
    return MixtureFit(parts, np.concatenate(each))


def fit_groups(
    rows: DecisionRows,
    w: FloatArray,
    group: IntArray,
    share: FloatArray,
    learner: PartLearner,
    times: int,
    rng: np.random.Generator,
    before: dict[int, ProposalPart | None],
) -> GroupedFit:
    """Every group's own mixture; `share` is what each episode says of its group's share."""
    names = np.unique(group)
    members = tuple(group == name for name in names)
    fitted = tuple(
        fit_mixture(rows.take(mine), w[mine], learner, times, rng, before.get(int(name)))
        for name, mine in zip(names, members, strict=True)
    )
    mass = np.array([share[mine].sum() for mine in members])
    shares = 0.5 * mass / mass.sum() + 0.5 / len(names)
    return GroupedFit(fitted, members, shares, tuple(names.tolist()))


def alone(part: ProposalPart) -> MixtureFit:
    """One part as a fit."""
    return MixtureFit((part,), np.ones(1))


def _score(fit: MixtureFit, rows: DecisionRows, w: FloatArray) -> float:
    """How likely the episodes with weights w are, less what parameters must pay for."""
    n, dof = effective(w), sum(part.dof for part in fit.parts) + len(fit.parts) - 1
    likelihood = float((w * fit.log_ratio(rows)).sum())
    return likelihood * n - _PENALTY * 0.5 * dof * float(np.log(max(n, 2.0)))


def _maximise(
    rows: DecisionRows,
    w: FloatArray,
    learner: PartLearner,
    times: int,
    size: int,
    rng: np.random.Generator,
) -> FittedMixture:
    belongs = np.ones((rows.n, 1)) if size == 1 else _start(rows, size, times, rng)
    parts: list[ProposalPart] = []
    smooth: list[Any] = [None] * belongs.shape[1]
    before, shares = -np.inf, np.ones(1)
    for k in range(_ROUNDS):
        alive = [j for j in range(belongs.shape[1]) if effective(w * belongs[:, j]) >= 2.0]
        alive = alive or [0]
        belongs, smooth = belongs[:, alive], [smooth[j] for j in alive]
        if k in _CHOOSE_AT:
            smooth = [None] * len(alive)
        fits = [
            learner.fit(rows, _worth(w * mine), times, before)
            for mine, before in zip(belongs.T, smooth, strict=True)
        ]
        parts, smooth = [f[0] for f in fits], [f[1] for f in fits]
        shares = (w[:, None] * belongs).sum(axis=0)
        shares = np.maximum(shares / shares.sum(), 1e-12)
        columns = MixtureFit(tuple(parts), shares).ratios(rows)
        total = log_sum(columns)
        belongs = np.exp(columns - total[:, None])
        likelihood = float((w * total).sum())
        if len(parts) == 1 or abs(likelihood - before) < 1e-3:
            break
        before = likelihood
    fit = MixtureFit(tuple(parts), shares)
    return FittedMixture(fit, belongs, tuple(smooth), _score(fit, rows, w))


def _start(rows: DecisionRows, size: int, times: int, rng: np.random.Generator) -> FloatArray:
    """k-means++ on the directions in which episodes differ most from π_E,gt."""
    F = _directions(rows, times) if rows.p.shape[1] == 0 else _cumulated(rows, times)
    centres = [F[rng.integers(len(F))]]
    for _ in range(size - 1):
        distance = np.min([((F - c) ** 2).sum(axis=1) for c in centres], axis=0)
        if float(distance.sum()) <= 0.0:
            break
        centres.append(F[rng.choice(len(F), p=distance / distance.sum())])
    label = _lloyd(F, np.array(centres))
    return np.eye(len(centres))[label]


def _cumulated(rows: DecisionRows, times: int) -> FloatArray:
    """Outcomes cumulated up to a third, two thirds and the end."""
    cuts = sorted({max(1, times // 3), max(1, 2 * times // 3), times})
    e = rows.e - rows.e.mean(axis=0)
    sums = [rows.total(e[:, j] * (rows.t < c)) for c in cuts for j in range(e.shape[1])]
    return np.stack([*sums, *rows.z_0.T], axis=1)


def _directions(rows: DecisionRows, times: int) -> FloatArray:
    """Whole paths of disturbances along their principal directions: N(0, I) prefers none,
    failures are pushed along a few."""
    d = rows.e.shape[1]
    path = np.zeros((rows.n, times * d))
    np.add.at(path, (rows.episode[:, None], rows.t[:, None] * d + np.arange(d)), rows.e)
    F = np.concatenate([path, rows.z_0], axis=1)
    keep = min(_DIRECTIONS, *F.shape)
    if F.shape[1] <= keep:
        return F
    wide = F.shape[0] <= F.shape[1]
    gram = F @ F.T if wide else F.T @ F
    value, vector = eigh(gram, subset_by_index=[len(gram) - keep, len(gram) - 1])
    return np.asarray(vector * np.sqrt(np.maximum(value, 0.0)) if wide else F @ vector)


def _lloyd(F: FloatArray, centres: FloatArray) -> IntArray:
    label = np.zeros(len(F), np.int64)
    for _ in range(10):
        label = np.argmin(((F[:, None] - centres[None]) ** 2).sum(axis=2), axis=1)
        for j in range(len(centres)):
            if (label == j).any():
                centres[j] = F[label == j].mean(axis=0)
    return label
