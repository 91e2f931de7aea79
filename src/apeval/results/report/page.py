"""The page: sections in their order, and the one file they become."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from apeval.results.report import headline, rounds_page, sections
from apeval.results.report.appendix import comparison, glossary, reproducibility
from apeval.results.report.charts import Charts
from apeval.results.report.markup import Html, script_json, tag, together
from apeval.results.report.report_data import ReportData
from apeval.results.report.rounds_page import TrainingStory
from apeval.version import __version__

_SCRIPTS = ("scale.js", "chart.js", "heat.js", "replay.js", "page.js")


def render(runs: list[ReportData], story: TrainingStory | None = None) -> str:
    """The whole file."""
    charts = Charts()
    charts.room //= len(runs) if story is None else len(runs) + 2  # two are shown twice
    several = len(runs) > 1
    contents: list[tuple[str, str]] = [("warnings", "Warnings")]
    body: list[Any] = [headline.warnings(runs)]
    if story is not None:
        contents.append(("training", "Training"))
        body.append(_section("training", "Training", rounds_page.training(story, runs, charts), 2))
    elif several:
        contents.append(("comparison", "Comparison"))
        body.append(_section("comparison", "Comparison", comparison(runs, charts), 2))
    for k, it in enumerate(runs, start=1):
        if several:
            contents.append((f"run-{k}", it.name))
            body.append(
                tag(
                    "article",
                    tag("h2", f"Run {k}: {it.name}", id=f"run-{k}", cls="run"),
                    [
                        _section(f"run-{k}-{key}", title, parts, 3)
                        for key, title, parts in _run(it, charts)
                    ],
                )
            )
            continue
        for key, title, parts in _run(it, charts):
            contents.append((key, title))
            body.append(_section(key, title, parts, 2))
    contents.append(("glossary", "Glossary"))
    body.append(_section("glossary", "Glossary", glossary(), 2))
    if story is not None:
        title = rounds_page.title(story, runs[0].result["problem"])
    elif several:
        title = f"{len(runs)} runs compared"
    else:
        title = f"How often does {headline.title_of(runs[0])} fail?"
    script = "\n".join(["", "{", '"use strict";', *map(_template, _SCRIPTS), "}", ""])
    places = {
        "policy": Html(_policy(script)),
        "title": tag("title", f"{title} · apeval report"),
        "style": Html(_template("report.css")),
        "heading": together([title]),
        "subtitle": together([_subtitle(runs)]),
        "contents": tag("ul", [tag("li", tag("a", t, href=f"#{key}")) for key, t in contents]),
        "body": together(body),
        "version": together([__version__]),
        "data": script_json(charts.specs),
        "script": Html(script),
    }
    # split before filling: a name that looks like a place must stay a name
    first, *rest = _template("report.html").split("{{")
    page = [first]
    for piece in rest:
        place, _, after = piece.partition("}}")
        page += [places[place.strip()], after]
    return "".join(page)


def _policy(script: str) -> str:
    """What the browser may do with the page: nothing but run this very script.

    Markup that got in through a name would not run even if escaping failed. Styles stay allowed,
    because the bars of the modes have their width in an attribute, and a style cannot run code.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _template(name: str) -> str:
    return (files("apeval.results.report") / "template" / name).read_text(encoding="utf-8")


def _section(key: str, title: str, parts: list[Any], level: int) -> Html:
    return tag("section", tag(f"h{level}", title), parts, id=key)


def _run(it: ReportData, charts: Charts) -> list[tuple[str, str, list[Any]]]:
    return [
        ("result", "Result", headline.headline(it)),
        ("evaluated", "What was evaluated", headline.evaluated(it)),
        ("modes", "How it fails", sections.modes(it, charts)),
        ("adversary", "Where nature pushes", sections.adversary(it, charts)),
        ("convergence", "Convergence", sections.convergence_of(it, charts)),
        ("weights", "Can the sample be trusted?", sections.weights(it, charts)),
        ("tail", "Near misses", sections.tail(it, charts)),
        ("kinds", "Kinds of failure", sections.kinds(it, charts)),
        ("value", "Where danger lies", sections.value(it, charts)),
        ("failures", "The failures", sections.failures(it)),
        ("again", "Reproducibility", reproducibility(it)),
    ]


def _subtitle(runs: list[ReportData]) -> str:
    if len(runs) > 1:
        return ", ".join(it.name for it in runs)
    r = runs[0].result
    return f"{r['method']}, seed {r['seed']}, {r['episodes']:,} simulated episodes"
