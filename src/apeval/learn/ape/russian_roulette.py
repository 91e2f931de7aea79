"""When to end an episode early: Russian roulette on states from which hardly any episode fails.

An episode in state x before decision t goes on with the survival probability h(x, t)
(`Adversary.survival_probability`), and those that go on stand in for the others: nothing becomes
biased, and the decisions that are saved pay for more episodes. With M₂ the second moment of an
episode's estimate and C its cost, M₂·C is least when h is proportional to
√(P(failure | x, t) / decisions still to come).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.regression import cosines, design
from apeval.problem.types import BoolArray, FloatArray, IntArray

LEAST = 0.1
"""The smallest part that goes on: no weight grows by more than its inverse."""
WATCHFUL = 0.3
"""The same, among the episodes that watch for what nobody expects."""
_SURE = (0.01, 0.1, 0.3)  # part of the failures that may be less than sure to go on
_GAIN = 0.9  # of M₂·C without roulette: less of a gain may be none
_FEWEST = 5  # failures to learn from
_TIMES, _ANSWERS = 12, 3  # cosines in time, of the level and of its answer to the state
_RIDGE = 0.3
_USUAL = 0.95  # part of the states that are usual
_LEAST_SPREAD = 1e-4
_APART = 1e-6
_ROUNDS, _STILL = 25, 1e-4


@dataclass(frozen=True, eq=False)
class UsualStates:
    """An ellipsoid for every time bin, with most of the states in it."""

    mean: FloatArray
    """(T, f)."""
    inverse: FloatArray
    """Of the covariance, (T, f, f)."""
    limit: FloatArray
    """(T,)."""

    def contains(self, x: FloatArray, t: IntArray) -> BoolArray:
        """Row by row, (n,)."""
        return np.asarray(_distance(x - self.mean[t], self.inverse[t]) <= self.limit[t])


@dataclass(frozen=True, eq=False)
class RussianRoulette:
    """h(x, t) = √(P(failure | x, t) / (toll_t · sure)), at least `least` and at most 1."""

    theta: FloatArray
    """Of the log-odds of failure, in every time bin, (T, 1+2f)."""
    toll: FloatArray
    """Decisions still to come, (T,)."""
    sure: float
    """P/toll from which every episode goes on."""
    usual: UsualStates
    """Episodes in any other state go on too: who knows what comes of them."""
    least: float = LEAST

    def watchful(self) -> RussianRoulette:
        """For episodes from the widened proposals."""
        return replace(self, least=WATCHFUL)

    def part(self, x: FloatArray, t: IntArray) -> FloatArray:
        """h of every row, (n,); 1 before the first decision."""
        share = _worth(self.theta, self.toll, x, t) / np.sqrt(self.sure)
        may_end = (t > 0) & self.usual.contains(x, t)
        return np.where(may_end, np.clip(share, self.least, 1.0), 1.0)

    def log_survival(self, rows: DecisionRows) -> FloatArray:
        """log of the probability that an episode with these decisions was not ended early, (n,)."""
        return np.log(np.minimum(rows.smallest(self.part(rows.x, rows.t)), 1.0))


@dataclass(frozen=True)
class RouletteChoice:
    """A roulette with what it does to the episodes that judged it."""

    roulette: RussianRoulette
    survival: FloatArray
    """Of the failures, under a roulette that they did not teach, (n,)."""
    cost: float
    """Decisions of a learned episode, relative to those without roulette …"""
    watchful_cost: float
    """… and of one that watches."""


def learn_roulette(
    rows: DecisionRows,
    failed: BoolArray,
    stands_for: FloatArray,
    weight: FloatArray,
    times: int,
) -> RouletteChoice | None:
    """The roulette with the least M₂·C, or None where it hardly pays.

    `rows` are complete episodes, each of which stands for a number of drawn ones; `weight` is what
    the failures among them weigh in M₂. Two halves teach and judge each other.
    """
    if times < 2 or failed.sum() < _FEWEST:
        return None
    first = np.arange(rows.n) % 2 == 0
    length = rows.lengths()
    ahead = (length[rows.episode] - _position(rows)).astype(np.float64)
    toll = np.maximum(_mean_by_time(ahead, stands_for[rows.episode], rows.t, times), 1.0)
    whole = _logistic(rows, failed, stands_for, times, None)
    halves = [_logistic(rows, failed, stands_for * half, times, whole) for half in (first, ~first)]
    known = np.where(
        first[rows.episode],
        _worth(at_times(halves[1], times), toll, rows.x, rows.t),
        _worth(at_times(halves[0], times), toll, rows.x, rows.t),
    )
    usual = _usual(rows, stands_for, times)
    known[(rows.t == 0) | ~usual.contains(rows.x, rows.t)] = np.inf
    least = np.minimum(rows.smallest(known)[failed], known[np.isfinite(known)].max(initial=0.0))
    best: RouletteChoice | None = None
    score = _GAIN
    for share in _SURE:
        sure = max(float(np.quantile(least, share, method="lower")) ** 2, 1e-300)
        part = np.clip(known / np.sqrt(sure), LEAST, 1.0)
        kept = rows.running_smallest(part)
        cost = _mean_length(kept, rows, stands_for)
        survival = rows.smallest(part)[failed]
        moment = float((weight / survival).sum() / weight.sum())
        if moment * cost < score:
            score = moment * cost
            roulette = RussianRoulette(at_times(whole, times), toll, sure, usual)
            watchful_cost = _mean_length(np.maximum(kept, WATCHFUL), rows, stands_for)
            best = RouletteChoice(roulette, survival, cost, watchful_cost)
    return best


def _mean_length(kept: FloatArray, rows: DecisionRows, stands_for: FloatArray) -> float:
    """Of episodes of which such a part takes each decision; 1 where all do."""
    return float((stands_for * rows.total(kept)).sum() / (stands_for * rows.lengths()).sum())


def _worth(theta: FloatArray, toll: FloatArray, x: FloatArray, t: IntArray) -> FloatArray:
    """√(P/toll) of every row."""
    odds = np.einsum("nf,nf->n", theta[t], design(x))
    worth: FloatArray = np.sqrt(expit(odds) / toll[t])
    return worth


def _distance(e: FloatArray, inverse: FloatArray) -> FloatArray:
    """Squared, (n,)."""
    square: FloatArray = np.einsum("nf,nfg,ng->n", e, inverse, e)
    return square


def _usual(rows: DecisionRows, w: FloatArray, times: int) -> UsualStates:
    f, W = rows.x.shape[1], w[rows.episode]
    mean, inverse, limit = np.zeros((times, f)), np.zeros((times, f, f)), np.full(times, -np.inf)
    for t in range(1, times):
        here = rows.t == t
        if not here.any():
            continue
        x, weight = rows.x[here], W[here] / W[here].sum()
        mean[t] = weight @ x
        e = x - mean[t]
        inverse[t] = np.linalg.inv((weight[:, None] * e).T @ e + _LEAST_SPREAD * np.eye(f))
        square = _distance(e, np.broadcast_to(inverse[t], (len(e), f, f)))
        order = np.argsort(square)
        at = min(int(np.searchsorted(np.cumsum(weight[order]), _USUAL)), len(order) - 1)
        limit[t] = square[order][at] * (1.0 + _APART) + _APART  # no state lies on the boundary
    return UsualStates(mean, inverse, limit)


def _position(rows: DecisionRows) -> IntArray:
    """The decision's place in its episode, also beyond the last time bin."""
    start = np.searchsorted(rows.episode, np.arange(rows.n))
    return np.arange(len(rows.episode)) - start[rows.episode]


def _mean_by_time(values: FloatArray, w: FloatArray, t: IntArray, times: int) -> FloatArray:
    total = np.bincount(t, w, times)
    mean: FloatArray = np.bincount(t, w * values, times) / np.maximum(total, 1e-12)
    return mean


def _bases(times: int) -> tuple[int, int]:
    return min(times, _TIMES), min(times, _ANSWERS)


def at_times(flat: FloatArray, times: int) -> FloatArray:
    """Coefficients of cosines as coefficients at every time, (T, 1+2f)."""
    level, answers = _bases(times)
    psi = cosines(times, max(level, answers))
    gains = flat[level:].reshape(answers, -1)
    return np.concatenate(
        [(psi[:, :level] @ flat[:level])[:, None], psi[:, :answers] @ gains], axis=1
    )


def _logistic(
    rows: DecisionRows, failed: BoolArray, w: FloatArray, times: int, before: FloatArray | None
) -> FloatArray:
    """Penalised logistic regression of failure on state and time, by damped Newton steps."""
    later = rows.t > 0
    level, answers = _bases(times)
    psi = cosines(times, max(level, answers))[rows.t[later]]
    X = design(rows.x[later])[:, 1:]
    Phi = np.concatenate(
        [psi[:, :level], (psi[:, :answers, None] * X[:, None]).reshape(len(X), -1)], axis=1
    )
    y, W = failed[rows.episode[later]].astype(np.float64), w[rows.episode[later]]
    precision = np.full(Phi.shape[1], _RIDGE)
    precision[0] = 1e-6  # how frequent failures are is not held to be a half
    theta = np.zeros(Phi.shape[1]) if before is None else before.copy()

    def loss(theta: FloatArray) -> float:
        z = Phi @ theta
        return float((W * (np.logaddexp(0.0, z) - y * z)).sum() + 0.5 * precision @ theta**2)

    now = loss(theta)
    for _ in range(_ROUNDS):
        p = expit(Phi @ theta)
        slope = Phi.T @ (W * (p - y)) + precision * theta
        curve = (Phi * (W * p * (1.0 - p) + 1e-9)[:, None]).T @ Phi + np.diag(precision)
        step, far = np.linalg.solve(curve, slope), 1.0
        while (there := loss(theta - far * step)) > now and far > 1e-4:
            far *= 0.5
        gained, now = now - there, min(now, there)
        theta = theta - far * step if gained > 0.0 else theta
        if gained < _STILL * (1.0 + abs(now)):
            break
    return theta
