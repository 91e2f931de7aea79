"""Figures that can be read in print and by colour-blind readers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from apeval.atomic_files import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's palette.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
_DPI = 130
_TEXT: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 9,
}


@dataclass(frozen=True)
class Line:
    """How a method is drawn, the same in every figure: colour, dashes and marker all differ."""

    colour: str
    dashes: str
    marker: str


LINES = {
    "ape-scalable steered": Line(BLUE, "-", "o"),
    "ape-scalable cross-entropy": Line(PURPLE, (0, (3, 1)), "P"),  # type: ignore[arg-type]
    "ape-scalable printed": Line(SKY, "--", "s"),
    "ape-discrete": Line(ORANGE, "-.", "^"),
    "cem-discrete": Line(VERMILION, ":", "v"),
    "mc": Line(GREEN, (0, (5, 1, 1, 1, 1, 1)), "D"),  # type: ignore[arg-type]
}


def subplots(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """A figure without a window; axes always as a (rows, columns) array."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    mpl.rcParams.update(_TEXT)
    figure, axes = plt.subplots(
        rows, columns, figsize=(width, height), squeeze=False, layout="constrained"
    )
    return figure, axes


def save(figure: Figure, path: Path) -> Path:
    """Write a PNG and forget the figure."""
    from matplotlib import pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        figure.savefig(file, format="png", dpi=_DPI)
    plt.close(figure)
    return path


def band(axes: Axes, label: str, steps: Any, low: Any, middle: Any, high: Any) -> None:
    """Median and 5–95 % band of a method."""
    line = LINES[label]
    axes.fill_between(steps, low, high, color=line.colour, alpha=0.18, linewidth=0)
    axes.plot(
        steps,
        middle,
        color=line.colour,
        linestyle=line.dashes,
        marker=line.marker,
        markevery=(3, 12),
        markersize=4,
        linewidth=1.6,
        label=label,
    )


def density(axes: Axes, edges: tuple[float, float], p: Any) -> Any:
    """A density over a square as a picture with contour lines; dark is dense, also in grey."""
    extent = (*edges, *edges)
    shown = axes.imshow(p, origin="lower", extent=extent, cmap="Blues", vmin=0.0, aspect="equal")
    peak = float(np.max(p))
    if peak > 0.0:
        axes.contour(
            p, levels=[0.1 * peak, 0.5 * peak], extent=extent, colors=BLACK, linewidths=0.5
        )
    return shown
