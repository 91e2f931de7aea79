"""`nofis-leaf`, `nofis-cube`, `nofis-levy`, `nofis-rosen`, `nofis-powell`: functions of a Gaussian.

Gao, Zhang, Daniel and Boning, "NOFIS: Normalizing Flow for Rare Circuit Failure Analysis", DAC
2024; definitions and golden values from github.com/zhengqigao/NOFIS-DAC24 (`utils/testcase.py`),
numbers of calls from its settings. One call of the function is one episode of one decision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr
from scipy.stats import ncx2

from apeval.problem.draws import Draws
from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Truth
from apeval.problem.types import Array, FloatArray
from apeval_public.learned_proposals.nofis_functions import levy, powell, rosenbrock
from apeval_public.truth.known import with_truth
from apeval_public.truth.stored import stored

SOURCE = "github.com/zhengqigao/NOFIS-DAC24, utils/testcase.py"
_CENTRE, _CUBE = 3.8, 1.8


@dataclass(frozen=True)
class NofisCase:
    """A function with the values that count as failures."""

    dim: int
    value: Callable[[FloatArray], FloatArray]
    low: float
    high: float
    """Failure: low ≤ value ≤ high."""
    calls: int
    """Evaluations that the published method takes."""
    golden: float
    """The published truth."""
    truth: Callable[[], Truth] | None = None
    """The truth where it is no stored one."""


def _leaf(x: FloatArray) -> FloatArray:
    away = np.minimum(((x - _CENTRE) ** 2).sum(axis=1), ((x + _CENTRE) ** 2).sum(axis=1))
    return np.asarray(away - 1.0)


def _cube(x: FloatArray) -> FloatArray:
    return np.asarray((_CUBE - x).max(axis=1))


def _leaf_truth() -> Truth:
    p = 2.0 * float(ncx2.cdf(1.0, 2, 2.0 * _CENTRE**2))
    return Truth(p, 0.0, "closed form: two discs, noncentral χ²")


def _cube_truth() -> Truth:
    return Truth(float(ndtr(-_CUBE)) ** 6, 0.0, "closed form: Φ(−1.8)⁶")


def _rosen_truth() -> Truth:
    return Truth(4.688e-4, 3.1e-7, "Monte Carlo, as published", {"episodes": 5_000_000_000})


CASES = {
    "nofis-leaf": NofisCase(2, _leaf, -np.inf, 0.0, 32_050, 4.74e-6, _leaf_truth),
    "nofis-cube": NofisCase(6, _cube, -np.inf, 0.0, 197_500, 2.1516e-9, _cube_truth),
    "nofis-levy": NofisCase(20, levy, 0.0, 6.0, 48_200, 3.656e-6),
    "nofis-rosen": NofisCase(10, rosenbrock, 3.48, 3.52, 7_000, 4.688e-4, _rosen_truth),
    "nofis-powell": NofisCase(40, powell, -np.inf, 4.0, 7_000, 3.149e-5),
}


@register(*CASES, description="a function of a Gaussian, from the NOFIS paper (2e-9 … 5e-4)")
def nofis(name: str = "nofis-leaf") -> Problem:
    """One of the paper's five synthetic functions; fails where its value lies in an interval."""
    case = CASES[name]

    def margin(x: Array) -> FloatArray:
        y = case.value(x)
        return np.maximum(case.low - y, y - case.high)

    def step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
        return a_E

    problem = Problem(
        nominal=Normal(0.0, 1.0, dim=case.dim),
        reset=lambda draws: np.zeros((draws.n, case.dim)),
        step=step,
        failed=lambda x: margin(x) <= 0.0,
        margin=margin,
        horizon=1,
        chunk=4096,
        name=name,
        description=f"{name.partition('-')[2].capitalize()} of NOFIS, {case.dim} dimensions",
    )
    known = stored(name, {}) if case.truth is None else case.truth()
    if known is None:
        return problem
    provenance = {**known.provenance, "source": SOURCE, "published": case.golden}
    return with_truth(problem, replace(known, provenance=provenance))
