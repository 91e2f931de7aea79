"""Pieces that several sections are made of."""

from __future__ import annotations

from typing import Any

from apeval.results.report.charts import Chart, axis
from apeval.results.report.markup import Html, tag


def absent(text: str) -> Html:
    """What a reader gets in place of an empty picture."""
    return tag("p", text, cls="absent")


def forest(alt: str, entries: list[dict[str, Any]]) -> Chart:
    """Estimates with intervals, one below the other."""
    return {
        "kind": "forest",
        "alt": alt,
        "x": axis("failure probability per episode", log=True),
        "rows": entries,
    }


def plain_table(head: tuple[str, ...], rows: Any, *, wrap: bool = True) -> Html:
    """A table that scrolls sideways where it must; without `wrap` each cell is one line."""
    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", [tag("th", h, scope="col") for h in head])),
            tag(
                "tbody",
                [
                    tag(
                        "tr",
                        tag("th", row[0], scope="row"),
                        [tag("td", c.replace(" %", "\u00a0%")) for c in row[1:]],
                    )
                    for row in rows
                ],
            ),
        ),
        cls="wide" if wrap else "wide lines",
        tabindex="0",
        role="region",
        aria_label=f"Table: {', '.join(h for h in head if h)}",
    )
