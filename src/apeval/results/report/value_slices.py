"""The learned value function over slices of the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.learn.ape.log_value import LogValue
from apeval.problem.types import FloatArray
from apeval.results.report.charts import Chart, axis, series, short, xy
from apeval.results.report.report_data import ReportData

_CELLS = 25
_SLICES = 3
_DOTS = 40
_LOWEST = -30.0  # log10 v, below which "never" is meant


@dataclass(frozen=True)
class Slices:
    """Pictures of v at some decisions, and what they cut through."""

    charts: tuple[tuple[str, Chart], ...]
    components: tuple[int, ...]
    """Of the state, from 1; those along the axes."""
    others: int
    """Components that are held at their mean among failures."""


def slices(it: ReportData) -> Slices | None:
    """v(s, t) through the two components of the state that it depends on most; None where
    nothing of the kind was learned."""
    stored = it.result.get("value_function")
    if not stored or not stored["columns"]:
        return None
    columns = [int(c) for c in stored["columns"]]
    log_v = LogValue.from_json({**stored, "columns": list(range(len(columns)))})
    cuts = [_cut(it, columns, log_v, t) for t in range(log_v.scene.times)]
    cuts = [c for c in cuts if (c.high > c.low).sum() >= min(2, len(columns))]
    if not cuts:
        return None
    cuts = [cuts[k] for k in sorted({round(k) for k in np.linspace(0, len(cuts) - 1, _SLICES)})]
    order = _most_important(log_v, columns, cuts)
    if len(columns) == 1:
        charts: tuple[tuple[str, Chart], ...] = (_lines(log_v, columns, cuts),)
    else:
        charts = _maps(it, log_v, columns, order, cuts)
    return Slices(charts, tuple(columns[j] + 1 for j in order), max(0, len(columns) - 2))


@dataclass(frozen=True)
class _Cut:
    """The states around which v is shown at decision t: a centre and a range per component."""

    t: int
    centre: FloatArray
    low: FloatArray
    high: FloatArray


def _cut(it: ReportData, columns: list[int], log_v: LogValue, t: int) -> _Cut:
    """The mean state of failing episodes at the decision, weighted as nature would have them, and
    the range of all; a component that does not vary there has an empty range."""
    mean, scale = log_v.scene.mean, log_v.scene.scale
    if it.episodes is None or it.sample is None:
        return _Cut(t, mean, mean - 2.0 * scale, mean + 2.0 * scale)
    here = it.episodes.t == t
    s = it.episodes.s[here][:, columns].astype(np.float64)
    if len(s) < 2:
        return _Cut(t, mean, mean, mean)
    w = (it.sample.weights * it.sample.failed)[it.episodes.episode[here]]
    low, high = np.quantile(s, [0.01, 0.99], axis=0)
    flat = high - low < 1e-6 * scale
    room = 0.1 * (high - low)
    centre = np.average(s, axis=0, weights=w if w.sum() > 0.0 else None)
    return _Cut(t, centre, np.where(flat, low, low - room), np.where(flat, low, high + room))


def _most_important(log_v: LogValue, columns: list[int], cuts: list[_Cut]) -> list[int]:
    """The two components along which v changes most; of those that vary at every decision shown,
    where there are two such."""
    change = np.zeros(len(columns))
    for cut in cuts:
        for j in range(len(columns)):
            ends = np.stack([cut.centre, cut.centre])
            ends[:, j] = cut.low[j], cut.high[j]
            change[j] += abs(float(np.diff(_at(log_v, ends, cut.t))[0]))
    varies = np.all([cut.high > cut.low for cut in cuts], axis=0)
    if varies.sum() >= 2:
        change = np.where(varies, change, -1.0)
    return sorted(np.argsort(-change, kind="stable")[:2].tolist())


def _at(log_v: LogValue, x: FloatArray, t: int) -> FloatArray:
    """log10 v at states given by their learned components."""
    with np.errstate(all="ignore"):
        found = log_v(x, np.full(len(x), t, np.int64)) / np.log(10.0)
    return np.asarray(np.maximum(np.nan_to_num(found, nan=_LOWEST), _LOWEST))


def _label(column: int) -> str:
    return f"state component {column + 1} (state units)"


def _lines(log_v: LogValue, columns: list[int], cuts: list[_Cut]) -> tuple[str, Chart]:
    lines = []
    for slot, cut in enumerate(cuts):
        x = np.linspace(cut.low[0], cut.high[0], 2 * _CELLS)
        v = 10.0 ** _at(log_v, x[:, None], cut.t)
        lines.append(series(f"decision {cut.t + 1}", x, v, slot=slot))
    chart = xy(
        "Learned failure probability against the state.",
        axis(_label(columns[0])),
        axis("failure probability from here on", log=True),
        lines,
    )
    return "", chart


def _maps(
    it: ReportData, log_v: LogValue, columns: list[int], order: list[int], cuts: list[_Cut]
) -> tuple[tuple[str, Chart], ...]:
    i, j = order
    cuts = [cut for cut in cuts if cut.high[i] > cut.low[i] and cut.high[j] > cut.low[j]]
    charts: list[tuple[str, Chart]] = []
    for cut in cuts:
        x = np.linspace(cut.low[i], cut.high[i], _CELLS)
        y = np.linspace(cut.low[j], cut.high[j], _CELLS)
        state = np.tile(cut.centre, (_CELLS * _CELLS, 1))
        state[:, i], state[:, j] = np.tile(x, _CELLS), np.repeat(y, _CELLS)
        grid = _at(log_v, state, cut.t).reshape(_CELLS, _CELLS)
        chart = {
            "kind": "heat",
            "alt": f"Learned failure probability at decision {cut.t + 1} over two components of "
            f"the state, from 10^{grid.min():.1f} to 10^{grid.max():.1f}.",
            "x": axis(_label(columns[i])) | {"values": short(x)},
            "y": axis(_label(columns[j])) | {"values": short(y)},
            "z": [short(row, 4) for row in grid],
            "zlabel": "failure probability from here on",
            "dots": _dots(it, columns[i], columns[j], cut.t),
        }
        charts.append((f"Decision {cut.t + 1}", chart))
    low = min(float(np.min(chart["z"])) for _, chart in charts)
    high = max(float(np.max(chart["z"])) for _, chart in charts)
    return tuple((title, chart | {"low": low, "high": high}) for title, chart in charts)


def _dots(it: ReportData, i: int, j: int, t: int) -> dict[str, Any]:
    """Where some of the sampled episodes stood, failing ones apart."""
    if it.episodes is None:
        return {}
    rows = np.flatnonzero(it.episodes.t == t)
    failing = it.episodes.failed[it.episodes.episode[rows]]
    parts = {}
    for name, mine in (("failed", rows[failing]), ("survived", rows[~failing])):
        some = mine[:: max(1, -(-len(mine) // _DOTS))]
        s = it.episodes.s[some]
        parts[name] = [short(s[:, i], 4), short(s[:, j], 4)]
    return parts
