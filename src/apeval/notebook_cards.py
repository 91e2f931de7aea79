"""Answers as a notebook shows them: a small table without script, style sheet or request."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_TITLE = "font-weight:600;margin:0 0 .3em"
_NAME = "text-align:left;vertical-align:top;padding:.1em 1em .1em 0;font-weight:400;opacity:.7"
_NAME += ";white-space:nowrap"
_TEXT = "text-align:left;vertical-align:top;padding:.1em 0"
_WARNING = "text-align:left;vertical-align:top;padding:.1em .5em;border-left:.25em solid #D55E00"
_INDENT = 23  # of the text of a line, in what `str` gives


def card(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """A title above named lines; those named "warning" or "BAD" stand out.

    >>> card("walk", [("interval", "1 < 2")]).count("1 &lt; 2")
    1
    """
    lines = []
    for name, text in rows:
        style = _WARNING if name in ("warning", "BAD") else _TEXT
        cells = f'<th style="{_NAME}">{escape(name)}</th><td style="{style}">{escape(text)}</td>'
        lines.append(f"<tr>{cells}</tr>")
    return (
        f'<div><p style="{_TITLE}">{escape(title)}</p><table style="border-collapse:collapse">'
        f"{''.join(lines)}</table></div>"
    )


def card_of_text(text: str) -> str:
    """What `str` gives of an answer, a title and named lines, as a card. A line that goes on is
    joined; the parts of a numbered list keep lines of their own.

    >>> "<td" in card_of_text("walk\\n  interval             1 … 2")
    True
    """
    title, *lines = text.split("\n")
    rows: list[tuple[str, str]] = []
    number = 0  # of the list's part before
    for line in lines:
        name, rest = line[:_INDENT].strip(), line[_INDENT:].strip()
        number = 0 if name else number
        if name or not rows or (number and rest.startswith(f"{number + 1}. ")):
            rows.append((name, rest))
            number = number + 1 if rest.startswith(f"{number + 1}. ") else 0
        else:
            rows[-1] = rows[-1][0], f"{rows[-1][1]} {rest}"
    return card(title, rows)
