"""HTML from plain values: whatever is not markup already is escaped."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

_VOID = {"br", "hr", "input", "meta"}
_IN_SCRIPT = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


class Html(str):
    """Markup; a plain `str` is text."""

    __slots__ = ()


def tag(name: str, *children: Any, cls: str = "", **attributes: Any) -> Html:
    """An element. Attributes that are None or False are left out, `data_x` becomes `data-x`.

    >>> tag("p", "a < b", tag("b", "c"), cls="note")
    '<p class="note">a &lt; b<b>c</b></p>'
    """
    given = {"class": cls or None, **attributes}
    words = [name]
    for key, value in given.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        words.append(key if value is True else f'{key}="{html.escape(str(value))}"')
    start = f"<{' '.join(words)}>"
    return Html(start if name in _VOID else f"{start}{together(children)}</{name}>")


def together(children: Iterable[Any]) -> Html:
    """Several children as one; None is nothing, a list is its members."""
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, list | tuple):
            parts.append(together(child))
        else:
            parts.append(child if isinstance(child, Html) else html.escape(str(child)))
    return Html("".join(parts))


def script_json(data: Any) -> Html:
    """JSON that cannot end the <script> element around it, whatever strings it holds.

    >>> script_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character, safe in _IN_SCRIPT.items():
        text = text.replace(character, safe)
    return Html(text)
