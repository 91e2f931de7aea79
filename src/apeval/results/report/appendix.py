"""The end of the report: comparison, glossary, and how to get the same numbers again."""

from __future__ import annotations

import json
from typing import Any

from apeval.results.report.charts import Charts
from apeval.results.report.fragments import absent, forest, plain_table
from apeval.results.report.headline import facts, title_of
from apeval.results.report.markup import Html, tag
from apeval.results.report.number_format import count, number, one_in, plain, span
from apeval.results.report.report_data import ReportData

_NAMES = {
    "inputs_sha256": "SHA-256 of the inputs",
    "source_sha256": "SHA-256 of apeval's code",
    "files": "files of the problem",
    "code": "SHA-256 of the problem's functions",
    "seal": "seal of the run folder",
}
GLOSSARY = {
    "Adversary": "What plays nature while sampling. It learned to make failures happen, in the "
    "ways that nature itself is most likely to.",
    "Decision": "One moment at which nature acts: one disturbance.",
    "Detection limit": "A failure mode that the adversary never produces, but more frequent than "
    "this, would have been seen among the episodes drawn as nature has them.",
    "Disturbance": "What nature does at a decision, such as another driver's acceleration.",
    "Effective failures (ESS)": "How many failures of equal weight would say as much.",
    "Episode": "One run of the simulator from its start to its end.",
    "Failure mode": "A group of failures that nature brings about in the same way.",
    "Frozen stage": "The last part of a run. The adversary no longer changes, so that weights are "
    "exact and the estimate has no bias.",
    "Interval": "A range that contains the true probability in the stated share of such runs. It "
    "describes chance in the sample, not errors of the simulator or of the nominal.",
    "Margin": "The smallest distance to failure in an episode; zero or less means failed.",
    "Monte Carlo": "Simulating as nature has it, and counting. Sure, but slow for rare failures.",
    "Nominal": "How nature behaves in the world that the number is about.",
    "Pareto k": "How heavy the tail of the weights is. Below 0.5 is good, above 0.7 is not.",
    "Value function": "The probability of a failure from a given state on.",
    "Weight": "Probability of an episode under nature divided by that under the adversary. The "
    "mean of weight times failure is the failure probability.",
}


def glossary() -> list[Html]:
    """The terms in plain words."""
    return [
        tag(
            "dl",
            [tag("div", tag("dt", term), tag("dd", text)) for term, text in GLOSSARY.items()],
            cls="glossary",
        )
    ]


def comparison(runs: list[ReportData], charts: Charts) -> list[Any]:
    """Several runs side by side."""
    entries, rows = [], []
    for it in runs:
        r = it.result
        lo, hi = r["interval"]
        entries.append(
            {"name": _name(it), "value": r["estimate"], "lo": lo, "hi": hi, "truth": r["truth"]}
        )
        rows.append(
            (
                it.name,
                title_of(it),
                r["method"],
                number(r["estimate"]),
                span(r["interval"]),
                one_in(r["estimate"]),
                count(r["episodes"]),
                number(r["final"]["ess"]),
                "yes" if r["trusted"] else "no, see warnings",
            )
        )
    head = (
        "run", "problem", "method", "estimate", "interval", "in words", "episodes",
        "effective failures", "trusted",
    )  # fmt: skip
    parts: list[Any] = [
        charts.figure(
            forest("Estimates of the runs with their intervals.", entries),
            _overlap(runs),
            "Estimates with their intervals",
        ),
        plain_table(head, rows, wrap=False),
    ]
    if len({title_of(it) for it in runs}) > 1:
        parts.insert(0, absent("These runs are of different problems: differences are expected."))
    return parts


def _name(it: ReportData) -> str:
    return f"{it.name} ({title_of(it)}, {it.result['method']}, seed {it.result['seed']})"


def _overlap(runs: list[ReportData]) -> list[Any]:
    low = max(it.result["interval"][0] for it in runs)
    high = min(it.result["interval"][1] for it in runs)
    if low > high:
        text = "At least two intervals do not overlap: these runs differ by more than chance. "
    else:
        text = "All intervals overlap, which does not show that the probabilities are equal. "
    key = "Squares are estimates, bars their intervals, dotted ticks known truths. "
    return [key, text, tag("code", "apeval compare"), " gives the interval of the ratio."]


def reproducibility(it: ReportData) -> list[Any]:
    """All that is needed to get the same numbers."""
    known = dict(it.provenance)
    text = known.pop("command", None) or ""
    inputs = known.pop("inputs", None)
    rows = [("seed", str(it.result["seed"]))]
    if isinstance(where := known.get("platform"), dict):
        known["platform"] = list(where.values())
    known.pop("schema_version", None)
    identity = known.pop("identity", {})
    if identity:
        known["files"] = [*identity.get("files", []), *(known.get("files") or [])]
        known["code"] = identity.get("code", {}).get("sha256")
    known["seal"] = it.seal
    rows += [
        (_NAMES.get(key, key.replace("_", " ")), plain(value))
        for key, value in known.items()
        if value
    ]
    return [
        tag("pre", tag("code", text)) if text else absent("The command was not recorded."),
        tag("p", "The same command gives the same numbers, on any number of cores.", cls="small")
        if text
        else None,
        facts(rows),
        tag(
            "details",
            tag("summary", "All inputs as data"),
            tag("pre", json.dumps(inputs, indent=1, ensure_ascii=False)),
            cls="data-table",
        )
        if inputs
        else None,
    ]
