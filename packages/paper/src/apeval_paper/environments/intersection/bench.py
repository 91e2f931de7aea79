"""What the intersection's claims rest on, measured: the twin equals highway-env, both are fast,
and the floor that no method can beat by much."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from apeval.problem.types import Array, FloatArray
from apeval_paper.environments.intersection.columns import CRASHED, PENDING, SEPARATION, K
from apeval_paper.environments.intersection.dp import DEFAULT, Grid, solve
from apeval_paper.environments.intersection.geometry import PRESETS, V0, V1, Geometry
from apeval_paper.environments.intersection.gym_env import IntersectionAdversary
from apeval_paper.environments.intersection.highway import HighwayStep, reset
from apeval_paper.environments.intersection.sampling import importance_sampling, nominal_actions
from apeval_paper.environments.intersection.state import failed
from apeval_paper.environments.intersection.twin import TwinStep, episodes

TURN = 0.3
"""Seconds for which one simulator runs before the next has its turn."""

#: The horizon falls into the conflict: impacts can be pending when it ends.
CUT_SHORT = V1.changed(ego_start=80.0, challenger_start=84.0)

#: Both presets and more: other starts, speeds, horizons, limits and simulation rates.
GEOMETRIES: tuple[Geometry, ...] = (
    V0,
    V1,
    CUT_SHORT,
    V1.changed(challenger_start=86.0, challenger_speed=6.0),
    V0.changed(decisions=8, ego_start=40.0, ego_speed=9.0, challenger_start=40.0),
    V1.changed(decisions=4, ego_speed=7.0, acc_limit=9.0, std=1.0, challenger_start=70.0),
    V0.changed(decisions=5, ego_start=75.0, box=4.0, challenger_start=65.0, frames=20),
    V0.changed(decisions=9, ego_start=30.0, challenger_start=0.0, challenger_speed=14.0, std=0.8),
)


def twin_episode(g: Geometry, a_E: Array) -> FloatArray:
    """Final states of whole episodes on the twin, decision by decision."""
    step, x = TwinStep(g), reset(len(a_E), g)
    for t in range(g.decisions):
        alive = ~failed(x)
        x[alive] = step(x[alive], a_E[alive, t])
    return x


def hard_actions(g: Geometry, n: int, rng: np.random.Generator) -> tuple[FloatArray, int]:
    """n episodes' a_E: a third nominal, a third widened 2 and 4 times, an eighth at the corners
    of the box, the rest picked among many on the twin for an impact pending at the horizon
    (their number is returned, too) or a separation near 0."""
    third, corner = n // 3, n // 8
    parts = [nominal_actions(g, third, rng)]
    parts += [nominal_actions(g, third // 2, rng, scale) for scale in (2.0, 4.0)]
    parts.append(g.box * rng.choice([-1.0, 1.0], size=(corner, g.decisions, g.d_E)))
    rest = n - sum(map(len, parts))
    pool = nominal_actions(g, max(2_000, 50 * n), rng, 3.0)
    x = twin_episode(g, pool)
    pending = np.flatnonzero((x[:, PENDING] > 0.5) & ~failed(x))[: rest // 2]
    close = np.argsort(np.abs(x[:, SEPARATION]), kind="stable")[: rest - len(pending)]
    parts += [pool[pending], pool[close]]
    return np.concatenate(parts), len(pending)


def equivalence(
    episodes_each: int = 800,
    geometries: Sequence[Geometry] = GEOMETRIES,
    *,
    stock: bool = False,
    seed: int = 10_000,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, Any]:
    """Run the same a_E on highway-env through Gymnasium's interface and on both kernels of the
    twin, and count where outcome or length differ."""
    rng = np.random.default_rng(seed)
    total = crashes = pending = mismatches = 0
    furthest = 0.0
    for g in geometries:
        actions, held = hard_actions(g, episodes_each, rng)
        outcome, length = episodes(g, actions)
        states = twin_episode(g, actions)
        env = IntersectionAdversary(geometry=g, stock=stock)
        for i, a_E in enumerate(actions):
            env.reset()
            for n, a in enumerate(a_E, start=1):  # noqa: B007
                _, _, crashed, over, _ = env.step(a)
                if crashed or over:
                    break
            x, twin = env.state[0], states[i]
            equal = crashed == bool(outcome[i]) == bool(twin[CRASHED]) and n == length[i]
            mismatches += int(not equal or x[K] != twin[K])
            if not crashed:  # a crash pushes the bodies, which the twin leaves out
                furthest = max(furthest, float(np.abs(x - twin).max()))
            crashes += crashed
            total += 1
            progress(total)
        pending += held
    return {
        "episodes": total,
        "geometries": len(geometries),
        "crashes": crashes,
        "impacts_pending_at_horizon": pending,
        "mismatches": mismatches,
        "largest_state_difference": furthest,
        "reference": "stock highway-env" if stock else "highway-env without lane look-ups",
        "seed": seed,
    }


def speed(name: str, seconds: float = 5.0, seed: int = 10_000) -> dict[str, Any]:
    """Episodes per second with nominal a_E on one core: stock highway-env, the same without lane
    look-ups, and the twin (whole episodes), taking turns so that other load hits all alike."""
    g = PRESETS[name]
    actions = nominal_actions(g, 200_000, np.random.default_rng(seed))
    episodes(g, actions[:10])  # compiles
    step = HighwayStep(g)

    def stock(i: int) -> int:
        _run(env, actions[i % 1000])
        return 1

    def fast(i: int) -> int:
        x, a_E = reset(20, g), actions[i % 1000 : i % 1000 + 20]
        for t in range(g.decisions):
            alive = ~failed(x)
            x[alive] = step(x[alive], a_E[alive, t])
        return 20

    def twin(i: int) -> int:
        episodes(g, actions)
        return len(actions)

    env = IntersectionAdversary(geometry=g, stock=True)
    rates = _rates((stock, fast, twin), seconds)
    ratios = {f"{k}_ratio": rates[k] / rates["stock"] for k in ("fast", "twin")}
    return {"problem": name, "unit": "episodes per second", **rates, **ratios, "seed": seed}


def _run(env: IntersectionAdversary, a_E: FloatArray) -> None:
    env.reset()
    for a in a_E:
        _, _, crashed, over, _ = env.step(a)
        if crashed or over:
            return


def _rates(runs: Sequence[Callable[[int], int]], seconds: float) -> dict[str, float]:
    """Episodes per second of each run, measured in turns for `seconds` each."""
    done, passed = [0] * len(runs), [0.0] * len(runs)
    while min(passed) < seconds:
        for i, run in enumerate(runs):
            start = time.perf_counter()
            while (turn := time.perf_counter() - start) < TURN:
                done[i] += run(done[i])
            passed[i] += turn
    return {run.__name__: d / p for run, d, p in zip(runs, done, passed, strict=True)}


def floor(name: str, n: int = 100_000, seed: int = 10_000, grid: Grid = DEFAULT) -> dict[str, Any]:
    """How well anyone can do: the zero-variance adversary's spread over n twin episodes."""
    s = importance_sampling(solve(PRESETS[name], grid), n, seed)
    return {
        "problem": name,
        "value": s.value,
        "standard_error": s.standard_error,
        "failure_rate": s.failure_rate,
        "variation_per_episode": s.variation,
        "relative_error_at_1000_episodes": s.variation / 1000**0.5,
        "episodes": n,
        "seed": seed,
    }
