"""A stored run as CSV: a file each for episodes, decisions, the tail curve and failure modes."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from apeval.atomic_files import written_whole
from apeval.problem.types import Array
from apeval.results.folder import Run
from apeval.results.store import prepare

Row = list[Any]


def export_csv(run: Run, folder: Path | str) -> list[Path]:
    """Write the four files; numbers are written so that they read back to the last bit."""
    folder = prepare(folder)
    tables: dict[str, Callable[[Run], Iterator[Row]]] = {
        "episodes.csv": _episodes,
        "decisions.csv": _decisions,
        "tail.csv": _tail,
        "modes.csv": _modes,
    }
    return [_write(folder / name, rows(run)) for name, rows in tables.items()]


def _write(path: Path, rows: Iterable[Row]) -> Path:
    with written_whole(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            csv.writer(text, lineterminator="\n").writerows(rows)
        finally:
            text.detach()
    return path


def _episodes(run: Run) -> Iterator[Row]:
    """One row per recorded episode; those of learning have no weight."""
    yield ["id", "stage", "component", "kind", "unresolved", "ended_by_roulette", "length",
           "margin", "log_weight", "weight"]  # fmt: skip
    kinds = ["", *run.result.kinds]
    order = np.argsort(run.ids, kind="stable")
    ids, log_w = run.ids[order], run.sample.log_weights[order]
    for batch in run.batches():
        place = np.minimum(np.searchsorted(ids, batch.ids), len(ids) - 1)
        counts = ids[place] == batch.ids
        for i in range(batch.n):
            kind = int(batch.kind[i])
            log_weight = float(log_w[place[i]]) if counts[i] else None
            yield [
                int(batch.ids[i]),
                "estimate" if counts[i] else "learning",
                int(batch.component[i]),
                kinds[kind] if kind < len(kinds) else str(kind),
                int(batch.unresolved[i]),
                int(batch.ended_by_roulette[i]),
                int(batch.length[i]),
                _cell(batch.margin[i]),
                _cell(log_weight),
                _cell(None if log_weight is None else np.exp(log_weight)),
            ]


def _decisions(run: Run) -> Iterator[Row]:
    """One row per decision, with the episode's id."""
    titled = False
    for batch in run.batches():
        parts: dict[str, Array] = {"s": batch.s, "a_A": batch.a_A, "a_E": batch.a_E}
        if not titled:
            names = [f"{k}_{j}" for k, values in parts.items() for j in range(values.shape[1])]
            yield ["id", "t", *names]
            titled = True
        ids = batch.ids[batch.episode].tolist()
        columns = [column.tolist() for values in parts.values() for column in values.T]
        for row in zip(ids, batch.t.tolist(), *columns, strict=True):
            yield [*row[:2], *(_cell(v) for v in row[2:])]


def _tail(run: Run) -> Iterator[Row]:
    yield ["margin", "probability", "low", "high"]
    for point in run.result.tail:
        yield [_cell(v) for v in (point.margin, point.probability, *point.interval)]


def _modes(run: Run) -> Iterator[Row]:
    yield ["mode", "kind", "failures", "share", "share_low", "share_high", "probability", "low",
           "high", "typical", "most_likely_id"]  # fmt: skip
    for number, mode in enumerate(run.result.modes, start=1):
        numbers = (mode.share, *mode.share_interval, mode.probability, *mode.interval)
        yield [
            number, mode.kind, mode.failures, *(_cell(v) for v in numbers), mode.typical,
            mode.most_likely.get("id"),
        ]  # fmt: skip


def _cell(value: Any) -> Any:
    """A number as text that reads back exactly; empty where there is none."""
    if value is None:
        return ""
    if isinstance(value, bool | int | np.integer | np.bool_):
        return int(value)
    return "" if np.isnan(value) else repr(float(value))
