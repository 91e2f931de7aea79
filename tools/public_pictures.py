"""Draws the pictures of docs/public.md from docs/results/public: python tools/public_pictures.py

One per class of problems: the error of every method against the budget, a panel per problem. Each
is written twice, for light and for dark pages.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import matplotlib as mpl
from accuracy_pictures import DOCS, METHODS, WIDTH, legend, write

from apeval_bench.public.yardstick import CLASSES
from apeval_bench.style import BLACK, YELLOW, Line, subplots

LINES = METHODS | {"splitting": Line(YELLOW, "-", "*"), "ape-tabular": Line("#a6611a", "--", "h")}
_APART = 1.06  # factor from one method to the next, so that dots at one budget stay apart


def draw(data: dict[str, Any], kind: str) -> Any:
    """A class's picture.

    Args:
        data: What docs/results/public/public.json has.
        kind: The class.

    Returns:
        The figure.
    """
    panels: dict[tuple[str, str], dict[str, list[tuple[float, dict[str, Any]]]]] = {}
    for row in (row for row in data["rows"] if row["class"] == kind):
        (budget,) = row["budget"].values()
        for line in (line for line in data["lines"] if line["row"] == row["row"]):
            panel = panels.setdefault((_title(row), *row["budget"]), {})
            panel.setdefault(line["method"], []).append((budget, line["score"]))
    figure, axes = subplots(len(panels), 1, WIDTH, 2.0 * len(panels) + 0.8)
    shown = sorted({method for lines in panels.values() for method in lines})
    places = {name: _APART ** (k - (len(shown) - 1) / 2) for k, name in enumerate(shown)}
    for axis, ((title, unit), lines) in zip(axes.flat, panels.items(), strict=True):
        _panel(axis, title, unit, lines, places)
    legend(figure, {name: LINES.get(name, Line(BLACK, "-", "x")) for name in shown})
    return figure


def _title(row: dict[str, Any]) -> str:
    settings = ", ".join(f"{name} = {value}" for name, value in row["settings"].items())
    return f"{row['problem']}{f' ({settings})' if settings else ''}: {row['truth']:.2g}"


def _panel(
    axis: Any,
    title: str,
    unit: str,
    lines: dict[str, list[tuple[float, dict[str, Any]]]],
    places: dict[str, float],
) -> None:
    ticks: set[float] = set()
    for method, points in lines.items():
        line = LINES.get(method, Line(BLACK, "-", "x"))
        budgets, scores = zip(*sorted(points, key=lambda it: it[0]), strict=True)
        ticks |= set(budgets)
        x = [budget * places[method] for budget in budgets]
        low, high = zip(*(score["rmse_interval"] for score in scores), strict=True)
        axis.vlines(x, low, high, color=line.colour, linewidth=1.0, alpha=0.6)
        style = {"color": line.colour, "linestyle": line.dashes, "marker": line.marker}
        y = [score["relative_rmse"] for score in scores]
        axis.plot(x, y, **style, markersize=4, linewidth=1.2)
    axis.set(xscale="log", yscale="log", xlabel=f"budget ({unit})", ylabel="relative RMSE")
    axis.set_title(title)
    axis.set_xticks(sorted(ticks), [f"{tick:,}" for tick in sorted(ticks)])
    axis.minorticks_off()
    axis.set_xlim(min(ticks) / 1.6, max(ticks) * 1.6)
    axis.axhline(1.0, linewidth=0.8, linestyle=(0, (1, 2)), color=mpl.rcParams["text.color"])


if __name__ == "__main__":
    found = json.loads((DOCS / "results" / "public" / "public.json").read_text("utf-8"))
    measured = {row["row"] for row in found["lines"]}
    for kind in CLASSES:
        if any(row["class"] == kind and row["row"] in measured for row in found["rows"]):
            write(f"public-{kind}", partial(draw, found, kind))
