"""Draws the pictures of docs/accuracy.md from docs/results: python tools/accuracy_pictures.py

Each is written twice, for light and for dark pages.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

from apeval_bench.style import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Line,
    subplots,
)

DOCS = Path(__file__).parents[1] / "docs"
GREY = "#8c8c8c"  # seen on white and on black
WIDTH = 4.5  # inches: letters stay legible when a phone shrinks the picture to its width
METHODS = {
    "ape": Line(BLUE, "-", "o"),
    "mc": Line(GREEN, "--", "D"),
    "cem": Line(VERMILION, ":", "v"),
    "ape-scalable": Line(SKY, "-.", "s"),
    "ot-subset": Line(ORANGE, "--", "^"),
    "ot-nais": Line(PURPLE, ":", "P"),
    "ot-ce": Line(GREY, "-.", "X"),
}
ACCURACY = ("accuracy", "chance", "weak", "further")
COVERAGE = ("coverage", "coverage-discrete", "lander", "coverage-pendulum", "coverage-long")
TRIVIAL = ("never-2000", "always-2000")  # nothing to estimate: no error on a logarithmic axis
PAGES = {"": ("#ffffff", "#1f2129", "#d5d7de"), "-dark": ("#1e2129", "#e2e4e9", "#454956")}
WANTED, NOMINAL = 0.92, 0.95  # coverage


def rows(folders: tuple[str, ...], file: str) -> list[dict[str, Any]]:
    """All rows of the benchmarks, in the order of the page."""
    found = [json.loads((DOCS / "results" / it / file).read_text("utf-8")) for it in folders]
    return [row for data in found for row in data["rows"] if row["row"] not in TRIVIAL]


def number(budget: str) -> int:
    """The budget as a number.

    >>> number("5,000 episodes")
    5000
    """
    return int(budget.split()[0].replace(",", ""))


def by_budget() -> Any:
    """Error against budget, for the problems that were run with more than one."""
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows(("accuracy",), "accuracy.json"):
        if not row["row"].endswith("no-margin"):
            runs[row["problem"]].append(row)
    several = {name: found for name, found in runs.items() if len(found) > 1}
    figure, axes = subplots(len(several), 1, WIDTH, 2.5 * len(several) + 0.5)
    for axis, (name, found) in zip(axes[:, 0], several.items(), strict=True):
        found.sort(key=lambda row: number(row["budget"]))
        unit = "episodes" if "episodes" in found[0]["budget"] else "decisions"
        for method, line in METHODS.items():
            mine = [row for row in found if method in row["methods"]]
            if not mine:
                continue
            x = [number(row["budget"]) for row in mine]
            numbers = [row["methods"][method] for row in mine]
            y = [it["relative_rmse"] for it in numbers]
            low, high = zip(*(it["rmse_interval"] for it in numbers), strict=True)
            axis.fill_between(x, low, high, color=line.colour, alpha=0.16, linewidth=0)
            if len(mine) == 1:  # no band without a second budget
                axis.vlines(x, low, high, color=line.colour, linewidth=1.2)
            style = {"color": line.colour, "linestyle": line.dashes, "marker": line.marker}
            axis.plot(x, y, **style, markersize=5, linewidth=1.4, label=method)
        axis.set(xscale="log", yscale="log", title=name, xlabel=f"budget ({unit})")
        axis.set_ylabel("relative RMSE")
        ticks = [number(row["budget"]) for row in found]
        axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axis.minorticks_off()
        axis.axhline(1.0, linewidth=0.8, linestyle=(0, (1, 2)), color=mpl.rcParams["text.color"])
    legend(figure, METHODS)
    return figure


def by_problem() -> Any:
    """The error of every method in every row, each with its interval."""
    found = rows(ACCURACY, "accuracy.json")[::-1]
    figure, axes = subplots(1, 1, WIDTH, 0.3 * len(found) + 1.2)
    axis = axes[0, 0]
    for place, row in enumerate(found):
        known = [method for method in METHODS if method in row["methods"]]
        for k, method in enumerate(known):
            it, line = row["methods"][method], METHODS[method]
            y = place + 0.36 - 0.72 * (k + 0.5) / len(known)
            low, high = it["rmse_interval"]
            axis.plot([low, high], [y, y], color=line.colour, linewidth=1.1)
            size = 5 if method == "ape" else 3.5
            axis.plot(it["relative_rmse"], y, line.marker, color=line.colour, markersize=size)
    axis.axvline(1.0, linewidth=0.8, linestyle=(0, (1, 2)), color=mpl.rcParams["text.color"])
    axis.set(xscale="log", xlabel="relative RMSE", ylim=(-0.7, len(found) - 0.3))
    named(axis, [row["row"] for row in found])
    legend(figure, METHODS)
    return figure


def coverage() -> Any:
    """How often the interval of `ape` covers the truth, with the interval of that share."""
    found = rows(COVERAGE, "coverage.json")[::-1]
    figure, axes = subplots(1, 1, WIDTH, 0.26 * len(found) + 1.0)
    axis = axes[0, 0]
    for place, row in enumerate(found):
        low, high = row["coverage_interval"]
        axis.plot([low, high], [place, place], color=BLUE, linewidth=1.4)
        axis.plot(row["coverage"], place, "o", color=BLUE, markersize=5)
    axis.axvline(NOMINAL, linewidth=1.0, color=mpl.rcParams["text.color"])
    axis.axvline(WANTED, linewidth=1.0, linestyle="--", color=VERMILION)
    axis.xaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0, decimals=0))
    axis.set_xlabel("coverage")
    named(axis, [f"{row['row']} ({row['runs']} runs)" for row in found])
    return figure


def named(axis: Any, names: list[str]) -> None:
    """Rows with their names, and a line to each."""
    axis.set_yticks(range(len(names)), names)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="y", linewidth=0.6)
    axis.set_axisbelow(True)


def legend(figure: Any, lines: dict[str, Line]) -> None:
    """One legend below all panels."""
    handles = [
        mpl.lines.Line2D([], [], color=line.colour, marker=line.marker, linestyle=line.dashes)
        for line in lines.values()
    ]
    figure.legend(handles, list(lines), loc="outside lower center", ncols=3, frameon=False)


def write(name: str, draw: Callable[[], Any]) -> None:
    """A picture for light and one for dark pages; the same data give the same bytes."""
    from matplotlib import pyplot as plt

    for page, (paper, ink, faint) in PAGES.items():
        mpl.rcParams.update(
            {
                "svg.fonttype": "none",
                "svg.hashsalt": name,
                "figure.facecolor": paper,
                "axes.facecolor": paper,
                "grid.color": faint,
                **dict.fromkeys(
                    ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color"), ink
                ),
                "ytick.color": ink,
            }
        )
        figure = draw()
        figure.savefig(DOCS / "img" / f"{name}{page}.svg", metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    write("error-by-budget", by_budget)
    write("error-by-problem", by_problem)
    write("coverage", coverage)
