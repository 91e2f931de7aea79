"""How large a run's error is to be expected, from what it learned: without the luck of the draw.

The estimate of a run is unbiased given what was learned, and its variance follows from the frozen
proposals: E_q[w² 1{failed}] = E_p[w 1{failed}], w = p/q. A sample of failures that does not depend
on the run, the *reference*, gives that for any proposal. So much less noisy is this than squared
errors of single runs that tens of runs can tell what else would take thousands.

A proposal may leave some failures so rare that the run hardly ever meets one; the variance is then
huge in theory, and in practice the estimate lacks their probability. They count as *lost*: failures
of which a single one would change the run's estimate by the whole truth. What is lost is a bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtri

from apeval.learn.method import CountedBatch, Learner, find_method
from apeval.problem.draws import make_key
from apeval.problem.settings import build
from apeval.problem.types import Array, FloatArray
from apeval.simulate.adversary import Adversary, Mixture, Nominal, Situation, mixture
from apeval.simulate.episodes import Episodes, join
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.knockouts.problems import NOT_RARE, PROBLEMS, Tuning

SETTINGS = {"learner": "experts"}
"""What `auto` is where there are no tables."""
_SEEDS = (900, 901, 902)
_DRAWN = 999
_FAILURES, _FEWEST = 3_000, 300  # of the reference; the fewest from so many decisions on
_DECISIONS = 20_000
_BLOCK, _ROUNDS = 500, 40
_RARE, _NOT_RARE = 0.05, 0.5  # of π_E,gt in what the reference is drawn from


@dataclass(frozen=True)
class Reference:
    """Failures of a problem, weighted as a sample of P(τ | failure)."""

    failures: Episodes
    mass: FloatArray
    """Sums to 1, (n,)."""
    truth: float
    estimate: float
    """Of the truth, from the reference: shows whether a mode is missing."""
    standard_error: float
    best: float
    """Relative variance of the estimate if all episodes of the budget came from the best of the
    proposals that were learned with a larger one."""

    @property
    def ess(self) -> float:
        """Effective number of failures."""
        return float(1.0 / (self.mass**2).sum())


@dataclass(frozen=True)
class Expected:
    """What to expect of a run's relative error."""

    lost: float
    """Probability of failures that it hardly meets, relative to the truth."""
    variance: float
    """Of the estimate, from the others, relative to the truth squared."""
    effective: float
    """Episodes that would have the same variance if all were as good as the frozen ones."""

    @property
    def square(self) -> float:
        """Mean squared relative error."""
        return self.lost**2 + self.variance


@dataclass
class _Densities:
    """log q of failures under many proposals, whose components come again and again."""

    failures: Episodes
    known: dict[tuple[int, ...], tuple[Adversary, FloatArray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.log_p = self.failures.log_density(Nominal())

    def under(self, proposal: Mixture) -> FloatArray:
        """log q of each component, (n, components)."""
        return np.stack([self._of(component) for component in proposal.components], axis=1)

    def _of(self, component: Adversary) -> FloatArray:
        key: tuple[int, ...] = (id(type(component)),)
        if is_dataclass(component):
            key += tuple(id(getattr(component, f.name)) for f in fields(component))
        if key not in self.known:  # the component is kept, so that no other gets its number
            self.known[key] = component, self.failures.log_density(component)
        return self.known[key][1]


@dataclass(frozen=True, eq=False)
class _Shifted(Adversary):
    """Standard normal disturbances with means m (T, d_E)."""

    m: FloatArray

    def sample(self, now: Situation, u: FloatArray) -> Array:
        return np.asarray(ndtri(u) + self.m[now.t])

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        m = self.m[now.t]
        return np.asarray(now.law.log_prob(a_E) + (m * a_E).sum(axis=1) - 0.5 * (m * m).sum(axis=1))


@cache
def reference(name: str) -> Reference:
    """Of a tuning problem; drawn along its known modes, or from what three learners found with a
    larger budget."""
    tuning = PROBLEMS[name]
    learned = [_learned(tuning, seed) for seed in _SEEDS]
    proposal = _average([p for p, _ in learned], _NOT_RARE if NOT_RARE in tuning.traits else _RARE)
    if tuning.towards is not None:
        shifts = [_Shifted(m) for m in tuning.towards()]
        proposal = mixture(shifts, [1.0 / len(shifts)] * len(shifts))
    failures, weights, drawn = _draw(tuning, proposal)
    x = np.zeros(drawn)
    x[: len(weights)] = weights
    truth = tuning.truth
    mass = weights / weights.sum()
    densities = _Densities(failures)
    best = min(
        _moments(densities, mass * truth, p, np.inf)[0] / truth**2 / _episodes(tuning, length)
        for p, length in learned
    )
    return Reference(failures, mass, truth, float(x.mean()), float(x.std() / np.sqrt(drawn)), best)


def _learned(tuning: Tuning, seed: int) -> tuple[Mixture, float]:
    """A frozen proposal, and the mean length of its episodes."""
    problem, method = tuning.problem(), find_method("ape")
    simulation = Simulation(problem, make_key(seed), Budget(**tuning.budget(tuning.lavish)))
    learner: Learner = method.start(problem, build(method.config, SETTINGS))
    while learner.advance(simulation):
        pass
    proposal = learner.proposal()
    simulation.budget = Budget(episodes=10**9)
    return proposal, float(simulation.run(proposal, _BLOCK, 0).length.mean())


def _episodes(tuning: Tuning, length: float) -> float:
    """Episodes of such a length in the budget."""
    return float(tuning.episodes or (tuning.steps or 0) / length)


def _average(proposals: Sequence[Mixture], nominal: float) -> Mixture:
    share = (1.0 - nominal) / len(proposals)
    components = [c for p in proposals for c in p.components]
    shares = [share * s for p in proposals for s in p.shares]
    return mixture([*components, Nominal()], [*shares, nominal])


def _draw(tuning: Tuning, proposal: Mixture) -> tuple[Episodes, FloatArray, int]:
    """Failures, their weights, and how many episodes were drawn for them."""
    simulation = Simulation(tuning.problem(), make_key(_DRAWN), Budget(episodes=10**9))
    found: list[Episodes] = []
    number, decisions = 0, 0
    for _ in range(_ROUNDS):
        batch = simulation.run(proposal, _BLOCK, simulation.episodes)
        found.append(batch.take(batch.failed))
        number, decisions = number + found[-1].n, decisions + found[-1].steps
        if number >= _FAILURES or (number >= _FEWEST and decisions >= _DECISIONS):
            break
    failures = join(found)
    densities = _Densities(failures)
    weights = np.exp(densities.log_p - _mixed(densities.under(proposal), proposal))
    return failures, weights, simulation.episodes


def _mixed(log_q: FloatArray, proposal: Mixture) -> FloatArray:
    share = np.array(proposal.shares) / sum(proposal.shares)
    return np.asarray(logsumexp(log_q + np.log(share), axis=1))


def _moments(
    densities: _Densities, mass: FloatArray, proposal: Mixture, heaviest: float, strata: bool = True
) -> tuple[float, float]:
    """Variance of w·1{failed} under the proposal, without failures that weigh more than the
    heaviest; and the mass of these. `mass` sums to the truth; in strata, the components' own means
    do not add to the variance."""
    log_q = densities.under(proposal)
    log_mixed = _mixed(log_q, proposal)
    w = np.exp(densities.log_p - log_mixed)
    lost = w > heaviest
    kept = np.where(lost, 0.0, mass)
    moment = float(kept @ np.where(lost, 0.0, w))
    if strata:
        share = np.array(proposal.shares) / sum(proposal.shares)
        means = kept @ np.exp(log_q - log_mixed[:, None])
        square = float(share @ means**2)
    else:
        square = float(kept.sum()) ** 2
    return max(moment - square, 0.0), float(mass[lost].sum())


def expected(
    name: str, proposal: Mixture, counted: Sequence[CountedBatch], frozen: int
) -> Expected:
    """Of a run that ended with this proposal, counts batches of learning, and drew so many episodes
    in the frozen stage."""
    known = reference(name)
    v, mass = known.truth, known.mass * known.truth
    rest = 1.0 - sum(batch.share for batch in counted)
    stages: list[tuple[Mixture, float, int, bool]] = [(proposal, rest, frozen, True)]
    stages += [(b.proposal, b.share, b.episodes.n, False) for b in counted]
    densities = _Densities(known.failures)
    lost, variance, spent = 0.0, 0.0, 0.0
    for q, share, n, strata in stages:
        one, gone = _moments(densities, mass, q, n * v / share, strata)
        lost += share * gone / v
        variance += share**2 * one / (n * v**2)
        spent += share**2 / n
    return Expected(lost, variance, 1.0 / spent)


def summary(name: str) -> dict[str, Any]:
    """What a reader needs to judge a reference."""
    known = reference(name)
    return {
        "failures": known.failures.n,
        "ess": known.ess,
        "truth": known.truth,
        "estimate": known.estimate,
        "standard_error": known.standard_error,
        "best": known.best,
    }
