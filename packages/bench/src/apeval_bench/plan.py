"""What a run's own process spends on its episodes, and so how many cores it can keep busy."""

from __future__ import annotations

import time
from itertools import groupby
from statistics import median
from typing import Any

from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.run.evaluate import evaluate
from apeval.simulate.backends.serial import Serial, SerialPool
from apeval.simulate.task import Task
from apeval_bench.growth import problem
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_STEPS = 50_000
_CASES = ((1, 16), (1, 64), (1, 256), (16, 16), (16, 64))
"""Dimensions of the disturbance, episodes of a block."""
_COSTS = (0.1, 1.0, 10.0, 100.0, 1_000.0)  # milliseconds that a decision takes to simulate
_CORES, _DECISIONS = 1_000, 1_000_000  # of the plan


@experiment("bench", "plan", "what a run spends on each block, and a plan for 1,000 cores", seeds=3)
def plan(request: ExperimentRequest) -> ExperimentReport:
    """Time of a core, not of the clock: other load of the machine changes it little."""
    rows = []
    for k, (dimensions, block) in enumerate(_CASES):
        request.tick(f"{dimensions} dimensions, blocks of {block}", k, len(_CASES))
        rows.append(spent(dimensions, block, request))
    batches = batch_sizes(request.first_seed)
    planned = [_planned(cost, rows[0], batches) for cost in _COSTS]
    data = {"rows": rows, "batches": batches, "plan": planned}
    return ExperimentReport(
        data, "\n\n".join([_spent_text(rows), _plan_text(planned, rows[0], batches)])
    )


def spent(dimensions: int, block: int, request: ExperimentRequest) -> dict[str, Any]:
    """The run's own process, while two workers simulate: learning, weights, dealing out."""
    it = problem(dimensions)
    evaluate(it, steps=2_000, block=block)  # what is loaded and compiled once
    seconds = []
    for seed in request.all_seeds:
        started = time.process_time()
        evaluate(it, steps=_STEPS, seed=seed, block=block, backend="processes", workers=2)
        seconds.append(time.process_time() - started)
    per_decision = median(seconds) / _STEPS
    return {
        "dimensions": dimensions,
        "block": block,
        "horizon": it.horizon,
        "microseconds_per_decision": 1e6 * per_decision,
        "milliseconds_per_block": 1e3 * per_decision * block * (it.horizon or 1),
    }


class _Counting(Serial):
    """Serial, with a note of every block."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[Task] = []

    def start(self, problem: Problem, key: IntArray, time_limit: float | None) -> SerialPool:
        return _Counted(problem, key, self.tasks)


class _Counted(SerialPool):
    def __init__(self, problem: Problem, key: IntArray, tasks: list[Task]) -> None:
        super().__init__(problem, key)
        self.tasks = tasks

    def submit(self, task: Task) -> int:
        self.tasks.append(task)
        return super().submit(task)


def batch_sizes(seed: int) -> dict[str, Any]:
    """How many episodes `ape` asks for at a time while it learns, and the part that is left for
    the frozen stage."""
    counting = _Counting()
    evaluate(problem(1), steps=_DECISIONS, seed=seed, backend=counting)
    by_proposal = groupby(counting.tasks, key=lambda task: id(task.proposal))
    sizes = [sum(task.n for task in batch) for _, batch in by_proposal]
    return {
        "decisions": _DECISIONS,
        "batches": len(sizes) - 1,
        "smallest": min(sizes[:-1]),
        "median": median(sizes[:-1]),
        "learning": sum(sizes[:-1]),
        "frozen": sizes[-1],
    }


def _planned(cost: float, row: dict[str, Any], batches: dict[str, Any]) -> dict[str, Any]:
    """Learning keeps as many cores busy as a batch has blocks; the frozen stage all of them; and
    neither goes faster than the run's own process."""
    own = row["microseconds_per_decision"] / 1e6
    learning = batches["learning"] / (batches["learning"] + batches["frozen"])
    busy = min(_CORES, max(1.0, batches["median"] / row["block"]))
    each = cost / 1e3
    return {
        "milliseconds": cost,
        "most_cores": each / own,
        "one_core": _DECISIONS * (each + own),
        "learning": _DECISIONS * learning * max(each / busy, own),
        "frozen": _DECISIONS * (1.0 - learning) * max(each / _CORES, own),
    }


def _spent_text(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| dimensions | episodes in a block | decisions in a block | µs per decision "
        "| ms per block |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['dimensions']} | {r['block']} | {r['block'] * r['horizon']:,} "
        f"| {r['microseconds_per_decision']:.0f} | {r['milliseconds_per_block']:.1f} |"
        for r in rows
    ]
    return "\n".join(lines)


def _plan_text(planned: list[dict[str, Any]], row: dict[str, Any], batches: dict[str, Any]) -> str:
    learning = batches["learning"] / (batches["learning"] + batches["frozen"])
    lines = [
        f"Of {batches['decisions']:,} decisions `ape` learns from {learning:.0%}, in "
        f"{batches['batches']} batches of {batches['smallest']:,} episodes or more (median "
        f"{batches['median']:,.0f}, {batches['median'] / row['block']:,.0f} blocks of "
        f"{row['block']}). With {row['microseconds_per_decision']:.0f} µs for each decision in the "
        f"run's own process, {_CORES:,} cores and blocks of {row['block']}:",
        "",
        f"| ms to simulate a decision | cores that one run can feed | {_DECISIONS:,} decisions on "
        f"one core | learning on {_CORES:,} | frozen stage on {_CORES:,} |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {p['milliseconds']:g} | {p['most_cores']:,.0f} | {_time(p['one_core'])} "
        f"| {_time(p['learning'])} | {_time(p['frozen'])} |"
        for p in planned
    ]
    return "\n".join(lines)


def _time(seconds: float) -> str:
    for size, unit in ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"
