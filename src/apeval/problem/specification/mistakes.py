"""A mistake in a specification's text: what, where, and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from apeval.errors import ProblemError, harmless


class SpecificationError(ProblemError):
    """A text that is no specification. Its message shows the line with a caret under the mistake.

    Args:
        message: What is wrong, and what to do.
        text: The whole specification.
        at: Where the mistake begins, counted from 0.
        width: How many characters it has.
    """

    def __init__(self, message: str, text: str, at: int, width: int = 1) -> None:
        before = text[:at]
        self.line = before.count("\n") + 1
        """The mistake's line, from 1."""
        self.column = at - (before.rfind("\n") + 1) + 1
        """The mistake's column, from 1."""
        shown = (text.splitlines() or [""])[self.line - 1] if self.line <= _lines(text) else ""
        shown = shown.replace("\t", " ")
        width = max(1, min(width, len(shown) - self.column + 1))
        caret = " " * (self.column - 1) + "^" * width
        self.what = message
        """What is wrong, without the place."""
        super().__init__(
            f"line {self.line}, column {self.column}: {message}\n    {shown}\n    {caret}"
        )

    def __str__(self) -> str:
        return harmless(str(self.args[0]))


def _lines(text: str) -> int:
    return len(text.splitlines() or [""])


def near(name: str, signals: Iterable[str], words: Iterable[str]) -> str:
    """Which signal or word may be meant, as a sentence; else which signals there are.

    >>> near("speeed", ["speed", "gap"], ["always"])
    "Did you mean 'speed'?"
    """
    signals = sorted(signals)
    found = difflib.get_close_matches(name, [*signals, *words], n=1, cutoff=0.6)
    if found:
        return f"Did you mean '{found[0]}'?"
    return f"Signals: {', '.join(signals)}." if signals else "No signal was given."
