"""Speed of the simulators, each as a ratio to the stock one in the same run."""

from __future__ import annotations

import time
from typing import Any

from apeval.environments import make
from apeval.problem.draws import make_key
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.registry import ExperimentRequest

_SECONDS, _TURN = 8.0, 64


def intersections(request: ExperimentRequest) -> list[dict[str, Any]]:
    """highway-env without lane look-ups, and the twin, against stock highway-env."""
    from apeval_paper.environments.intersection.bench import speed

    rows = []
    for name in ("int-v0", "int-v1"):
        request.tick(name, 0, 1)
        rates = speed(name, seed=request.first_seed)
        for fast, bar in (("fast", 3.3 if name == "int-v0" else 4.0), ("twin", 10_000.0)):
            rows.append(
                {
                    "what": f"{name}, {'highway-env, our path' if fast == 'fast' else 'twin'}",
                    "stock": rates["stock"],
                    "ours": rates[fast],
                    "ratio": rates[f"{fast}_ratio"],
                    "bar": bar,
                }
            )
    return rows


def lunarlander(request: ExperimentRequest) -> dict[str, Any]:
    """Our lander against gymnasium's, taking turns so that other load hits both alike."""
    runs = {
        name: Simulation(make(name), make_key(request.first_seed), Budget(episodes=10**9))
        for name in ("lunarlander@gymnasium", "lunarlander")
    }
    seconds = dict.fromkeys(runs, 0.0)
    for simulation in runs.values():
        simulation.run(only(Nominal()), 8, 0)  # compile and build before the clock starts
        simulation.episodes = 0
    request.tick("lunarlander", 0, 1)
    while min(seconds.values()) < _SECONDS:
        for name, simulation in runs.items():
            started = time.perf_counter()
            simulation.run(only(Nominal()), _TURN, simulation.episodes)
            seconds[name] += time.perf_counter() - started
    stock, ours = (runs[name].episodes / seconds[name] for name in runs)
    return {
        "what": "lunarlander, our step",
        "stock": stock,
        "ours": ours,
        "ratio": ours / stock,
        "bar": 1.8,
    }


def as_text(rows: list[dict[str, Any]]) -> str:
    """The ratios as a table."""
    lines = [
        "| simulator | stock, episodes/s | ours, episodes/s | ratio | wanted |",
        "|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r['what']} | {r['stock']:,.1f} | {r['ours']:,.1f} | {r['ratio']:,.1f} "
            f"| {r['bar']:,.1f} |"
        )
    return "\n".join(lines)
