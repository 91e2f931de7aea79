"""What the arms came to, as medians and as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from apeval.hardening.loop import ADVERSARY

_FACTOR, _RETURN_LOST = 3.0, 0.05


def median_of(arm: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the seeds of an arm."""
    own = [r for r in rows if r["arm"] == arm]
    return {
        "arm": arm,
        "seeds": len(own),
        "before": float(np.median([r["before"]["estimate"] for r in own])),
        "after": float(np.median([r["after"]["estimate"] for r in own])),
        "ratio": float(np.median([_or_inf(r["ratio"]) for r in own])),
        "ratio_low": float(np.median([r["ratio_interval"][0] for r in own])),
        "ratio_high": float(np.median([_or_inf(r["ratio_interval"][1]) for r in own])),
        "return_change": float(np.median([r["return_change"] or 0.0 for r in own])),
        "better": sum(r["verdict"] == "better" for r in own),
    }


def reached(data: dict[str, Any]) -> bool:
    """Whether hardening does what it should, in the median."""
    ours = next(m for m in data["medians"] if m["arm"] == ADVERSARY)
    return bool(
        ours["ratio"] <= 1.0 / _FACTOR
        and ours["ratio_high"] < 1.0
        and ours["return_change"] >= -_RETURN_LOST
    )


def as_text(data: dict[str, Any]) -> str:
    """A line for each arm and seed of a problem, and the medians."""
    lines = [
        f"**{data['title']}**\n",
        "| trained on | seed | before | after | ratio | nominal return | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    order = [m["arm"] for m in data["medians"]]
    for r in sorted(data["rows"], key=lambda r: (order.index(r["arm"]), r["seed"])):
        a, b, (low, high) = r["before"], r["after"], r["ratio_interval"]
        lines.append(
            f"| {r['arm']} | {r['seed']} | {_probability(a)} | {_probability(b)} | "
            f"{_ratio(_or_inf(r['ratio']), low, _or_inf(high))} | "
            f"{a['nominal_return']:.2f} → {b['nominal_return']:.2f} | {r['verdict']} |"
        )
    for m in data["medians"]:
        lines.append(
            f"| **{m['arm']}** | median of {m['seeds']} | {m['before']:.2e} | {m['after']:.2e} | "
            f"{_ratio(m['ratio'], m['ratio_low'], m['ratio_high'])} | {m['return_change']:+.2%} | "
            f"better in {m['better']} |"
        )
    s = data["settings"]
    for m in data["medians"][1:]:
        own, other = (
            {r["seed"]: r for r in data["rows"] if r["arm"] == arm} for arm in (ADVERSARY, m["arm"])
        )
        wins = sum(own[k]["after"]["estimate"] < other[k]["after"]["estimate"] for k in own)
        lines.append(
            f"| adversary beside {m['arm']} | same seeds | | | "
            f"{_beside(own, other):.2g} in the median | | "
            f"fails less often in {wins} of {len(own)} |"
        )
    lines.append(
        f"\n{data['about']}; then {s['steps']:,} steps more in each way, a failure rewarded with "
        f"{s['failure_reward']:g}. Failure probabilities with 95 % intervals ({s['episodes']:,} "
        "episodes each, an adversary learned from nothing); † a number that is not to be trusted. "
        "Ratio: after over before. Wanted of the adversary in the median: a "
        f"ratio of {1.0 / _FACTOR:.2f} at most, its interval below 1, a return down by "
        f"{_RETURN_LOST:.0%} at most: "
        f"{'reached' if reached(data) else 'not reached'}."
    )
    return "\n".join(lines)


def _beside(own: dict[int, Any], other: dict[int, Any]) -> float:
    """The failure probability after training over the control's, seed by seed, in the median."""
    with np.errstate(divide="ignore", invalid="ignore"):
        over = [
            np.float64(own[k]["after"]["estimate"]) / other[k]["after"]["estimate"] for k in own
        ]
    return float(np.median(over))


def _probability(it: dict[str, Any]) -> str:
    low, high = it["interval"]
    return f"{it['estimate']:.2e}{'' if it['trusted'] else ' †'} ({low:.1e} … {high:.1e})"


def _ratio(ratio: float, low: float, high: float) -> str:
    return f"{ratio:.2g} ({low:.2g} … {'∞' if math.isinf(high) else f'{high:.2g}'})"


def _or_inf(value: float | None) -> float:
    return math.inf if value is None else value
