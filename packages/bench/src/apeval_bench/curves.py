"""The paper's figure of estimates and sampled rare-event rates over steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment
from apeval_bench.study import CONFIDENCE, POINTS, STEPS, UNITS, WINDOW, runs, truth_of

QUANTILES = (0.05, 0.5, 0.95)
_TITLES = {"int-v0": "Int-v0", "int-v1": "Int-v1", "lunarlander": "LunarLander"}
_COLUMNS = (
    ("value", "TD value v(s0)"),
    ("estimate", "trajectory-weight estimate"),
    ("rate", "sampled failure rate"),
)
_FLOOR = 1e-4  # of the truth: what log axes show of smaller numbers and of zero


@experiment("reproduce", "curves", "the figure of estimates and sampled rates over steps", seeds=20)
def curves(request: ExperimentRequest) -> ExperimentReport:
    """Median and 5–95 % band over seeds; the runs are those of Table II."""
    return draw(runs(request), request)


def draw(
    found: dict[str, dict[str, list[dict[str, Any]]]], request: ExperimentRequest
) -> ExperimentReport:
    """The figure of runs by problem and row, and its numbers."""
    data: dict[str, Any] = {
        "seeds": [request.all_seeds[0], request.all_seeds[-1]],
        "quantiles": QUANTILES,
        "problems": {
            problem: {
                "truth": truth_of(problem),
                "unit": UNITS[problem],
                "methods": {label: bands(outcomes) for label, outcomes in rows.items()},
            }
            for problem, rows in found.items()
        },
    }
    files = {}
    if request.out is not None:
        files["figure"] = picture(data, request.out / "curves.png")
    return ExperimentReport(data, as_text(data), files=files)


def bands(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """Quantiles over seeds, point by point; a run without a number yet is left out there."""
    found: dict[str, Any] = {"runs": len(outcomes), "steps": outcomes[0]["curve"]["steps"]}
    for name, _ in _COLUMNS:
        table = np.array([o["curve"][name] for o in outcomes], np.float64)
        rows: list[list[float | None]] = []
        for k in range(table.shape[1]):
            seen = table[np.isfinite(table[:, k]), k]
            rows.append(
                [None] * len(QUANTILES) if len(seen) == 0 else np.quantile(seen, QUANTILES).tolist()
            )
        found[name] = rows
    return found


def picture(data: dict[str, Any], path: Path) -> Path:
    """One row per problem: TD value, trajectory-weight estimate, sampled rate."""
    from apeval_bench import style

    names = list(data["problems"])
    figure, axes = style.subplots(len(names), len(_COLUMNS), 11.0, 2.9 * len(names))
    for i, name in enumerate(names):
        p = data["problems"][name]
        for j, (what, title) in enumerate(_COLUMNS):
            ax = axes[i, j]
            least = _FLOOR * p["truth"]
            for label, m in p["methods"].items():
                q = np.array(m[what], np.float64)
                q = q if what == "rate" else np.maximum(q, least)
                style.band(ax, label, m["steps"], q[:, 0], q[:, 1], q[:, 2])
            if what == "rate":
                ax.set_ylim(-0.02, 1.02)
                ax.set_ylabel("failures per episode")
            else:
                ax.axhline(p["truth"], color=style.BLACK, linewidth=1.0, label="truth")
                ax.set_yscale("log")
                ax.set_ylim(least, 1.0)
                ax.set_ylabel("failure probability per episode")
            ax.set_xlim(0, STEPS[name] if m["steps"][-1] > STEPS[name] else m["steps"][-1])
            ax.set_xlabel("steps (decisions of nature)")
            ax.set_title(f"{_TITLES[name]}: {title}")
            ax.grid(alpha=0.25)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return style.save(figure, path)


def as_text(data: dict[str, Any]) -> str:
    """The last point of every curve."""
    lines = [
        "| problem | method | TD value, median (5–95 %) | trajectory weights, median (5–95 %) "
        "| late rate, median (5–95 %) |",
        "|---|---|---|---|---|",
    ]
    for name, p in data["problems"].items():
        for label, m in p["methods"].items():
            cells = [_band(m[what][POINTS - 1]) for what, _ in _COLUMNS]
            lines.append(f"| {name} (v\\* {p['truth']:.3g}) | {label} | {' | '.join(cells)} |")
    first, last = data["seeds"]
    lines.append(
        f"\nAt the end of the budget, seeds {first} … {last}. While a method learns, its "
        "trajectory-weight estimate is the mean over all episodes so far, each weighted by the "
        "proposal that drew it; the frozen stage (from half of the budget on) starts anew, and its "
        f"mean at the end is the one reported with a {CONFIDENCE:.0%} interval. v(s0) does not "
        f"change in it. Rates are over windows of {WINDOW:.0%} of the steps. Numbers below "
        f"{_FLOOR:g} of the truth, and zeros, are drawn there."
    )
    return "\n".join(lines)


def _band(q: list[float | None]) -> str:
    if None in q:
        return "none"
    low, middle, high = q
    return f"{middle:.3g} ({low:.2g} … {high:.2g})"
