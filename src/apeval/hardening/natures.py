"""Who draws the disturbances of an episode that a policy is trained in, with exact weights.

An episode is drawn by one component of a mixture from start to end, as in a frozen stage:
q(τ) = Σ_j λ_j q_j(τ) with π_E,gt among the components. The weight of what has happened so far,
p/q, is then at most 1/λ of π_E,gt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

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
    """log p/q of an episode as it unfolds."""

    def __init__(self, nature: Mixture, a_0: Array, law_0: Law | None) -> None:
        self.nature, self.a_0, self.law_0 = nature, a_0, law_0
        self._rows: list[tuple[Situation, Array]] = []
        self._log_p = 0.0 if law_0 is None else float(law_0.log_prob(a_0)[0])
        self._log_q = np.array(
            [
                0.0 if law_0 is None else float(q.log_prob_initial(law_0, a_0)[0])
                for q in nature.components
            ]
        )
        shares = np.asarray(nature.shares, np.float64)
        self._log_shares = np.log(shares / shares.sum())
        self._known: float | None = None

    def add(self, now: Situation, a_E: Array) -> None:
        """A decision of nature."""
        self._known = None
        self._rows.append((now, a_E))
        self._log_p += float(now.law.log_prob(a_E)[0])
        for j, q in enumerate(self.nature.components):
            if not q.persistent:
                self._log_q[j] += float(q.log_prob(now, a_E)[0])

    def log_weight(self) -> float:
        """log p/q of all decisions so far."""
        if self._known is None:
            self._known = self._computed()
        return self._known

    def _computed(self) -> float:
        log_q = self._log_q.copy()
        together = [j for j, q in enumerate(self.nature.components) if q.persistent]
        if together and self._rows:  # their decisions share a random number: no density of one
            so_far = self._episodes()
            for j in together:
                log_q[j] = float(self.nature.components[j].log_density(so_far)[0])
        return self._log_p - float(logsumexp(self._log_shares + log_q))

    def _episodes(self) -> Episodes:
        rows = [now for now, _ in self._rows]
        n = len(rows)

        def stacked(name: str) -> Any:
            return np.concatenate([getattr(now, name) for now in rows])

        nothing = np.zeros(1, bool)
        return Episodes(
            ids=np.zeros(1, np.int64), component=np.zeros(1, np.int64),
            length=np.full(1, n, np.int64), kind=np.zeros(1, np.int64), unresolved=nothing,
            ended_by_roulette=nothing, margin=np.full(1, np.nan), s_end=rows[-1].s,
            a_0=self.a_0, law_0=self.law_0, episode=np.zeros(n, np.int64), t=stacked("t"),
            s=stacked("s"), a_A=stacked("a_A"), a_E=np.concatenate([a for _, a in self._rows]),
            law=Law.stack([now.law for now in rows], [1] * n),
        )  # fmt: skip
