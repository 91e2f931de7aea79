"""Charts as data: what the page's script draws, with every axis labelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apeval.results.report.markup import Html, tag

Chart = dict[str, Any]


def axis(label: str, *, log: bool = False, **limits: float) -> dict[str, Any]:
    """An axis; `low` and `high` may be given."""
    return {"label": label, "log": log, **limits}


def short(values: Any, digits: int = 5) -> list[float | None]:
    """Numbers as JSON keeps them: few digits, null where not finite.

    >>> short([1 / 3, float("nan")])
    [0.33333, None]
    """
    numbers = np.asarray(values, np.float64)
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in numbers.tolist()]


def series(
    name: str,
    x: Any,
    y: Any,
    band: tuple[Any, Any] | None = None,
    *,
    mark: str = "line",
    slot: int = 0,
) -> dict[str, Any]:
    """A series of an xy chart. `mark`: line, dots or bars; `slot`: its colour, dash and marker."""
    data: dict[str, Any] = {"name": name, "mark": mark, "slot": slot, "x": short(x), "y": short(y)}
    if band is not None:
        data |= {"lo": short(band[0]), "hi": short(band[1])}
    return data


def xy(
    alt: str,
    x: dict[str, Any],
    y: dict[str, Any],
    lines: Sequence[dict[str, Any]],
    *,
    rules: Sequence[dict[str, Any]] = (),
    zones: Sequence[dict[str, Any]] = (),
) -> Chart:
    """Series over x. `rules` are straight lines ({"y": …} or {"x": …}, with a name), `zones`
    named stretches of x."""
    return {
        "kind": "xy", "alt": alt, "x": x, "y": y,
        "series": list(lines), "rules": list(rules), "zones": list(zones),
    }  # fmt: skip


@dataclass
class Charts:
    """The page's charts and replays, in order; `figure` gives the place where one is drawn."""

    specs: list[Chart] = field(default_factory=list)
    room: int = 3_500_000
    """Characters that environments' own pictures may take in each run of the page: with all else it
    stays below 5 MB."""

    def figure(self, chart: Chart, caption: Any, title: str = "") -> Html:
        """The chart's place on the page, with its caption."""
        self.specs.append(chart)
        return tag(
            "figure",
            tag("p", title, cls="figure-title") if title else None,
            tag("div", cls="plot", data_chart=len(self.specs) - 1),
            tag("figcaption", caption),
            cls=f"chart {chart['kind']}",
        )
