"""Episodes per second with one worker and with two, on a simulator of known cost."""

from __future__ import annotations

import importlib.util
import time
from statistics import median
from typing import Any

from apeval.environments import make
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.run.evaluate import evaluate
from apeval.run.frozen_stage import run_frozen_stage
from apeval.run.threads import one_thread
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.backends import find_backend
from apeval.simulate.episode_source import EpisodeSource
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench import busy
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment
from apeval_bench.timed import Timed

_CASES = {0.1: (8, 10, 640), 1.0: (8, 10, 64), 10.0: (2, 10, 8), 100.0: (1, 2, 4)}
"""Milliseconds per step → episodes of a block, decisions of an episode, and episodes of a
measurement: somewhat less than a second of one core."""
_BARS = {("processes", 10.0): 1.7, ("ray", 10.0): 1.6, ("processes", 1.0): 1.5}
"""Throughput of two workers over that of serial."""
_SHARE = 0.8


@experiment("bench", "scale", "throughput of one and two workers of each backend", seeds=5)
def scale(request: ExperimentRequest) -> ExperimentReport:
    """Serial and each backend by turns, so that other load of the machine hits both alike."""
    backends = ["processes", *(["ray"] if importlib.util.find_spec("ray") else [])]
    cases = [(c, b, w) for c in _CASES for b in backends for w in (1, 2)]
    rows = []
    for k, (cost, backend, workers) in enumerate(cases):
        request.tick(f"{backend}, {workers} at {cost:g} ms", k, len(cases))
        rows.append(compare(cost, backend, workers, request))
    driving = simulator_share(request)
    text = "\n\n".join([_as_text(rows), _share_as_text(driving)])
    passed = driving["median"] >= _SHARE and all(
        row["ratio"] >= row["bar"] for row in rows if row["bar"] is not None
    )
    return ExperimentReport({"rows": rows, "simulator_share": driving}, text, passed=passed)


def compare(cost: float, backend: str, workers: int, request: ExperimentRequest) -> dict[str, Any]:
    """The frozen stage of so many workers beside that of serial."""
    together, decisions, episodes = _CASES[cost]
    problem = busy.problem(cost=cost, decisions=decisions, together=together)
    key = make_key(request.first_seed)
    alone, many = (
        EpisodeSource(problem, key),
        EpisodeSource(problem, key, find_backend(backend, workers)),
    )
    serial, spread = [], []
    try:
        with one_thread():
            _seconds(problem, many, 4 * workers * together)  # workers start before the clock does
            for _ in request.all_seeds:
                serial.append(episodes / _seconds(problem, alone, episodes))
                spread.append(episodes / _seconds(problem, many, episodes))
    finally:
        many.close()
    ratio = median(s / one for s, one in zip(spread, serial, strict=True))
    return {
        "milliseconds": cost,
        "backend": backend,
        "workers": workers,
        "block": together,
        "decisions": decisions,
        "serial": median(serial),
        "per_second": median(spread),
        "ratio": ratio,
        "efficiency": ratio / workers,
        "bar": _BARS.get((backend, cost)) if workers == 2 else None,
    }


def _seconds(problem: Problem, source: EpisodeSource, episodes: int) -> float:
    simulation = Simulation(problem, source.key, Budget(episodes=episodes), source=source)
    started = time.perf_counter()
    run_frozen_stage(only(Nominal()), simulation, 0.95)
    return time.perf_counter() - started


def simulator_share(request: ExperimentRequest) -> dict[str, Any]:
    """How much of the time of `ape` on the intersection of highway-env the simulator takes."""
    problem = make("int-v1@highway")
    evaluate(problem, steps=100)  # what is loaded once
    shares = []
    for k, seed in enumerate(request.all_seeds):
        request.tick("int-v1@highway", k, request.seeds)
        clock, started = Timed(), time.perf_counter()
        evaluate(problem, steps=3_000, seed=seed, backend=clock)
        shares.append(clock.seconds / (time.perf_counter() - started))
    return {"problem": "int-v1@highway", "steps": 3_000, "shares": shares, "median": median(shares)}


def _as_text(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| ms per step | decisions, episodes in a block | backend | workers | serial, episodes/s "
        "| episodes/s | times serial | efficiency | wanted |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        wanted = "" if r["bar"] is None else f"≥ {r['bar']:g}"
        lines.append(
            f"| {r['milliseconds']:g} | {r['decisions']} × {r['block']} | {r['backend']} "
            f"| {r['workers']} | {r['serial']:,.2f} | {r['per_second']:,.2f} "
            f"| {r['ratio']:.2f} | {r['efficiency']:.0%} | {wanted} |"
        )
    return "\n".join(lines)


def _share_as_text(it: dict[str, Any]) -> str:
    return (
        f"`ape` on {it['problem']}, {it['steps']:,} steps: the simulator takes {it['median']:.0%} "
        f"of the time (median of {len(it['shares'])}; wanted ≥ {_SHARE:.0%})."
    )
