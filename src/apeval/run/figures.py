"""Answers as Matplotlib figures, which belong to nobody until they are shown or saved."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from apeval.errors import ApevalError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from apeval.run.policy_comparison import PolicyComparison
    from apeval.run.result import Result

_COLOUR, _TRUTH = "#0072B2", "#D55E00"  # of Okabe and Ito
_ROW = 0.36  # inches
_NARROW = 8.0

Row = tuple[str, float, tuple[float, float | None]]
"""A name, a value and its interval."""


def figure_of_result(result: Result) -> Figure:
    """The estimate, kinds and modes with their intervals; the tail where there is a margin."""
    rows: list[Row] = [("all failures", result.estimate, result.interval)]
    if len(result.kinds) > 1:
        rows += [(name, it.probability, it.interval) for name, it in result.kinds.items()]
    if len(result.modes) > 1:
        for number, mode in enumerate(result.modes, start=1):
            rows.append((f"mode {number}: {mode.kind}", mode.probability, mode.interval))
    figure, axes = _figure(len(rows), 2 if result.tail else 1)
    _intervals(axes[0], rows, "failure probability per episode")
    if result.truth is not None:
        axes[0].axvline(result.truth, color=_TRUTH, linewidth=1.0, label="known truth")
        axes[0].legend(fontsize=8, frameon=False)
    if result.tail:
        _tail(axes[1], result)
    confidence = f"{100 * result.confidence:.4g} % intervals"
    figure.suptitle(f"{result.problem or 'problem'}, {result.method}: {confidence}", fontsize=10)
    return figure


def figure_of_comparison(found: PolicyComparison) -> Figure:
    """Both probabilities, and their ratio with the line at which they are equal."""
    figure, axes = _figure(2, 2)
    rows: list[Row] = [
        (f"A {found.a}", found.estimate_a, found.interval_a),
        (f"B {found.b}", found.estimate_b, found.interval_b),
    ]
    _intervals(axes[0], rows, "failure probability per episode")
    ratio = 0.0 if found.ratio is None else found.ratio
    _intervals(axes[1], [("A / B", ratio, found.ratio_interval)], "ratio")
    axes[1].axvline(1.0, color=_TRUTH, linewidth=1.0)
    figure.suptitle(f"{found.in_words()} ({100 * found.confidence:.4g} %)", fontsize=10)
    return figure


def _figure(rows: int, columns: int) -> tuple[Figure, Sequence[Any]]:
    if importlib.util.find_spec("matplotlib") is None:
        raise ApevalError("a figure needs Matplotlib: pip install 'apeval[pictures]'")
    from matplotlib.figure import Figure

    height = max(2.2, 1.2 + _ROW * rows)
    figure = Figure(figsize=(4.8 * columns, height), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def _intervals(axes: Any, rows: Sequence[Row], label: str) -> None:
    """One line per row, the first on top. An end at 0 or beyond all numbers is an arrow."""
    from matplotlib.ticker import MaxNLocator

    numbers = [v for _, value, (lo, hi) in rows for v in (lo, value, hi) if v is not None and v > 0]
    least, most = (min(numbers), max(numbers)) if numbers else (0.1, 1.0)
    for k, (_, value, (lo, hi)) in enumerate(rows):
        left = lo if lo > 0.0 else least / 3.0
        right = most * 3.0 if hi is None else max(hi, left)
        axes.plot([left, right], [k, k], color=_COLOUR, linewidth=1.6)
        if lo <= 0.0:
            axes.plot([left], [k], marker="<", color=_COLOUR)
        if hi is None:
            axes.plot([right], [k], marker=">", color=_COLOUR)
        if value > 0.0:
            axes.plot([value], [k], marker="o", color=_COLOUR)
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.xaxis.set_minor_formatter("")
    if most < _NARROW * least:  # less than a power of ten: its marks would be too few
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter("{x:.2g}")
    axes.set_xlabel(label, fontsize=9)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", alpha=0.3)


def _tail(axes: Any, result: Result) -> None:
    points = [it for it in result.tail if it.probability > 0.0]
    margin = [it.margin for it in points]
    axes.plot(margin, [it.probability for it in points], color=_COLOUR)
    low, high = [it.interval[0] for it in points], [it.interval[1] for it in points]
    axes.fill_between(margin, low, high, color=_COLOUR, alpha=0.2, linewidth=0.0)
    axes.axvline(0.0, color="#333333", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_xlabel("margin m", fontsize=9)
    axes.set_ylabel("P(margin ≤ m)", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3)
