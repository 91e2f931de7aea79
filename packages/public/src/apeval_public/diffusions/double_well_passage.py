"""The passage probability of the double well, by quadrature forward in time on refined grids.

    python -m apeval_public.diffusions.double_well_passage

Both coordinates move on their own, so that a step is two products of matrices; only the target, a
disc, joins them. A cell that the disc cuts is absorbed in proportion to the part within.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from apeval.environments import make
from apeval.problem.types import FloatArray
from apeval_public.diffusions.double_well_score import DT, STEPS, TARGET, drift, score
from apeval_public.truth.compute import keep

_X, _Y = (-2.2, 2.2), (-1.4, 1.4)
_INSIDE = 21
SPACINGS = (0.0125, 0.01, 0.008)
"""Of the grid in space; one step's noise has a standard deviation of 0.032 for ε = 0.1."""


def passage(epsilon: float, spacing: float) -> float:
    """P(score ≥ 0.95 after some step).

    Args:
        epsilon: The strength of the noise.
        spacing: Of the grid.

    Returns:
        The probability.
    """
    noise = float(np.sqrt(DT * epsilon))
    x, y = (_cells(*span, spacing) for span in (_X, _Y))
    zero = np.zeros(1)
    Kx, Ky = (
        _kernel(x, drift(x, zero)[0], noise, spacing),
        _kernel(y, drift(zero, y)[1], noise, spacing),
    )
    absorbed = _within(x, y, spacing)
    first_x = _kernel(x, np.array([-1.0]), noise, spacing)[:, 0]
    first_y = _kernel(y, zero, noise, spacing)[:, 0]
    f, p = np.outer(first_x, first_y), 0.0
    for step in range(STEPS):
        if step:
            f = Kx @ f @ Ky.T
        p += float((absorbed * f).sum())
        f = (1.0 - absorbed) * f
    return p


def _cells(low: float, high: float, spacing: float) -> FloatArray:
    return np.asarray(low + spacing * (np.arange(round((high - low) / spacing)) + 0.5), np.float64)


def _kernel(to: FloatArray, after: FloatArray, noise: float, spacing: float) -> FloatArray:
    """The probability of each cell from each drifted point; midpoints serve where a cell is small
    beside the noise."""
    density = np.exp(-0.5 * ((to[:, None] - after[None, :]) / noise) ** 2)
    return np.asarray(density * (spacing / (np.sqrt(2.0 * np.pi) * noise)), np.float64)


def _within(x: FloatArray, y: FloatArray, spacing: float) -> FloatArray:
    """The part of every cell that lies in the target."""
    inner = spacing * ((np.arange(_INSIDE) + 0.5) / _INSIDE - 0.5)
    part = np.zeros((len(x), len(y)))
    near_x = np.flatnonzero(np.abs(x - 1.0) < 0.3)
    near_y = np.flatnonzero(np.abs(y) < 0.3)
    for i in near_x:
        gx = (x[i] + inner)[:, None, None]
        gy = (y[near_y][None, :, None]) + inner[None, None, :]
        part[i, near_y] = (score(gx, gy) >= TARGET).mean(axis=(0, 2))
    return part


def compute(epsilon: float) -> dict[str, Any]:
    """The truth from three grids, extrapolated to none.

    Args:
        epsilon: The strength of the noise.

    Returns:
        Value, error and grids; the error is the finest grid's distance from the next.
    """
    values = {str(h): passage(epsilon, h) for h in SPACINGS}
    finest, next_ = values[str(SPACINGS[-1])], values[str(SPACINGS[-2])]
    return {
        "value": finest,
        "standard_error": abs(finest - next_),
        "method": "deterministic quadrature",
        "error_is": "difference of the two finest grids",
        "grids": values,
    }


def main() -> None:
    """Compute and store the truths of the strengths that the benchmark has."""
    for epsilon in (0.1, 0.05):
        problem = make("double-well", epsilon=epsilon)
        keep(problem, compute(epsilon), "python -m apeval_public.diffusions.double_well_passage")


if __name__ == "__main__":
    main()
