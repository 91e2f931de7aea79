"""The bounds of always, eventually and until: ``[low, high]``, in steps or in seconds."""

from __future__ import annotations

import math
from typing import TypeAlias

from apeval.problem.specification.token_cursor import TokenCursor
from apeval.problem.specification.tokens import NUMBER, Token

_NEARLY = 1e-9  # a bound in seconds, in steps, may differ from a whole number by rounding

Bounds: TypeAlias = tuple[int, int | None]


def read_bounds(cursor: TokenCursor, dt: float | None) -> Bounds:
    """What the next tokens say, in steps; where they say nothing, from now on."""
    opened = cursor.now
    if not cursor.take("["):
        return 0, None
    low, low_at = _bound(cursor)
    if low is None:
        raise cursor.mistake("the first bound must be a number", low_at.at, low_at.width)
    if not cursor.take(",", ":"):
        raise cursor.mistake("a comma and the second bound are missing: write [0, 5] or [2, inf]")
    high, high_at = _bound(cursor)
    if not cursor.take("]"):
        raise cursor.mistake("the bracket of the bounds is not closed: add ]")
    if high is not None and high < low:
        raise cursor.mistake(
            f"the window ends before it begins: [{low:g}, {high:g}]",
            opened.at, high_at.at + high_at.width - opened.at,
        )  # fmt: skip
    first, last = _in_steps(cursor, dt, low, low_at, up=True), None
    if high is not None:
        last = _in_steps(cursor, dt, high, high_at, up=False)
        if last < first:
            raise cursor.mistake(
                f"no moment lies in [{low:g}, {high:g}] s: there is one every {dt:g} s",
                opened.at, high_at.at + high_at.width - opened.at,
            )  # fmt: skip
    return first, last


def _bound(cursor: TokenCursor) -> tuple[float | None, Token]:
    token = cursor.now
    if cursor.take("inf"):
        return None, token
    if token.text == "-":
        raise cursor.mistake("a bound must not be negative: time only goes on")
    if token.kind != NUMBER:
        raise cursor.mistake("a bound is a number, or inf for no end: write [0, 5] or [2, inf]")
    cursor.next += 1
    return float(token.text), token


def _in_steps(cursor: TokenCursor, dt: float | None, bound: float, token: Token, up: bool) -> int:
    if dt is None:
        if bound != round(bound) or bound > 1e9:
            raise cursor.mistake(
                f"a bound counts steps, and {token.text} is no whole number of them: give dt=, "
                "the seconds from step to step, to write bounds in seconds",
                token.at, token.width,
            )  # fmt: skip
        return int(bound)
    steps = bound / dt
    if steps > 1e9:
        raise cursor.mistake("this bound is beyond any episode: write inf", token.at, token.width)
    spare = _NEARLY * max(1.0, steps)
    return math.ceil(steps - spare) if up else math.floor(steps + spare)
