"""The ablation of `ape` as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apeval_bench.knockouts.statistics import (
    DOES_NOT,
    HARMS,
    IDLE,
    MIXED,
    PAYS,
    UNDECIDED,
)  # fmt: skip

_ORDER = (HARMS, DOES_NOT, IDLE, UNDECIDED, MIXED, PAYS)
_KINDS = {"heuristic": "Heuristics", "group": "Several together", "other value": "Other values"}


def as_text(data: Mapping[str, Any]) -> str:
    """Verdicts, details, and where the error comes from."""
    parts = []
    for kind, title in _KINDS.items():
        mine = [k for k in data["knock_outs"] if k["kind"] == kind]
        if mine:
            parts += [f"**{title}**", _verdicts(mine)]
    parts += ["**By problem**", _details(data["knock_outs"])]
    parts += ["**As it is**", _problems(data["problems"])]
    parts += ["**Where the error comes from**", _parts(data["problems"])]
    parts += ["**The learner's own time**", _speed(data["speed"])]
    first, last = data["seeds"]
    rules = data["rules"]
    parts.append(
        f"Tuning seeds {first} to at most {last}, the same with and without. Ratios are those of "
        "the mean squared error to expect of a run without the heuristic and with it: above 1 the "
        "heuristic helps. It is computed from what a run learned, on failures drawn beforehand, so "
        "that the luck of the frozen stage does not enter. In brackets bootstrap intervals over "
        f"seeds, {rules['confidence']:.0%} for one problem and {rules['pooled']:.0%} for means "
        "over problems."
    )
    return "\n\n".join(parts)


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| taken out | instead | verdict | error² without / with, all problems | where it helps "
        "| where it harms | covered | silent misses | seconds |",
        "|---" * 9 + "|",
    ]
    for r in sorted(rows, key=lambda r: (_ORDER.index(r["verdict"]), _ratio(r))):
        more, less = _far(r, True), _far(r, False)
        runs = r["runs"]
        lines.append(
            f"| {r['name']}: {r['heuristic']} | {r['instead']} | {r['verdict']} "
            f"| {_spread(r['together'])} | {more} | {less} "
            f"| {_pair(r['covered'])} of {runs} | {_pair(r['silent'])} "
            f"| {'' if r['seconds'] is None else format(r['seconds'], '.2f')} |"
        )
    return "\n".join(lines)


def _ratio(r: Mapping[str, Any]) -> float:
    return float(r["together"]["ratio"]) if r["together"] else 1.0


def _far(r: Mapping[str, Any], helps: bool) -> str:
    """Problems whose interval excludes 1 on that side."""
    found = [
        f"{row['problem']} {row['ratio']:.2f}"
        for row in r["problems"]
        if row["touched"] and (row["interval"][0] > 1.0 if helps else row["interval"][1] < 1.0)
    ]
    return ", ".join(found)


def _spread(r: Mapping[str, Any] | None) -> str:
    if r is None:
        return ""
    low, high = r["interval"]
    return f"{r['ratio']:.2f} [{low:.2f}, {high:.2f}]"


def _pair(values: Sequence[int]) -> str:
    """Without and with."""
    return f"{values[0]} / {values[1]}"


def _details(knock_outs: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| taken out | problem | runs | error² without / with | the same of the runs' own errors "
        "| RMSE without | with | covered | silent misses | seconds |",
        "|---" * 10 + "|",
    ]
    for k in knock_outs:
        idle = [r["problem"] for r in k["problems"] if not r["touched"]]
        for r in (r for r in k["problems"] if r["touched"]):
            without, with_ = r["seconds"]
            lines.append(
                f"| {k['name']} | {r['problem']} | {r['runs']} | {_spread(r)} "
                f"| {_spread(r['of_errors'])} | {r['rmse']:.3f} | {r['rmse_as_it_is']:.3f} "
                f"| {_pair(r['covered'])} | {_pair(r['silent'])} | {without:.2f} / {with_:.2f} |"
            )
        if idle:
            lines.append(f"| {k['name']} | no effect: {', '.join(idle)} | | | | | | | | |")
    return "\n".join(lines)


def _problems(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| problem | class | budget | truth | runs | RMSE expected | of the runs | covered "
        "| silent misses | runs that lost > 2 % | seconds | reference: failures (effective) "
        "| its estimate / truth |",
        "|---" * 13 + "|",
    ]
    for r in rows:
        budget = f"{r['steps']:,} decisions" if "steps" in r else f"{r['episodes']:,} episodes"
        known = r["reference"]
        lines.append(
            f"| {r['problem']} | {r['class']} | {budget} | {r['truth']:.3g} | {r['runs']} "
            f"| {r['expected_rmse']:.3f} | {r['rmse']:.3f} | {r['covered']} | {r['silent']} "
            f"| {r['lost_more_than_2_percent']} | {r['seconds']:.2f} "
            f"| {known['failures']:,} ({known['ess']:,.0f}) "
            f"| {known['estimate'] / r['truth']:.3f} ± {known['standard_error'] / r['truth']:.3f} |"
        )
    return "\n".join(lines)


def _parts(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| problem | class | error² expected | best proposal, all episodes | spent on learning "
        "| fit | failures hardly met |",
        "|---" * 7 + "|",
    ]
    for r in rows:
        p = r["parts"]
        total = sum(p.values())
        shares = " | ".join(f"{p[k] / total:.0%}" for k in ("floor", "learning", "fit", "lost"))
        lines.append(f"| {r['problem']} | {r['class']} | {total:.4f} | {shares} |")
    return "\n".join(lines)


def _speed(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| episodes | µs per decision | wanted |", "|---|---|---|"]
    lines += [f"| {r['case']} | {r['us_per_decision']:.0f} | {r['bar']:.0f} |" for r in rows]
    return "\n".join(lines)
