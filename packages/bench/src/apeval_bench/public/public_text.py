"""The tables of `bench public`, the bad rows first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apeval_bench.public.scores import badness
from apeval_bench.public.yardstick import CLASSES


def as_text(data: Mapping[str, Any]) -> str:
    """All tables, as Markdown.

    Args:
        data: What the results file has.

    Returns:
        A summary by method, a table per class, and what has not been run.
    """
    parts = ["**By method**", summary_table(data["lines"])]
    rows = {row["row"]: row for row in data["rows"]}
    for kind, title in CLASSES.items():
        mine = [line for line in data["lines"] if rows[line["row"]]["class"] == kind]
        if mine:
            parts += [f"**{title}**", class_table(mine, rows)]
    seeds = [seed for line in data["lines"] for seed in line["seeds"]]
    if seeds:
        parts.append(
            f"Seeds {min(seeds)} to {max(seeds)}. In brackets 90 % intervals: of the error by "
            "bootstrap over runs, of the coverage exact. A silent miss is a run whose interval "
            "excludes the truth although it is trusted. Worse than Monte Carlo: the interval is "
            "wider than Monte Carlo's exact one would be, in the mean, at the same number of "
            "steps; the number beside it is the median ratio of the widths. CPU is the median of "
            "a run. The worst rows come first: by silent misses, then by runs worse than Monte "
            "Carlo, then by the error."
        )
    parts.append(missing_text(data["not_run"]))
    return "\n\n".join(part for part in parts if part)


def summary_table(lines: Sequence[Mapping[str, Any]]) -> str:
    """One row per method, over all its rows.

    Args:
        lines: Lines with scores.

    Returns:
        Markdown; empty without lines.
    """
    if not lines:
        return "Nothing has been run."
    table = [
        "| method | rows | runs | median error of a row | largest | covered | silent misses "
        "| worse than Monte Carlo | without estimate |",
        "|---" * 9 + "|",
    ]
    by_method: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines:
        by_method.setdefault(line["method"], []).append(line["score"])
    found = [(name, _total(scores)) for name, scores in by_method.items()]
    for name, t in sorted(found, key=lambda it: -it[1]["silent"] / it[1]["runs"]):
        table.append(
            f"| {name} | {t['rows']} | {t['runs']} | {_percent(t['median'])} "
            f"| {_percent(t['largest'])} | {_share(t['covered'], t['runs'])} "
            f"| {_share(t['silent'], t['runs'])} | {_share(t['worse'], t['runs'])} "
            f"| {t['without']} |"
        )
    return "\n".join(table)


def _total(scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    errors = sorted(score["relative_rmse"] for score in scores)
    names = {
        "runs": "runs",
        "covered": "covered",
        "silent": "silent_misses",
        "worse": "worse_than_monte_carlo",
        "without": "without_estimate",
    }
    sums = {name: sum(score[key] for score in scores) for name, key in names.items()}
    middle = 0.5 * (errors[(len(errors) - 1) // 2] + errors[len(errors) // 2])
    return {"rows": len(scores), "median": middle, "largest": errors[-1], **sums}


def class_table(lines: Iterable[Mapping[str, Any]], rows: Mapping[str, Mapping[str, Any]]) -> str:
    """All lines of a class, the worst first.

    Args:
        lines: Lines with scores.
        rows: Rows by name.

    Returns:
        Markdown.
    """
    table = [
        "| row | method | truth | relative RMSE | bias | covered | silent misses "
        "| worse than Monte Carlo | not trusted | CPU, s | published |",
        "|---" * 11 + "|",
    ]
    for line in sorted(lines, key=lambda it: badness(it["score"])):
        s, row = line["score"], rows[line["row"]]
        low, high = s["rmse_interval"]
        least, most = s["coverage_interval"]
        wide = s["width_over_monte_carlo"]
        table.append(
            f"| {line['row']} | {line['method']} | {row['truth']:.3g} "
            f"| {_percent(s['relative_rmse'])} [{_percent(low)}, {_percent(high)}] "
            f"| {s['bias']:+.0%} | {s['covered']}/{s['runs']} [{least:.0%}, {most:.0%}] "
            f"| {s['silent_misses']} | {s['worse_than_monte_carlo']} ({wide:.2g} ×) "
            f"| {s['not_trusted']} | {s['cpu_seconds']:.2g} | {row['published']} |"
        )
    return "\n".join(table)


def missing_text(not_run: Mapping[str, Sequence[str]]) -> str:
    """What has not been run, said plainly.

    Args:
        not_run: Methods by row.

    Returns:
        A list; empty where nothing is missing.
    """
    if not not_run:
        return ""
    lines = [f"- {row}: {', '.join(names)}" for row, names in not_run.items()]
    return "\n".join(["**Not run yet**", "", *lines])


def _percent(x: float) -> str:
    """Two figures of a share, or a factor where it is large.

    >>> _percent(0.0314), _percent(0.5), _percent(12.3)
    ('3.1 %', '50 %', '1,230 %')
    """
    return f"{100.0 * x:.1f} %" if x < 0.0995 else f"{100.0 * x:,.0f} %"


def _share(k: int, n: int) -> str:
    return f"{k}/{n} = {k / n:.0%}"
