"""v*(s_0) by sampling on the twin: plain Monte Carlo, and importance sampling with the
zero-variance adversary. Both are independent checks of the dynamic programme: the adversary
only chooses where to look, its weights make the estimate unbiased whatever it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from apeval.problem.laws import TruncatedNormal
from apeval.problem.types import FloatArray
from apeval_paper.environments.intersection.adversary import ZeroVariance
from apeval_paper.environments.intersection.dp import IntersectionSolution
from apeval_paper.environments.intersection.geometry import Geometry
from apeval_paper.environments.intersection.highway import reset
from apeval_paper.environments.intersection.state import failed
from apeval_paper.environments.intersection.twin import TwinStep, episodes

BATCH = 100_000


@dataclass(frozen=True)
class Sampled:
    """An estimate from n independent episodes."""

    value: float
    standard_error: float
    episodes: int
    failure_rate: float
    """Failures under the sampling distribution."""

    @property
    def relative_error(self) -> float:
        """Standard error / value."""
        return self.standard_error / self.value

    @property
    def variation(self) -> float:
        """Coefficient of variation of a single episode."""
        return self.relative_error * math.sqrt(self.episodes)


def nominal_actions(
    g: Geometry, n: int, rng: np.random.Generator, scale: float = 1.0
) -> FloatArray:
    """a_E of n whole episodes from N(0, (scale·std)²) truncated to the box: by rejection where
    that rejects little, which is faster than the inverse CDF."""
    if g.box < 2.0 * g.std * scale:
        law = TruncatedNormal(0.0, g.std * scale, -g.box, g.box, dim=g.d_E).given(None, None)
        flat = law.sample(rng.random((n * g.decisions, g.d_E)))
        return flat.reshape(n, g.decisions, g.d_E)
    a = rng.standard_normal((n, g.decisions, g.d_E)) * (g.std * scale)
    while True:
        outside = np.abs(a) > g.box
        missing = int(outside.sum())
        if not missing:
            return a
        a[outside] = rng.standard_normal(missing) * (g.std * scale)


def monte_carlo(g: Geometry, n: int, seed: int) -> Sampled:
    """Plain Monte Carlo."""
    rng = np.random.default_rng(seed)
    failures = 0
    for start in range(0, n, BATCH):
        outcome, _ = episodes(g, nominal_actions(g, min(BATCH, n - start), rng))
        failures += int(outcome.sum())
    p = failures / n
    return Sampled(p, (p * (1.0 - p) / n) ** 0.5, n, p)


def weighted_episodes(
    solution: IntersectionSolution, n: int, rng: np.random.Generator
) -> FloatArray:
    """1{failure}·π_E,gt/q of n episodes under the zero-variance adversary."""
    g, q = solution.g, ZeroVariance(solution)
    step = TwinStep(g)
    x, log_w = reset(n, g), np.zeros(n)
    alive = np.arange(n)
    for _ in range(g.decisions):
        a, log_q = q.sample(x[alive], rng.random((len(alive), q.uniforms)))
        log_w[alive] += q.law.log_prob(a) - log_q
        x[alive] = step(x[alive], a)
        alive = alive[~failed(x[alive])]
    w: FloatArray = np.exp(log_w) * failed(x)
    return w


def importance_sampling(solution: IntersectionSolution, n: int, seed: int) -> Sampled:
    """Importance sampling with the zero-variance adversary."""
    rng = np.random.default_rng(seed)
    parts = [
        weighted_episodes(solution, min(BATCH, n - start), rng) for start in range(0, n, BATCH)
    ]
    w = np.concatenate(parts)
    return Sampled(
        float(w.mean()), float(w.std(ddof=1)) / n**0.5, n, float(np.count_nonzero(w)) / n
    )
