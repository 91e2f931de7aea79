"""`rp25`, `rp28`, `rp77`, `rp107`, `rp110`, `rp111`: reliability problems of otbenchmark.

github.com/openturns/otbenchmark, after the "black-box reliability challenge" of TNO (Rózsás and
Slobbe, 2019). The rule, written down before any of them was run: of the list that its
`ReliabilityBenchmarkProblemList` returns, all whose reference is below 1e-4. Failure is g(x) < 0;
all inputs are independent Gaussians. Its references have three digits and are up to 6 % off; the
truths here are closed forms and integrals over one variable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr

from apeval.problem.draws import Draws
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Truth
from apeval.problem.types import Array, FloatArray
from apeval_public.truth.known import with_truth

SOURCE = "github.com/openturns/otbenchmark"
_TOLERANCE = 1e-11
_REACH = 12.0


@dataclass(frozen=True)
class ReliabilityCase:
    """A function that must not fall below 0, and its Gaussian inputs."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    g: Callable[[FloatArray], FloatArray]
    reference: float
    """What otbenchmark has."""
    truth: Callable[[], float]


def _g25(x: FloatArray) -> FloatArray:
    x1, x2 = x[:, 0], x[:, 1]
    return np.maximum(x1**2 - 8.0 * x2 + 16.0, -16.0 * x1 + x2 + 32.0)


def _g28(x: FloatArray) -> FloatArray:
    y: FloatArray = x[:, 0] * x[:, 1] - 146.14
    return y


def _g77(x: FloatArray) -> FloatArray:
    x1, x2, x3 = x.T
    return np.asarray(np.where(x3 <= 5.0, x1 - x2 - x3, x3 - x2))


def _g107(x: FloatArray) -> FloatArray:
    y: FloatArray = 5.0 * np.sqrt(10.0) - x.sum(axis=1)
    return y


def _g110(x: FloatArray) -> FloatArray:
    x1, x2 = x[:, 0], x[:, 1]
    g1 = np.where(x1 <= 3.5, 0.85 - 0.1 * x1, 4.0 - x1)
    g2 = np.where(x2 <= 2.0, 2.3 - x2, 0.5 - 0.1 * x2)
    return np.minimum(g1, g2)


def _g111(x: FloatArray) -> FloatArray:
    y: FloatArray = 12.5 - np.abs(x[:, 0] * x[:, 1])
    return y


def _mean(f: Callable[[float], float], points: tuple[float, ...]) -> float:
    """E f(Z) of a standard normal Z, piece by piece between the points."""
    edges = sorted({-_REACH, _REACH, *points})

    def weighted(z: float) -> float:
        return f(z) * float(np.exp(-0.5 * z * z)) / float(np.sqrt(2.0 * np.pi))

    pieces = pairwise(edges)
    return float(
        sum(quad(weighted, a, b, epsabs=0.0, epsrel=_TOLERANCE, limit=200)[0] for a, b in pieces)
    )


def _p25() -> float:
    def inside(z: float) -> float:
        low, high = (z * z + 16.0) / 8.0, 16.0 * z - 32.0
        return float(ndtr(-low) - ndtr(-high)) if low < high else 0.0

    corner = float(64.0 - np.sqrt(64.0**2 - 272.0))  # z² + 16 = 8 (16 z − 32)
    return _mean(inside, (corner, corner + 1.0, 4.0, 6.0))


def _p28() -> float:
    def below(z: float) -> float:
        x1 = 78_064.0 + 11_710.0 * z
        edge = (146.14 / x1 - 0.0104) / 0.00156
        return float(ndtr(edge) if x1 > 0.0 else ndtr(-edge))

    zero = -78_064.0 / 11_710.0
    return _mean(below, (zero, zero + 0.3, zero + 1.0, zero + 2.5, 0.0))


def _p77() -> float:
    def fails(z: float) -> float:
        x3 = 4.0 + z
        return float(ndtr(-(10.0 - x3) / np.sqrt(1.25)) if x3 <= 5.0 else ndtr(-x3))

    return _mean(fails, (0.0, 1.0, 3.0))


def _p111() -> float:
    return _mean(lambda z: 2.0 * float(ndtr(-12.5 / abs(z))) if z else 0.0, (-3.5, 0.0, 3.5))


CASES = {
    "rp25": ReliabilityCase((0.0,) * 2, (1.0,) * 2, _g25, 4.148566293759747e-05, _p25),
    "rp28": ReliabilityCase(
        (78_064.0, 0.0104), (11_710.0, 0.00156), _g28, 1.4532945550025393e-07, _p28
    ),
    "rp77": ReliabilityCase((10.0, 0.0, 4.0), (0.5, 1.0, 1.0), _g77, 2.87e-7, _p77),
    "rp107": ReliabilityCase((0.0,) * 10, (1.0,) * 10, _g107, 2.92e-7, lambda: float(ndtr(-5.0))),
    "rp110": ReliabilityCase(
        (0.0,) * 2,
        (1.0,) * 2,
        _g110,
        3.19e-5,
        lambda: float(ndtr(-4.0) + ndtr(-5.0) - ndtr(-4.0) * ndtr(-5.0)),
    ),
    "rp111": ReliabilityCase((0.0,) * 2, (1.0,) * 2, _g111, 7.65e-7, _p111),
}


@register(*CASES, description="a reliability problem of otbenchmark, by its number (1e-7 … 4e-5)")
def reliability_problem(name: str = "rp25") -> Problem:
    """A function of independent Gaussians that must not fall below 0."""
    case = CASES[name]
    dim = len(case.mean)

    def step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
        return a_E

    problem = Problem(
        nominal=Normal(case.mean, case.std, dim=dim),
        reset=lambda draws: np.tile(np.array(case.mean), (draws.n, 1)),
        step=step,
        failed=lambda x: case.g(x) < 0.0,
        margin=case.g,
        horizon=1,
        chunk=4096,
        name=name,
        description=f"{name.upper()} of otbenchmark, {dim} inputs",
    )
    method = "closed form, or an integral over one variable"
    about = {"source": SOURCE, "published": case.reference}
    return with_truth(problem, Truth(case.truth(), 0.0, method, about))
