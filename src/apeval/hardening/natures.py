"""Who draws the disturbances of an episode that a policy is trained in, with exact weights.

An episode is drawn by one component of a mixture from start to end, as in a frozen stage:
q(τ) = Σ_j λ_j q_j(τ) with π_E,gt among the components. The weight of what has happened so far,
p/q, is then at most 1/λ of π_E,gt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, ndtri

from apeval import validate
from apeval.errors import ApevalError
from apeval.learn.whitened import can_whiten, to_action, to_z
from apeval.problem.laws import Law, pick
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray
from apeval.simulate.adversary import Adversary, Mixture, Nominal, Situation, mixture
from apeval.simulate.episodes import Episodes


@dataclass(frozen=True)
class WidenedLaw(Adversary):
    """π_E,gt with every disturbance σ times as wide; outcomes have p^(1/σ²)."""

    sigma: float

    def sample(self, now: Situation, u: FloatArray) -> Array:
        if now.law.discrete:
            return pick(self._flattened(now.law, len(u)), u)
        return to_action(now.law, self.sigma * ndtri(u))

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        if now.law.discrete:
            q = self._flattened(now.law, len(a_E))
            log_q: FloatArray = np.log(q[np.arange(len(a_E)), a_E[:, 0].astype(np.int64)])
            return log_q
        z = to_z(now.law, a_E)
        wider = 0.5 * (1.0 - self.sigma**-2) * (z * z).sum(axis=1)
        total: FloatArray = now.law.log_prob(a_E) + wider - z.shape[1] * np.log(self.sigma)
        return total

    def _flattened(self, law: Law, n: int) -> FloatArray:
        p = np.broadcast_to(law.outcome_probabilities(), (n, law.outcome_probabilities().shape[1]))
        q = p ** (self.sigma**-2)
        share: FloatArray = q / q.sum(axis=1, keepdims=True)
        return share


def widened(problem: Problem, sigma: float) -> Mixture:
    """Plainly widened disturbances, to train against instead of a learned adversary.

    Args:
        problem: The problem whose disturbances are meant.
        sigma: How many times as wide, in whitened coordinates; more than 1.

    Returns:
        A mixture of one, for `adversarial_env`.

    Raises:
        ApevalError: The disturbance cannot be widened, or sigma is no such number.
    """
    if validate.number("sigma", sigma) <= 1.0:
        raise ApevalError(f"sigma must be above 1, the width of the nominal; got {sigma}")
    if not problem.nominal.discrete and not can_whiten(problem.nominal):
        raise ApevalError(
            f"a {type(problem.nominal).__name__} disturbance cannot be widened: use Normal, "
            "TruncatedNormal, FromScipy or Categorical"
        )
    return Mixture((WidenedLaw(sigma),), (1.0,))


def joined(adversaries: Sequence[Mixture], share: float) -> Mixture:
    """π_E,gt, and the adversaries in equal parts of `share`.

    Args:
        adversaries: Frozen proposals, such as those of the last rounds.
        share: The part of the episodes that they draw, from 0 to below 1.
    """
    components: list[Adversary] = [Nominal()]
    shares = [1.0 - share]
    for adversary in adversaries:
        total = sum(adversary.shares)
        for component, part in zip(adversary.components, adversary.shares, strict=True):
            components.append(_to_the_end(component))
            shares.append(share * part / total / len(adversaries))
    return mixture(components, shares)


def _to_the_end(component: Adversary) -> Adversary:
    """Without Russian roulette: episodes of a training go to their end."""
    if getattr(component, "roulette", None) is None:
        return component
    whole: Adversary = replace(component, roulette=None)  # type: ignore[type-var]
    return whole


class EpisodeWeight:
    """log p/q of an episode as it unfolds.

    Decisions are kept, and weighed together once somebody asks: a hundred rows cost a component
    little more than one.
    """

    def __init__(self, nature: Mixture, a_0: Array, law_0: Law | None) -> None:
        self.nature, self.a_0, self.law_0 = nature, a_0, law_0
        self._rows: list[tuple[Situation, Array]] = []
        self._weighed = 0
        self._known: float | None = None
        self._log_p: float | None = None
        self._log_q = np.zeros(len(nature.components))
        shares = np.asarray(nature.shares, np.float64)
        self._log_shares = np.log(shares / shares.sum())
        self._together = [j for j, q in enumerate(nature.components) if q.persistent]

    def add(self, now: Situation, a_E: Array) -> None:
        """A decision of nature."""
        self._known = None
        self._rows.append((now, a_E))

    def log_weight(self) -> float:
        """log p/q of all decisions so far."""
        if self._known is None:
            if self._log_p is None:
                self._log_p = self._start()
            if self._weighed < len(self._rows):
                self._log_p += self._weigh(self._rows[self._weighed :])
                self._weighed = len(self._rows)
            self._known = self._log_p - float(logsumexp(self._log_shares + self._log_q))
        return self._known

    def _start(self) -> float:
        """log p of the start; log q of it for each component."""
        if self.law_0 is None:
            return 0.0
        for j, q in enumerate(self.nature.components):
            self._log_q[j] = float(q.log_prob_initial(self.law_0, self.a_0)[0])
        return float(self.law_0.log_prob(self.a_0)[0])

    def _weigh(self, rows: list[tuple[Situation, Array]]) -> float:
        """log p of decisions; log q of them for each component."""
        now, a_E = _below_each_other(rows)
        log_p = now.law.log_prob(a_E)
        for j, q in enumerate(self.nature.components):
            if isinstance(q, Nominal):
                self._log_q[j] += float(log_p.sum())
            elif not q.persistent:
                self._log_q[j] += float(q.log_prob(now, a_E).sum())
        if self._together:  # their decisions share a random number: no density of one
            so_far = self._episodes()
            for j in self._together:
                self._log_q[j] = float(self.nature.components[j].log_density(so_far)[0])
        return float(log_p.sum())

    def _episodes(self) -> Episodes:
        now, a_E = _below_each_other(self._rows)
        n, nothing = len(a_E), np.zeros(1, bool)
        return Episodes(
            ids=np.zeros(1, np.int64), component=np.zeros(1, np.int64),
            length=np.full(1, n, np.int64), kind=np.zeros(1, np.int64), unresolved=nothing,
            ended_by_roulette=nothing, margin=np.full(1, np.nan), s_end=now.s[-1:],
            a_0=self.a_0, law_0=self.law_0, episode=np.zeros(n, np.int64), t=now.t,
            s=now.s, a_A=now.a_A, a_E=a_E, law=now.law,
        )  # fmt: skip


def _below_each_other(rows: list[tuple[Situation, Array]]) -> tuple[Situation, Array]:
    """Decisions of one row each as one situation of many."""
    if len(rows) == 1:
        return rows[0]
    single = [now for now, _ in rows]
    s, a_A, t = (np.concatenate([getattr(now, k) for now in single]) for k in ("s", "a_A", "t"))
    law = Law.stack([now.law for now in single], [1] * len(rows))
    return Situation(s, a_A, t, law), np.concatenate([a_E for _, a_E in rows])
