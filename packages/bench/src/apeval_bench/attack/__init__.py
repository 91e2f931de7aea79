"""An attack on apeval: edited run folders, hostile command lines, kills, users' code that
misbehaves. None may lead to a number that differs from the undisturbed one without an error or a
serious warning, nor to a traceback, a hang, an undocumented exit code or a file in a wrong place.

An edit changes one place in one file, and every hash that can be computed from the folder is made
to fit again. Whoever rewrites all files of a folder consistently has made a run folder: that cannot
be told from an honest run.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError
from apeval_bench.attack.seals import UNTOLD
from apeval_bench.attack.sizes import ALL, SAMPLE, SIZES, SMALL, select
from apeval_bench.cells import Cell, run_cells
from apeval_bench.public.used_seeds import commit_here
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_DEPENDS_ON = (
    "errors.py", "remedies.py", "validate.py", "atomic_files.py", "signals.py", "__main__.py",
    "problem", "adapt", "environments", "apeval_paper", "simulate", "learn", "estimate", "run",
    "results", "cli", "apeval_bench/fuzz", "apeval_bench/attack",
)  # fmt: skip
PARTS = {"lines": 12, "folders": 12, "kills": 20, "users": 16}
"""The parts of the attack, and into how many blocks each is cut."""
_PREPARED = {"lines": "bases", "folders": "bases"}  # parts that attack the same runs
_WORDS = {
    "folders": "edits of run folders and their surroundings",
    "lines": "command lines",
    "kills": "kills",
    "users": "users' code that misbehaves",
}
_SECONDS = 120.0  # that a call in process may take
KINDS = {
    "tracebacks": ("traceback",),
    "hangs": ("hang", "crash"),
    "exit codes": ("exit code",),
    "files": ("changed a file", "outside the sandbox", "left behind", "torn file"),
    "processes": ("process left behind",),
    "different numbers": ("different number", "not resumed"),
    "words": ("no JSON", "no clear line", "nonsense accepted", "warning",
              "characters that a terminal obeys"),
}  # fmt: skip
"""Figures, each with the kinds of findings that it counts. All must be 0."""


def block(cell: Cell) -> dict[str, Any]:
    """Some cases of one part."""
    part: str = cell["part"]
    prepared = Path(_folder().name, _PREPARED.get(part, part))
    cases, outcomes = run_part(
        part, prepared, cell["rows"], cell["seed"], cell["block"], cell["blocks"]
    )
    tally: Counter[str] = Counter()
    for outcome in outcomes:
        tally.update(outcome["tally"])
    found = [{"case": o["seed"], **f} for o in outcomes for f in o["findings"]]
    return {"cases": len(cases), "tally": dict(tally), "findings": found}


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where this process keeps what cases share, until it ends."""
    folder = tempfile.TemporaryDirectory(prefix="apeval-attack-")
    Finalize(None, folder.cleanup, exitpriority=0)  # atexit says nothing to a pool's process
    return folder


def run_part(
    part: str, prepared: Path, rows: list[str], seed: int, first: int = 0, every: int = 1
) -> tuple[list[str], list[dict[str, Any]]]:
    """Prepare a part where that has not been done, and run its cases.

    Args:
        part: one of `PARTS`.
        prepared: a folder for what the cases share.
        rows: one of `SIZES`, or names of cases, or beginnings of names; none: all.
        seed: of the moments of kills.
        first: the first case to run.
        every: so many cases further the next one.

    Returns:
        The names of the cases, and their outcomes.

    Raises:
        ApevalError: no case has such a name.
    """
    from apeval_bench.attack import folders, kills, lines, users
    from apeval_bench.fuzz.guard import run_inputs

    module: Any = {"folders": folders, "lines": lines, "kills": kills, "users": users}[part]
    if not prepared.exists():
        module.prepare(prepared)
    cases: list[str] = module.names(prepared, small=SMALL in rows)
    if SAMPLE in rows:
        cases = select(part, cases)
    elif rows and SMALL not in rows:
        known = [*cases, *module.names(prepared, small=True)]
        cases = [it for it in dict.fromkeys(known) if it.startswith(tuple(rows))]
        if not cases:
            raise ApevalError(f"bench attack has no case {', '.join(rows)}")
    cases = cases[first::every]
    if part == "kills":
        return cases, [kills.kill(case, seed, prepared) for case in cases]
    if part == "users":
        known_numbers: dict[str, Any] = {}
        return cases, [users.misbehave(case, prepared, known_numbers) for case in cases]
    family = {"folders": "attacked folders", "lines": "command lines"}[part]
    return cases, list(run_inputs(family, cases, _SECONDS, prepared))


@experiment("bench", "attack", "ways to a wrong number that looks right", seeds=1, selects=True)
def attack(request: ExperimentRequest) -> ExperimentReport:
    """Every case once for each seed; passes where nothing is found."""
    if request.methods or request.held_out:
        raise ApevalError("bench attack takes --rows (a part, or names of cases) and no --methods")
    outcomes: dict[str, list[dict[str, Any]]] = {part: [] for part in PARTS}
    cells = cells_of(request)
    for cell, outcome in zip(
        cells, run_cells("attack", block, cells, request, of=_DEPENDS_ON), strict=True
    ):
        outcomes[cell["part"]].append(outcome)
    sizes = {cell["part"]: cell["size"] for cell in cells}
    rows = [_row(part, sizes[part], mine) for part, mine in outcomes.items() if mine]
    rows = [*rows, *_kept(request.out, set(sizes))]
    rows.sort(key=lambda row: list(PARTS).index(row["part"]))
    from apeval_bench.attack.kills import starting_time

    data = {
        "seeds": [request.all_seeds[0], request.all_seeds[-1]],
        "starting_seconds": starting_time(),
        "rows": rows,
    }
    return ExperimentReport(data, _as_text(data), passed=not any(row["findings"] for row in rows))


def _kept(folder: Path | None, made: set[str]) -> list[dict[str, Any]]:
    """Rows that stand in the output folder, of parts that were not run now."""
    path = None if folder is None else folder / "attack.json"
    if path is None or not path.exists():
        return []
    rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["rows"]
    return [row for row in rows if row["part"] in PARTS and row["part"] not in made]


def cells_of(request: ExperimentRequest) -> list[Cell]:
    """Blocks of cases. A row is a size, a part, a part with a size, or a case's beginning."""
    cells: list[Cell] = []
    for part in PARTS:
        mine = [it for it in request.rows if it in SIZES or it.split(":")[0] == part]
        size = next((it for it in SIZES if it in mine or f"{part}:{it}" in mine), ALL)
        if mine and size == ALL and part not in mine:
            cells += [_cell(part, seed, 0, 1, mine, "selected") for seed in request.all_seeds]
        elif mine or not request.rows:
            rows, blocks = [] if size == ALL else [size], 1 if size == SMALL else PARTS[part]
            cells += [
                _cell(part, seed, k, blocks, rows, size)
                for seed in request.all_seeds
                for k in range(blocks)
            ]
    if not cells:
        known = ", ".join((*PARTS, *SIZES))
        asked = ", ".join(request.rows)
        raise ApevalError(f"bench attack has no row {asked}: name a case, or {known}")
    return cells


def _cell(part: str, seed: int, number: int, blocks: int, rows: list[str], size: str) -> Cell:
    return {
        "part": part, "seed": seed, "block": number, "blocks": blocks, "rows": rows, "size": size
    }  # fmt: skip


def _row(part: str, size: str, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    found = [finding for outcome in outcomes for finding in outcome["findings"]]
    tally: Counter[str] = Counter()
    for outcome in outcomes:
        tally.update(outcome["tally"])
    return {
        "part": part,
        "what": _WORDS[part],
        "size": size,
        "commit": commit_here(),
        "cases": sum(outcome["cases"] for outcome in outcomes),
        "figures": figures(found),
        "tally": dict(tally),
        "findings": found,
    }


def figures(found: list[dict[str, Any]]) -> dict[str, int]:
    """How many cases have a finding of each figure."""
    return {
        name: len({finding["case"] for finding in found if finding["kind"] in kinds})
        for name, kinds in KINDS.items()
    }


def _as_text(data: dict[str, Any]) -> str:
    lines = [
        f"| attack | `--rows` | cases | {' | '.join(KINDS)} | commit |",
        f"|---|---|---|{'---|' * len(KINDS)}---|",
    ]
    for row in data["rows"]:
        counts = " | ".join(f"{row['figures'][name]:,}" for name in KINDS)
        made = row["part"] if row["size"] == ALL else f"{row['part']}:{row['size']}"
        told = f"{row['what']} | `{made}` | {row['cases']:,} | {counts} | `{row['commit']}`"
        lines.append(f"| {told} |")
    lines.append("")
    untold = sum(row["tally"].get(UNTOLD, 0) for row in data["rows"])
    lines.append(
        f"Readings of edits that cannot be told: {untold:,}. A value of an episode of learning "
        "that stands in one place only, with every hash made anew; no estimate rests on it.\n"
    )
    for row in data["rows"]:
        told = ", ".join(f"{name} {count:,}" for name, count in sorted(row["tally"].items()))
        lines.append(f"{row['what']}: {told}\n")
    seconds = data["starting_seconds"]
    lines.append(
        f"Python itself takes {seconds:.3f} s to reach the first line of the program; kills "
        "before that cannot be caught and are counted by themselves."
    )
    found = [finding for row in data["rows"] for finding in row["findings"]]
    lines += ["", "No finding."] if not found else [""]
    lines += [f"- `{f['case']}` · {f['kind']}: {f['detail'][:160]}" for f in found[:100]]
    return "\n".join(lines)
