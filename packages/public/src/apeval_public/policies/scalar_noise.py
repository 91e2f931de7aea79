"""The truths of `double-integrator` and `lane-keeper`, by long Monte Carlo on what matters.

    python -m apeval_public.policies.scalar_noise

Of all channels only one sum of two reaches the controller, so that one Gaussian number a step has
the same law as all of them. This is a simulation of its own, written for speed; it shares no code
with the problems.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from apeval.environments import make
from apeval.problem.types import FloatArray
from apeval_public.policies import double_integrator, lane_keeper
from apeval_public.truth.compute import SEED, keep

EPISODES = {"double-integrator": 12_000_000, "lane-keeper": 3_000_000}
_BLOCK = 20_000


def farthest_mass(rng: np.random.Generator, n: int, steps: int) -> FloatArray:
    """The largest |x| of episodes of `double-integrator`.

    Args:
        rng: Random numbers.
        n: Episodes.
        steps: Their length.

    Returns:
        Shape (n,).
    """
    k_x, k_v = double_integrator.GAIN
    dt, scale = double_integrator.DT, double_integrator.NOISE * float(np.hypot(k_x, k_v))
    x, v, top = np.zeros(n), np.zeros(n), np.zeros(n)
    for _ in range(steps):
        force = rng.standard_normal(n)
        force *= scale
        force += k_x * x
        force += k_v * v
        x += dt * v
        v -= dt * force
        np.maximum(top, np.abs(x), out=top)
    return top


def farthest_car(rng: np.random.Generator, n: int, steps: int) -> FloatArray:
    """The largest |offset| of episodes of `lane-keeper`.

    Args:
        rng: Random numbers.
        n: Episodes.
        steps: Their length.

    Returns:
        Shape (n,).
    """
    k_y, k_h = lane_keeper.GAIN
    scale = float(np.hypot(k_y * lane_keeper.NOISE[0], k_h * lane_keeper.NOISE[1]))
    ahead, keeps = lane_keeper.DT * lane_keeper.SPEED, 1.0 - lane_keeper.DT / lane_keeper.LAG
    y, heading, wheel, top = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    for _ in range(steps):
        wanted = rng.standard_normal(n)
        wanted *= scale
        wanted -= k_y * y + k_h * heading
        np.clip(wanted, -lane_keeper.LARGEST, lane_keeper.LARGEST, out=wanted)
        wheel *= keeps
        wheel += (1.0 - keeps) * wanted
        y += ahead * np.sin(heading)
        heading += ahead / lane_keeper.WHEELBASE * np.tan(wheel)
        np.maximum(top, np.abs(y), out=top)
    return top


def count_beyond(
    farthest: Callable[[np.random.Generator, int, int], FloatArray],
    limit: float,
    steps: int,
    episodes: int,
    seed: int,
) -> int:
    """Episodes that leave their limits.

    Args:
        farthest: How far n episodes get.
        limit: Of |x|.
        steps: Length of an episode.
        episodes: A multiple of 20,000.
        seed: Of the random numbers.

    Returns:
        How many.
    """
    rng = np.random.default_rng(seed)
    tops = (farthest(rng, _BLOCK, steps) for _ in range(episodes // _BLOCK))
    return int(sum((top >= limit).sum() for top in tops))


def main() -> None:
    """Compute both truths, and store them."""
    for name, farthest in (("double-integrator", farthest_mass), ("lane-keeper", farthest_car)):
        problem, n = make(name), EPISODES[name]
        limit, steps = problem.parameters["limit"], problem.parameters["steps"]
        failures = count_beyond(farthest, limit, steps, n, SEED)
        p = failures / n
        found = {
            "value": p,
            "standard_error": float(np.sqrt(p * (1.0 - p) / n)),
            "method": "Monte Carlo, one noise a step that has the law of all",
            "episodes": n,
            "failures": failures,
            "seed": SEED,
        }
        keep(problem, found, "python -m apeval_public.policies.scalar_noise")


if __name__ == "__main__":
    main()
