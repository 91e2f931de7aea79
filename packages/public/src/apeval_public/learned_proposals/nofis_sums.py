"""The truths of Levy and Powell anew: both are sums of independent terms, so that the laws of the
terms, on a fine lattice, are folded.

    python -m apeval_public.learned_proposals.nofis_sums
"""

from __future__ import annotations

import numpy as np
from scipy.fft import irfft, rfft
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from apeval.environments import make
from apeval.problem.types import FloatArray
from apeval_public.learned_proposals.nofis_functions import levy_terms, powell_groups
from apeval_public.truth.compute import SEED, keep

_CELLS = 60_000
_COARSE = 30_000
_POINTS = 4_000_001
_REACH = 9.0


def lattice_law(
    values: FloatArray, weights: FloatArray | None, top: float, cells: int
) -> FloatArray:
    """A law on the lattice 0, δ, 2δ, … top; what lies beyond is left out.

    Args:
        values: Where the mass is, at least 0.
        weights: How much; equal shares where None.
        top: The last point of the lattice.
        cells: How fine it is.

    Returns:
        Probabilities, shape (cells + 1,), each value's mass split between its two neighbours so
        that its mean is kept.
    """
    at = values * (cells / top)
    kept = at < cells
    share = np.full(len(values), 1.0 / len(values)) if weights is None else weights
    low = np.floor(at[kept]).astype(np.int64)
    part = at[kept] - low
    law: FloatArray = np.bincount(low, share[kept] * (1.0 - part), cells + 1).astype(np.float64)
    law += np.bincount(low + 1, share[kept] * part, cells + 1)
    return law


def folded(laws: list[tuple[FloatArray, int]]) -> float:
    """The probability that a sum of independent terms is at most the lattice's top.

    Args:
        laws: The terms' laws, and how often each comes.

    Returns:
        The probability; mass at the top itself counts half.
    """
    cells = len(laws[0][0])
    total: FloatArray = np.zeros(cells)
    total[0] = 1.0
    size = 2 * cells
    for law, times in laws:
        for _ in range(times):
            total = np.maximum(irfft(rfft(total, size) * rfft(law, size), size)[:cells], 0.0)
    return float(total[:-1].sum() + 0.5 * total[-1])


def levy_probability(dim: int = 20, top: float = 6.0, cells: int = _CELLS) -> float:
    """P(Levy ≤ top).

    Args:
        dim: Coordinates.
        top: The largest value that counts as a failure.
        cells: How fine the lattice is.

    Returns:
        The probability.
    """
    edges = np.linspace(-_REACH, _REACH, _POINTS)
    x, mass = 0.5 * (edges[1:] + edges[:-1]), np.diff(ndtr(edges))
    first, middle, last = (lattice_law(it, mass, top, cells) for it in levy_terms(x))
    return folded([(first, 1), (middle, dim - 2), (last, 1)])


def powell_probability(seed: int, log2_points: int = 21, dim: int = 40, top: float = 4.0) -> float:
    """P(Powell ≤ top), from the law of one group of four by randomised quasi-Monte Carlo.

    Args:
        seed: Of the scrambling.
        log2_points: Points of the group's law.
        dim: Coordinates.
        top: The largest value that counts as a failure.

    Returns:
        The probability.
    """
    points = qmc.Sobol(4, seed=seed).random_base2(log2_points)
    z = ndtri(np.clip(points, 1e-16, 1.0 - 1e-16))
    return folded([(lattice_law(powell_groups(z)[:, 0], None, top, _CELLS), dim // 4)])


def main() -> None:
    """Compute both truths, and store them."""
    command = "python -m apeval_public.learned_proposals.nofis_sums"
    fine, coarse = levy_probability(), levy_probability(cells=_COARSE)
    lattice = "folded laws of independent terms on a lattice"
    found = {"value": fine, "standard_error": abs(fine - coarse), "method": lattice}
    keep(make("nofis-levy"), {**found, "lattice": [_COARSE, _CELLS]}, command)
    values = np.array([powell_probability(seed) for seed in range(SEED, SEED + 8)])
    found = {
        "value": float(values.mean()),
        "standard_error": float(values.std(ddof=1) / np.sqrt(len(values))),
        "method": f"{lattice}, one group's law by quasi-Monte Carlo",
    }
    keep(make("nofis-powell"), {**found, "lattice": [_CELLS], "seed": SEED}, command)


if __name__ == "__main__":
    main()
