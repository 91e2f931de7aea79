"""`apeval reproduce all`: every table and figure of the paper, one after the other."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from apeval.errors import ApevalError
from apeval_bench.registry import (
    ExperimentReport,
    ExperimentRequest,
    experiment,
    experiments,
    store,
)

#: Minutes on two cores, as far as they are known: only the time left depends on them.
MINUTES = {"table1": 2.0, "table2": 35.0}
_USUAL = 1.0
_PARTS = 1_000


@experiment("reproduce", "all", "every table and figure, each in a folder of its own", seeds=30)
def everything(request: ExperimentRequest) -> ExperimentReport:
    """Each with its own number of seeds, or with fewer where fewer are asked for."""
    chosen = {name: e for name, e in experiments("reproduce").items() if name != "all"}
    first = ["table1", "table2"]  # the curves are drawn from the runs of Table II
    order = sorted(chosen, key=lambda name: (name not in first, name))
    total = sum(MINUTES.get(name, _USUAL) for name in order)
    rows: list[dict[str, Any]] = []
    before = 0.0
    for name in order:
        share = MINUTES.get(name, _USUAL)
        seeds = min(chosen[name].default_seeds, request.seeds)
        tick = _part(request.tick, name, before / total, share / total)
        out = None if request.out is None else request.out / name
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter()
        row: dict[str, Any] = {"what": name, "seeds": seeds}
        try:
            report = chosen[name].run(dataclasses.replace(request, seeds=seeds, out=out, tick=tick))
        except ApevalError as error:
            row |= {"passed": False, "said": str(error)}
        else:
            row |= {"passed": report.passed, "said": ""}
            if out is not None:
                tuning = " --tuning" if request.first_seed < 1_000 else ""
                store(report, out, name, f"apeval reproduce {name} --seeds {seeds}{tuning}")
        row["minutes"] = (time.perf_counter() - started) / 60.0
        rows.append(row)
        before += share
    return ExperimentReport({"rows": rows}, as_text(rows), all(row["passed"] for row in rows))


def _part(
    tick: Callable[[str, int, int], None], name: str, start: float, share: float
) -> Callable[[str, int, int], None]:
    """Progress within one experiment as progress of the whole."""

    def tell(what: str, done: int, total: int) -> None:
        within = done / total if total else 0.0
        tick(f"{name}: {what}", round(_PARTS * (start + share * within)), _PARTS)

    return tell


def as_text(rows: list[dict[str, Any]]) -> str:
    """What ran, how long it took and whether it passed."""
    lines = ["| what | seeds | minutes | |", "|---|---|---|---|"]
    for r in rows:
        verdict = "passed" if r["passed"] else f"**failed** {r['said']}".strip()
        lines.append(f"| {r['what']} | {r['seeds']} | {r['minutes']:.1f} | {verdict} |")
    total = sum(r["minutes"] for r in rows)
    lines.append(f"\n{total:.0f} minutes in all; outcomes that were known already cost nothing.")
    return "\n".join(lines)
