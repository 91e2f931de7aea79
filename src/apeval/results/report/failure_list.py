"""Failures one by one: modes with their replays, and the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.learn.whitened import can_whiten
from apeval.problem.problem import Problem
from apeval.results.episode_scene import Scene, scene_of_record, series_scene
from apeval.results.own_pictures import own_pictures
from apeval.results.report.charts import short
from apeval.results.report.picture_files import as_data, can_encode
from apeval.results.report.report_data import ReportData
from apeval.simulate.replay import Record, replay

_MOST_ROWS = 100
_MOST_FRAMES = 240
_MOST_SERIES = 6


def replay_of(it: ReportData, record: Mapping[str, Any], room: int) -> dict[str, Any] | str:
    """The scene of a recorded failure, thinned to what a screen shows; or why there is none.
    Pictures that the environment draws of itself take at most `room` characters."""
    try:
        with np.errstate(all="ignore"):  # a stored disturbance may be of any size
            scene = _scene(it, record)
    except ApevalError as error:
        return f"this failure could not be replayed: {error}"
    if scene is None:
        return "the folder does not hold this failure, and its problem could not be built again"
    data = scene.as_json()
    if it.problem is not None and not scene.drawable:
        data |= _own_pictures(it.problem, record, room)
    frames = len(data["time"])
    keep = np.unique(np.linspace(0, frames - 1, min(frames, _MOST_FRAMES)).astype(int)).tolist()
    for name in ("time", "decision"):
        data[name] = [data[name][k] for k in keep]
    for mover in data["movers"]:
        mover["pose"] = [short(mover["pose"][k]) for k in keep]
        if mover["visible"] is not None:
            mover["visible"] = [mover["visible"][k] for k in keep]
    data["left_out"] = max(0, len(data["series"]) - _MOST_SERIES)
    data["series"] = [_thin(s) for s in _first(data["series"])]
    return {"kind": "replay", **data}


def _own_pictures(problem: Problem, record: Mapping[str, Any], room: int) -> dict[str, Any]:
    """The environment's own pictures with their times; nothing where it has none, or a remark where
    they cannot be shown."""
    it = Record.from_json(record)
    try:
        found = own_pictures(problem, replay(problem, it), np.array(it.key, np.uint64))
    except ApevalError:
        return {}
    if found is None:
        return {}
    if not can_encode():
        return {
            "remark": "The environment can draw itself; the report shows it where Pillow is "
            "installed: pip install 'apeval[pictures]'."
        }
    frames = len(found.pictures)
    keep = np.unique(np.linspace(0, frames - 1, min(frames, _MOST_FRAMES)).astype(int))
    texts = as_data([found.pictures[k] for k in keep], room)
    if texts is None:
        return {"remark": "The environment's own pictures are too large for this file."}
    height, width = found.pictures[0].shape[:2]
    return {
        "pictures": texts,
        "size": [width, height],
        "time": short(found.time[keep]),
        "decision": found.decision[keep].tolist(),
    }


def _scene(it: ReportData, record: Mapping[str, Any]) -> Scene | None:
    if it.problem is not None:
        return scene_of_record(it.problem, record)
    if it.episodes is None:
        return None
    place = np.flatnonzero(it.episodes.ids == record["id"])
    return series_scene(None, it.episodes, int(place[0])) if len(place) else None


def _first(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is worth showing beside the picture: measures and disturbances before states."""
    rank = {"measure": 0, "disturbance": 1, "state": 2, "agent": 3}
    return sorted(series, key=lambda s: rank.get(s["group"], 4))[:_MOST_SERIES]


def _thin(series: dict[str, Any]) -> dict[str, Any]:
    keep = np.unique(np.linspace(0, len(series["time"]) - 1, _MOST_FRAMES).astype(int)).tolist()
    if not series["time"]:
        return series
    return {**series, **{k: [series[k][i] for i in keep] for k in ("time", "value")}}


def failure_rows(it: ReportData) -> tuple[list[str], list[list[Any]], int]:
    """Titles, rows (the weightiest first) and how many failures there are in all. A cell is a
    number, a text or None."""
    episodes, sample = it.episodes, it.sample
    if episodes is None or sample is None or not sample.failed.any():
        return [], [], 0
    failing = np.flatnonzero(sample.failed)
    w = sample.weights[failing]
    order = failing[np.argsort(-w, kind="stable")]
    kinds = list(it.result["kinds"])
    titles = ["episode", "kind", "decisions", "share of the estimate", "log₁₀ weight"]
    with_margin = bool(np.isfinite(sample.margin[failing]).any())
    titles += ["margin"] if with_margin else []
    titles += ["hardest push (σ)", "at decision"] if _whitens(it) else []
    rows = []
    for i in order[:_MOST_ROWS].tolist():
        row: list[Any] = [
            int(episodes.ids[i]),
            kinds[int(sample.kind[i]) - 1],
            int(sample.length[i]),
            float(sample.weights[i] / w.sum()) if w.sum() > 0.0 else 0.0,
            float(sample.log_weights[i] / np.log(10.0)) if sample.weights[i] > 0.0 else None,
        ]
        if with_margin:
            row.append(float(sample.margin[i]) if np.isfinite(sample.margin[i]) else None)
        if _whitens(it):
            rows_i = episodes.rows_of(i)
            law = episodes.law.take(np.arange(rows_i.start, rows_i.stop))
            z = law.to_z(episodes.a_E[rows_i])
            t, j = np.unravel_index(int(np.argmax(np.abs(z))), z.shape)
            row += [float(z[t, j]), int(episodes.t[rows_i][t]) + 1]
        rows.append(row)
    return titles, rows, len(failing)


def _whitens(it: ReportData) -> bool:
    return (
        it.problem is not None
        and it.episodes is not None
        and not it.episodes.law.discrete
        and can_whiten(it.problem.nominal)
        and it.episodes.a_E.shape[1] > 0
    )
