"""`apeval bench public`: run what is missing, keep what stands, show the bad ones first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apeval.errors import ApevalError
from apeval.version import __version__
from apeval_bench.cells import run_cells
from apeval_bench.public.public_runs import (
    cell_of,
    code_id,
    code_of,
    measure,
    methods_for,
    seeds_for,
)
from apeval_bench.public.public_text import as_text
from apeval_bench.public.results_file import FORMAT, Line, merged, read_lines, with_scores
from apeval_bench.public.used_seeds import commit_here, record_uses, refuse_used
from apeval_bench.public.yardstick import ROWS, PublicRow, choose_rows
from apeval_bench.registry import REPORTING, ExperimentReport, ExperimentRequest

Planned = tuple[PublicRow, str, list[int]]
"""A row, a method, and the seeds to run."""


def report(
    request: ExperimentRequest, rows: Sequence[PublicRow] | None = None, workers: int | None = None
) -> ExperimentReport:
    """Measure the rows and methods asked for, and show all that the output folder then has.

    Args:
        request: Seeds, rows, methods and output folder.
        rows: Other rows than those of the table.
        workers: Processes; as many as there are cores where None.

    Returns:
        Rows, lines and what has not been run, with tables.

    Raises:
        ApevalError: A reporting seed was used by other code before.
    """
    if request.held_out:
        raise ApevalError("bench public has no held-out rows: nobody tunes on any of them")
    chosen = choose_rows(request.rows) if rows is None else list(rows)
    known = [row for row in chosen if row.table.make().truth is not None]
    plan: list[Planned] = [
        (row, name, seeds_for(row, name, request.all_seeds))
        for row in known
        for name in methods_for(row, request.methods)
    ]
    if request.first_seed in REPORTING:
        uses = [(row.key, name, code_id(name, row.kind), seeds) for row, name, seeds in plan]
        refuse_used(uses)
        record_uses(uses)
    new = _measured(plan, request, workers)
    lines = merged(read_lines(request.out), new)  # read late: another run may have added lines
    everything = chosen if rows is not None or request.out is None else list(ROWS)
    data = _data(everything, lines)
    return ExperimentReport(data, as_text(data))


def _measured(
    plan: Sequence[Planned], request: ExperimentRequest, workers: int | None
) -> list[Line]:
    """A line for every row and method."""
    commit, lines = commit_here(), []
    for name, kind in dict.fromkeys((name, row.kind) for row, name, _ in plan):
        mine = [(row, seeds) for row, it, seeds in plan if (it, row.kind) == (name, kind)]
        cells = [cell_of(row, name, seed) for row, seeds in mine for seed in seeds]
        code = code_of(name, kind)
        outcomes = iter(run_cells(f"public-{name}", measure, cells, request, workers, of=code))
        lines += [
            {
                "row": row.key,
                "method": name,
                "version": __version__,
                "commit": commit,
                "code": code_id(name, kind),
                "seeds": [seeds[0], seeds[-1]],
                "runs": [next(outcomes) for _ in seeds],
            }
            for row, seeds in mine
        ]
    return lines


def _data(rows: Sequence[PublicRow], lines: list[Line]) -> dict[str, Any]:
    """What the results file has; see its schema."""
    told = [_described(row) for row in rows if row.table.make().truth is not None]
    known, found = with_scores(told, lines)
    run = {(line["row"], line["method"]) for line in found}
    missing = {
        row.key: [name for name in methods_for(row) if (row.key, name) not in run]
        if row.table.make().truth is not None
        else ["a truth"]
        for row in rows
    }
    return {
        "format": FORMAT,
        "rows": known,
        "lines": found,
        "not_run": {key: names for key, names in missing.items() if names},
    }


def _described(row: PublicRow) -> dict[str, Any]:
    table = row.table
    problem = table.make()
    truth = problem.truth() if problem.truth is not None else None
    if truth is None:
        raise ApevalError(f"{table.problem} has no truth for {dict(table.settings)}")
    unit, number = ("steps", table.steps) if table.steps else ("episodes", table.episodes)
    return {
        "row": row.key,
        "class": row.kind,
        "problem": table.problem,
        "settings": dict(table.settings),
        "budget": {unit: number},
        "truth": truth.value,
        "truth_error": truth.standard_error,
        "truth_from": truth.method,
        "published": row.published,
        "longest": problem.longest,
    }
