"""A specification's text, cut into tokens that know where they stand."""

from __future__ import annotations

import re
from typing import NamedTuple

from apeval.problem.specification.mistakes import SpecificationError, near

NUMBER, NAME, WORD, SIGN, END = "number", "name", "word", "sign", "end"
TEMPORAL = ("always", "eventually", "until")
FUNCTIONS = {"abs": 1, "sqrt": 1, "min": 2, "max": 2}
"""Functions of numbers, with how many arguments they take (min and max: at least)."""
WORDS = (*TEMPORAL, "and", "or", "not", "implies", "true", "false", "inf", *FUNCTIONS)
_SAME = {
    **{"&": "and", "&&": "and", "∧": "and", "|": "or", "||": "or", "∨": "or"},
    **{"!": "not", "¬": "not", "->": "implies", "→": "implies", "⇒": "implies"},
    **{"≤": "<=", "≥": ">=", "≠": "!=", "**": "^", "−": "-", "·": "*", "×": "*", "∞": "inf"},
}
_TOKEN = re.compile(
    r"(?P<space>\s+|\#[^\n]*)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign><=|>=|==|!=|->|&&|\|\||\*\*|[<>+\-*/^()\[\],:!&|¬∧∨→⇒≤≥≠−·×∞])"
)


class Token(NamedTuple):
    """A word, a number or a sign."""

    kind: str
    text: str
    """What it means: `and` for `&&`."""
    at: int
    width: int


def tokens(text: str) -> list[Token]:
    """All tokens of a text, without comments, and one for its end.

    >>> [token.text for token in tokens("gap > 2  # metres")]
    ['gap', '>', '2', '']
    """
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise SpecificationError(_strange(text[at:]), text, at)
        kind, said = str(match.lastgroup), match[0]
        if kind == "number" and (text[match.end() : match.end() + 1] or " ").isalpha():
            raise SpecificationError(
                "a number and a name stand together: numbers carry no units here. A bound counts "
                "steps, or seconds where dt= says how long a step takes; other units belong into a "
                "comment, # metres",
                text, at, len(said) + 1,
            )  # fmt: skip
        if kind != "space":
            meant = _SAME.get(said, said)
            kind = WORD if meant in WORDS else kind
            found.append(Token(kind, meant, at, len(said)))
        at = match.end()
    end = len(text.rstrip())
    return [*found, Token(END, "", end, 1)]


def _strange(rest: str) -> str:
    if rest[:2] in ("=>", "=<"):
        return f"'{rest[:2]}' is no sign here: write {rest[1]}= to compare, or implies"
    if rest[0] == "=":
        return "'=' alone compares nothing: write == for equal"
    if rest[0] in "\"'":
        return "a specification has no quoted texts: name a signal, and compare it with a number"
    if rest[0] in ";.":
        return f"'{rest[0]}' has no meaning here: join formulas with and, or; comments begin with #"
    return f"{rest[0]!r} is no part of the language"


def unknown_word(name: str, signals: tuple[str, ...]) -> str:
    """What to say of a name that is no signal."""
    other = {"G": "always", "F": "eventually", "U": "until", "globally": "always",
             "alw": "always", "ev": "eventually", "finally": "eventually"}  # fmt: skip
    meant = other.get(name) or (name.lower() if name.lower() in WORDS else None)
    hint = f"Did you mean '{meant}'?" if meant else near(name, signals, WORDS)
    return f"'{name}' is no signal. {hint}"


def comments_left_out(text: str) -> str:
    """A text in one line.

    >>> comments_left_out("gap > 2  # metres")
    'gap > 2'
    """
    return " ".join(re.sub(r"#[^\n]*", "", text).split())
