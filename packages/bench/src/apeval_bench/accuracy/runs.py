"""One run of one method or peer on one row, and all runs of a table."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from apeval.learn.method import find_method, methods
from apeval.run.evaluate import evaluate
from apeval_bench.accuracy.table import (
    BASELINES,
    OURS,
    SCALABLE_DECISIONS,
    TableRow,
)
from apeval_bench.cells import Cell, run_cells
from apeval_bench.peers import PEERS, available, run_peer, why_not
from apeval_bench.registry import ExperimentRequest

#: What outcomes depend on. The default method changes often; the others do not import it.
_DEPENDS: dict[str, dict[str, tuple[str, ...]]] = {
    "ours": {},
    "baselines": {"without": ("learn/ape",)},
    "peers": {
        "of": (
            "problem", "environments", "apeval_paper/environments", "simulate", "learn/whitened.py",
            "apeval_bench/peers",
        )
    },
}  # fmt: skip


@dataclass(frozen=True)
class RunOutcome:
    """What the statistics need of one run."""

    estimate: float
    low: float
    high: float
    episodes: int
    failure_rate: float
    seconds: float
    warned: bool
    kinds: dict[str, int]
    """Failures of each kind in the frozen stage."""
    error: str = ""


def measure(cell: Cell) -> dict[str, Any]:
    """The outcome of one run, as plain data."""
    row = TableRow(
        **{f.name: cell["row"][f.name] for f in fields(TableRow) if f.name in cell["row"]}
    )
    if cell["method"] in PEERS:
        return vars(_peer(row, cell["method"], cell["seed"]))
    result = evaluate(
        replace(row.make(), truth=None),  # which may take longer to find than the run
        cell["method"],
        steps=row.steps,
        episodes=row.episodes,
        target_error=row.target_error,
        seed=cell["seed"],
    )
    return vars(
        RunOutcome(
            result.estimate,
            *result.interval,
            result.episodes,
            result.final.failure_rate,
            result.seconds,
            bool(result.warnings),
            {name: kind.failures for name, kind in result.kinds.items()},
        )
    )


def _peer(row: TableRow, peer: str, seed: int) -> RunOutcome:
    started = time.perf_counter()
    found = run_peer(peer, row.make(peers=True), episodes_of(row), seed)
    seconds = time.perf_counter() - started
    return RunOutcome(
        found.estimate,
        *found.interval,
        found.episodes,
        found.failure_rate,
        seconds,
        False,
        {},
        found.error,
    )


def episodes_of(row: TableRow) -> int:
    """The budget in episodes of full length."""
    if row.episodes is not None:
        return row.episodes
    return (row.steps or 0) // row.make().longest


def methods_of(row: TableRow, wanted: Sequence[str] = ()) -> list[str]:
    """Who takes part in a row, ours first."""
    names = [name for name in (OURS, *BASELINES) if name in methods()]
    chosen = [name for name in names if _takes_part(name, row)]
    if row.peer_settings is not None and available():
        problem = row.make(peers=True)
        chosen += [p for p in PEERS if why_not(p, problem, episodes_of(row)) is None]
    extra = [name for name in wanted if name not in names and name not in PEERS]
    chosen += [name for name in extra if find_method(name).suits(row.make()) is None]
    return [name for name in chosen if not wanted or name in wanted]


def _takes_part(name: str, row: TableRow) -> bool:
    problem = row.make()
    if name == "ape-scalable":
        steps = row.steps if row.episodes is None else row.episodes * problem.longest
        if steps is None or steps > SCALABLE_DECISIONS:
            return False
    return find_method(name).suits(problem) is None


def seeds_of(request: ExperimentRequest, share: float) -> list[int]:
    """The seeds that every method runs in a row."""
    return list(request.all_seeds)[: max(1, math.ceil(share * request.seeds - 1e-9))]


def run_all(
    plan: Sequence[tuple[TableRow, str, Sequence[int]]], request: ExperimentRequest
) -> dict[tuple[str, str], list[RunOutcome]]:
    """The outcomes of every (row, method, seeds), by the row's key and the method. `accuracy` and
    `coverage` share them: what one has run, the other finds."""
    found: dict[tuple[str, str], list[RunOutcome]] = {}
    for group, depends in _DEPENDS.items():
        mine = [(row, name, seeds) for row, name, seeds in plan if _group(name) == group]
        cells = [_cell(row, name, seed) for row, name, seeds in mine for seed in seeds]
        if not cells:
            continue
        outcomes = iter(run_cells(f"accuracy-{group}", measure, cells, request, None, **depends))
        for row, name, seeds in mine:
            found[row.key, name] = [RunOutcome(**next(outcomes)) for _ in seeds]
    return found


def _group(name: str) -> str:
    return "peers" if name in PEERS else "baselines" if name in BASELINES else "ours"


def _cell(row: TableRow, name: str, seed: int) -> Cell:
    """Only what the outcome depends on: figures and goals may change."""
    inputs = ("problem", "steps", "episodes", "settings", "margin", "target_error")
    data = {k: getattr(row, k) for k in inputs}
    if name in PEERS:
        data["peer_settings"] = dict(row.peer_settings or {})
    data["settings"] = dict(row.settings)
    return {"problem": row.problem, "row": {"key": "", **data}, "method": name, "seed": seed}
