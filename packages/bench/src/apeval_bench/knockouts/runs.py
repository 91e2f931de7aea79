"""One run of `ape`, as it is or without something, and what to expect of such a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any

from apeval.run import evaluate as evaluation
from apeval_bench.cells import Cell
from apeval_bench.knockouts.heuristics import find
from apeval_bench.knockouts.problems import PROBLEMS, Tuning
from apeval_bench.knockouts.reference import SETTINGS, expected, reference, summary
from apeval_bench.knockouts.replacing import KnockOut, applied


def cell(tuning: Tuning, knock_out: KnockOut, seed: int) -> Cell:
    """A run, by all that its outcome depends on."""
    return {**tuning.identity, "without": knock_out.identity, "seed": seed}


def measure(cell: Cell) -> dict[str, Any]:
    """The outcome of one run, as plain data."""
    tuning, knock_out = PROBLEMS[cell["problem"]], find(cell["without"]["name"])
    reference(tuning.name)  # by the method as it is, before anything is taken out
    problem = tuning.problem()
    if not knock_out.margin:
        problem = replace(problem, margin=None)
    with applied(knock_out), _watched() as stages:
        started = time.process_time()
        result = evaluation.evaluate(
            problem, "ape", seed=cell["seed"], settings={**SETTINGS, **knock_out.settings},
            steps=tuning.steps,
            episodes=tuning.episodes,
        )  # fmt: skip
        seconds = time.process_time() - started
        ((proposal, counted),) = stages
        frozen = result.final.episodes - sum(batch.episodes.n for batch in counted)
        found = expected(tuning.name, proposal, counted, frozen)
    truth = tuning.truth
    low, high = result.interval
    return {
        "error": result.estimate / truth - 1.0,
        "covered": bool(low <= truth <= high),
        "trusted": result.trusted,
        "lost": found.lost,
        "variance": found.variance,
        "effective": found.effective,
        "episodes": result.episodes,
        "steps": result.steps,
        "seconds": seconds,
    }


def measure_reference(cell: Cell) -> dict[str, Any]:
    """The reference of a problem, in numbers."""
    return summary(cell["problem"])


@contextmanager
def _watched() -> Iterator[list[tuple[Any, Any]]]:
    """The frozen proposal and the counted batches of every run inside."""
    seen: list[tuple[Any, Any]] = []
    was = evaluation.run_frozen_stage

    @wraps(was)
    def watching(*arguments: Any, **named: Any) -> Any:
        seen.append((arguments[0], arguments[5]))
        return was(*arguments, **named)

    evaluation.run_frozen_stage = watching
    try:
        yield seen
    finally:
        evaluation.run_frozen_stage = was

