"""Speed on this machine, as ratios measured side by side in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from apeval.environments import make
from apeval.errors import ApevalError, unknown
from apeval.learn.ape_tabular.config import ApeTabularConfig
from apeval.learn.method import find_method
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.run.evaluate import evaluate
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench import ape_speed, policy_speed, scalable_speed, simulators, vector_speed
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_COMPILED_STEPS, _PLAIN_STEPS = 1_000_000, 10_000


@experiment("bench", "speed", "steps per second of learners and simulators", seeds=3, selects=True)
def speed(request: ExperimentRequest) -> ExperimentReport:
    """Parts, each measured side by side with what it is compared with; `--rows` names some."""
    if request.methods or request.held_out:
        raise ApevalError("speed takes --rows alone: " + ", ".join(_PARTS))
    for name in request.rows:
        if name not in _PARTS:
            raise unknown("row", name, _PARTS)
    data: dict[str, Any] = {}
    texts, passed = [], []
    for name in [name for name in _PARTS if name in (request.rows or _PARTS)]:
        part = _PARTS[name]
        data[name] = part.measure(request)
        texts.append(part.as_text(data[name]))
        passed.append(part.passed(data[name]))
    return ExperimentReport(data, "\n\n".join(texts), passed=all(passed))


def _tabular(request: ExperimentRequest) -> dict[str, Any]:
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
    return {
        "rows": rows,
        "compiled_over_plain": rows[0]["per_second"] / rows[1]["per_second"],
        "seconds_per_million_tabular_steps": rows[0]["seconds"],
    }


def _simulated(request: ExperimentRequest) -> list[dict[str, Any]]:
    return [*simulators.intersections(request), simulators.lunarlander(request)]


def _at_most(key: str) -> Callable[[Any], bool]:
    return lambda rows: all(r[key] <= r["bar"] for r in rows if r["bar"] is not None)


def _at_least(key: str) -> Callable[[Any], bool]:
    return lambda rows: all(r[key] >= r["bar"] for r in rows)


@dataclass(frozen=True)
class _SpeedPart:
    measure: Callable[[ExperimentRequest], Any]
    as_text: Callable[[Any], str]
    passed: Callable[[Any], bool]


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


_PARTS = {
    "tabular": _SpeedPart(_tabular, _as_text, lambda data: True),
    "simulators": _SpeedPart(_simulated, simulators.as_text, _at_least("ratio")),
    "ape": _SpeedPart(ape_speed.measure, ape_speed.as_text, _at_most("ms_per_decision")),
    "ape-scalable": _SpeedPart(
        scalable_speed.measure, scalable_speed.as_text, lambda data: bool(data["passed"])
    ),
    "policies": _SpeedPart(policy_speed.measure, policy_speed.as_text, _at_least("ratio")),
    "vectors": _SpeedPart(vector_speed.measure, vector_speed.as_text, _at_most("ratio")),
}
