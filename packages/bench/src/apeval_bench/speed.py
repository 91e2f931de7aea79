"""Speed on this machine, as ratios measured side by side in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from apeval.environments import make
from apeval.learn.ape_tabular.config import ApeTabularConfig
from apeval.learn.method import find_method
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.run.evaluate import evaluate
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench import ape_speed, policy_speed, scalable_speed, simulators, vector_speed
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_COMPILED_STEPS, _PLAIN_STEPS = 1_000_000, 10_000


@experiment("bench", "speed", "steps per second of learners and simulators", seeds=3)
def speed(request: ExperimentRequest) -> ExperimentReport:
    """Tabular learning, compiled and plain, and a whole evaluation."""
    problem = make("minigrid-s1")
    bare = replace(problem, table=None)  # the same problem without its fast path
    _learn(problem, 1_000, 0)  # compile before the clock starts
    rows: list[dict[str, Any]] = []
    cases: list[tuple[str, int, Callable[[int], object]]] = [
        (
            "ape-tabular, compiled: learning on minigrid-s1",
            _COMPILED_STEPS,
            lambda seed: _learn(problem, _COMPILED_STEPS, seed),
        ),
        (
            "ape-tabular, plain reference: learning on minigrid-s1",
            _PLAIN_STEPS,
            lambda seed: _learn(bare, _PLAIN_STEPS, seed),
        ),
        (
            "ape-tabular: whole evaluation of minigrid-s1",
            _COMPILED_STEPS,
            lambda seed: evaluate(problem, "ape-tabular", steps=_COMPILED_STEPS, seed=seed),
        ),
        (
            "mc: whole evaluation of minigrid-s1",
            _COMPILED_STEPS,
            lambda seed: evaluate(problem, "mc", steps=_COMPILED_STEPS, seed=seed),
        ),
    ]
    for k, (what, steps, work) in enumerate(cases):
        seconds = min(_seconds(work, seed) for seed in request.all_seeds)
        rows.append(
            {"what": what, "steps": steps, "seconds": seconds, "per_second": steps / seconds}
        )
        request.tick(what, k + 1, len(cases))
    simulated = [*simulators.intersections(request), simulators.lunarlander(request)]
    added = ape_speed.measure(request)
    scalable = scalable_speed.measure(request)
    policies = policy_speed.measure(request)
    vectors = vector_speed.measure(request)
    data = {
        "rows": rows,
        "simulators": simulated,
        "ape": added,
        "ape_scalable": scalable,
        "policies": policies,
        "vectors": vectors,
        "compiled_over_plain": rows[0]["per_second"] / rows[1]["per_second"],
        "seconds_per_million_tabular_steps": rows[0]["seconds"],
    }
    parts = (
        _as_text(data),
        simulators.as_text(simulated),
        ape_speed.as_text(added),
        scalable_speed.as_text(scalable),
        policy_speed.as_text(policies),
        vector_speed.as_text(vectors),
    )
    quick = all(r["ms_per_decision"] <= r["bar"] for r in added)
    fast = all(r["ratio"] >= r["bar"] for r in [*simulated, *policies])
    light = all(r["ratio"] <= r["bar"] for r in vectors if r["bar"] is not None)
    passed = quick and scalable["passed"] and fast and light
    return ExperimentReport(data, "\n\n".join(parts), passed=passed)


def _learn(problem: Problem, steps: int, seed: int) -> None:
    config = ApeTabularConfig(stop_tolerance=0.0, learn_share=0.99)
    budget = Budget(steps=int(steps / config.learn_share) + 1)
    simulation = Simulation(problem.blind(), make_key(seed), budget)
    learner = find_method("ape-tabular").start(simulation.problem, config)
    while learner.advance(simulation):
        pass


def _seconds(work: Callable[[int], object], seed: int) -> float:
    started = time.perf_counter()
    work(seed)
    return time.perf_counter() - started


def _as_text(data: dict[str, Any]) -> str:
    lines = ["| what | steps | seconds | steps per second |", "|---|---|---|---|"]
    for row in data["rows"]:
        lines.append(
            f"| {row['what']} | {row['steps']:,} | {row['seconds']:.2f} "
            f"| {row['per_second']:,.0f} |"
        )
    lines.append(
        f"\nCompiled over plain: {data['compiled_over_plain']:,.0f} times; one million tabular "
        f"steps in {data['seconds_per_million_tabular_steps']:.2f} s (best of the repetitions)."
    )
    return "\n".join(lines)
