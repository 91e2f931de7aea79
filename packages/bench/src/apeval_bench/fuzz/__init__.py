"""Thousands of damaged, hostile and mistaken inputs: none may end in a traceback, hang, run code,
or change a file that it was not told to write."""

from __future__ import annotations

from collections import Counter
from typing import Any

from apeval_bench.cells import Cell, run_cells
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_BLOCK = 50  # inputs that share a process
_DEPENDS_ON = (
    "errors.py", "problem", "adapt", "environments", "apeval_paper", "simulate", "learn",
    "estimate", "run", "results", "apeval_bench/fuzz", "cli",
)  # fmt: skip
_WORDS = {
    "folders": "run folders, damaged",
    "configurations": "configurations",
    "problems": "users' problems",
}


def block(cell: Cell) -> dict[str, Any]:
    """Some inputs of one family."""
    from apeval_bench.fuzz.guard import run_inputs

    first, size = cell["seed"], cell["inputs"]
    outcomes = list(run_inputs(cell["family"], range(first, first + size)))
    return {
        "inputs": len(outcomes),
        "answered": sum(outcome["answered"] for outcome in outcomes),
        "refused": sum(outcome["refused"] for outcome in outcomes),
        "findings": [{"seed": o["seed"], **f} for o in outcomes for f in o["findings"]],
    }


@experiment("bench", "fuzz", "damaged folders, odd configurations, mistaken problems", seeds=1_000)
def fuzz(request: ExperimentRequest) -> ExperimentReport:
    """As many inputs of each family as there are seeds; passes where nothing is found."""
    seeds = request.all_seeds
    cells: list[Cell] = [
        {"family": family, "seed": first, "inputs": min(_BLOCK, seeds.stop - first)}
        for family in _WORDS
        for first in range(seeds.start, seeds.stop, _BLOCK)
    ]
    outcomes = run_cells("fuzz", block, cells, request, of=_DEPENDS_ON)
    rows = []
    for family, words in _WORDS.items():
        mine = [o for o, c in zip(outcomes, cells, strict=True) if c["family"] == family]
        found = [finding for outcome in mine for finding in outcome["findings"]]
        rows.append(
            {
                "family": family,
                "what": words,
                **{k: sum(o[k] for o in mine) for k in ("inputs", "answered", "refused")},
                "by_kind": dict(Counter(finding["kind"] for finding in found)),
                "findings": found,
            }
        )
    data = {"seeds": [seeds[0], seeds[-1]], "rows": rows}
    return ExperimentReport(data, _as_text(rows), passed=not any(row["findings"] for row in rows))


def _as_text(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| inputs | number | calls that answered | calls refused in one line | findings |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['what']} | {row['inputs']:,} | {row['answered']:,} | {row['refused']:,} "
            f"| {len(row['findings']):,} |"
        )
    found = [finding for row in rows for finding in row["findings"]]
    lines += ["" if found else "\nNo traceback, no hang, no file changed outside the output."]
    lines += [f"- seed {f['seed']}, {f['kind']}: {f['detail']} (`{f['call']}`)" for f in found[:50]]
    return "\n".join(lines)
