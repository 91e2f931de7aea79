"""From a specification's text to its formula; a mistake is refused with its place.

From loose to tight: implies (to the right), or, and, until, then not, always and eventually, then
comparisons, then arithmetic. Parentheses group truths and numbers alike, so one rule reads both,
and what an operator joins is looked at when it is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from apeval.problem.specification.mistakes import SpecificationError
from apeval.problem.specification.syntax import (
    Always,
    Arithmetic,
    BooleanConstant,
    Eventually,
    Every,
    Formula,
    Not,
    Number,
    Predicate,
    Signal,
    Some,
    Term,
    Until,
)
from apeval.problem.specification.time_bounds import read_bounds
from apeval.problem.specification.token_cursor import TokenCursor
from apeval.problem.specification.tokens import (
    END,
    FUNCTIONS,
    NAME,
    NUMBER,
    WORDS,
    Token,
    tokens,
    unknown_word,
)

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_DEEPEST = 40  # nested formulas, well below Python's limit of recursion
_MOST_TERMS = 200  # of a sum or product, for the same reason


@dataclass(frozen=True)
class _Read:
    """A part of the text that was read: a truth or a number, and where it stands."""

    it: Formula | Term
    at: int
    end: int


def parse(text: str, signals: tuple[str, ...], dt: float | None = None) -> Formula:
    """The formula that a text says.

    Args:
        text: The specification.
        signals: The names that it may use.
        dt: Seconds from one moment to the next, where bounds are in seconds; None: in steps.

    Returns:
        The formula, its bounds in steps.

    Raises:
        SpecificationError: The text has a mistake; it says where.
    """
    return _Parser(text, signals, dt).whole()


class _Parser(TokenCursor):
    def __init__(self, text: str, signals: tuple[str, ...], dt: float | None) -> None:
        super().__init__(text)
        self.signals, self.dt, self.depth = signals, dt, 0

    def whole(self) -> Formula:
        if self.now.kind == END:
            raise self.mistake(
                "the specification is empty: write a formula, such as always gap > 2"
            )
        read = self.implication()
        if self.now.kind != END:
            raise self.mistake(self._after())
        return self.truth(read)

    def _after(self) -> str:
        token = self.now
        if token.text == ")":
            return "this parenthesis closes nothing: remove it, or open one before"
        if token.text == "until":
            return "two untils in a row are ambiguous: set parentheses around one of them"
        if token.text in COMPARISONS:
            return f"'{token.text}' compares numbers, but what stands before it is a truth"
        if token.text == "[":
            return "bounds belong to always, eventually and until, right after the word"
        if token.kind == NUMBER:
            return f"a comparison or an operator is missing before {token.text}"
        if token.kind == NAME and token.text not in self.signals:
            return f"{unknown_word(token.text, self.signals)} Here a word that joins is missing"
        return (
            f"'{token.text}' does not follow what stands before it: join it with and, or, implies"
        )

    def truth(self, read: _Read) -> Formula:
        """What was read as a truth: a signal alone is one that is true or false."""
        if isinstance(read.it, Signal):
            return Predicate(">", read.it, Number(0.5), read.it.name, switch=True)
        if isinstance(read.it, Number | Arithmetic):
            raise self.mistake(
                "this is a number, and a truth is wanted: compare it, such as … > 2",
                read.at, read.end - read.at,
            )  # fmt: skip
        return read.it

    def number(self, read: _Read, what: str) -> Term:
        if not isinstance(read.it, Number | Signal | Arithmetic):
            raise self.mistake(
                f"{what} needs a number, and this is a truth: compare before joining with and, or",
                read.at, read.end - read.at,
            )  # fmt: skip
        return read.it

    def read(self, it: Formula | Term, first: _Read, last: _Read | None = None) -> _Read:
        token = self.tokens[self.next - 1]
        return _Read(it, first.at, last.end if last else token.at + token.width)

    def implication(self) -> _Read:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.mistake(
                f"more than {_DEEPEST} formulas are nested here: split the specification"
            )
        left = self.either()
        if self.take("implies"):
            right = self.implication()
            left = self.read(Some((Not(self.truth(left)), self.truth(right))), left, right)
        self.depth -= 1
        return left

    def either(self) -> _Read:
        return self._joined(self.both, "or", Some)

    def both(self) -> _Read:
        return self._joined(self.until, "and", Every)

    def _joined(
        self, part: Callable[[], _Read], word: str, kind: type[Every] | type[Some]
    ) -> _Read:
        first = last = part()
        if self.now.text != word:
            return first
        parts = [self.truth(first)]
        while self.take(word):
            last = part()
            parts.append(self.truth(last))
        return self.read(kind(tuple(parts)), first, last)

    def until(self) -> _Read:
        left = self.unary()
        if self.take("until"):
            bounds = read_bounds(self, self.dt)
            right = self.unary()
            it = Until(*bounds, self.truth(left), self.truth(right))
            left = self.read(it, left, right)
        return left

    def unary(self) -> _Read:
        token = self.now
        word = self.take("not", "always", "eventually")
        if word is None:
            return self.comparison()
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.mistake(
                f"more than {_DEEPEST} formulas are nested here: split the specification"
            )
        first = _Read(BooleanConstant(True), token.at, token.at + token.width)
        if word.text == "not":
            part = self.unary()
            read = self.read(Not(self.truth(part)), first, part)
        else:
            bounds = read_bounds(self, self.dt)
            part = self.unary()
            kind = Always if word.text == "always" else Eventually
            read = self.read(kind(*bounds, self.truth(part)), first, part)
        self.depth -= 1
        return read

    def comparison(self) -> _Read:
        left = self.sum()
        found: list[Formula] = []
        first, last = left, left
        while sign := self.take(*COMPARISONS):
            left_term = self.number(last, f"'{sign.text}'")
            right = self.sum()
            right_term = self.number(right, f"'{sign.text}'")
            shown = " ".join(self.text[last.at : right.end].split())
            found.append(Predicate(sign.text, left_term, right_term, shown))
            last = right
        if not found:
            return left
        return self.read(found[0] if len(found) == 1 else Every(tuple(found)), first, last)

    def sum(self) -> _Read:
        return self._chain(self.product, "+", "-")

    def product(self) -> _Read:
        return self._chain(self.factor, "*", "/")

    def _chain(self, part: Callable[[], _Read], *signs: str) -> _Read:
        left, count = part(), 0
        while sign := self.take(*signs):
            what, count = f"'{sign.text}'", count + 1
            if count > _MOST_TERMS:
                raise self.mistake(f"more than {_MOST_TERMS} terms in a row: make them one signal")
            a = self.number(left, what)
            right = part()
            left = self.read(Arithmetic(sign.text, (a, self.number(right, what))), left, right)
        return left

    def factor(self) -> _Read:
        token = self.now
        if sign := self.take("-", "+"):
            self.depth += 1
            if self.depth > _DEEPEST:
                raise self.mistake("too many signs in a row")
            part = self.factor()
            self.depth -= 1
            term = self.number(part, f"'{sign.text}'")
            first = _Read(term, token.at, part.end)
            return first if sign.text == "+" else self.read(Arithmetic("-", (term,)), first, part)
        base = self.atom()
        if self.take("^"):
            power = self.factor()
            a, b = self.number(base, "'^'"), self.number(power, "'^'")
            return self.read(Arithmetic("^", (a, b)), base, power)
        return base

    def atom(self) -> _Read:
        token = self.now
        here = _Read(BooleanConstant(True), token.at, token.at + token.width)
        if token.kind == NUMBER:
            self.next += 1
            value = float(token.text)
            if not math.isfinite(value):
                raise self.mistake("this number is beyond all numbers", token.at, token.width)
            return self.read(Number(value), here)
        if token.kind == NAME:
            if token.text not in self.signals:
                raise self.mistake(unknown_word(token.text, self.signals))
            self.next += 1
            if self.now.text == "(":
                raise self.mistake(
                    f"'{token.text}' is a signal, no function: functions are {', '.join(FUNCTIONS)}"
                )
            return self.read(Signal(token.text), here)
        if word := self.take("true", "false"):
            return self.read(BooleanConstant(word.text == "true"), here)
        if word := self.take(*FUNCTIONS):
            return self.call(word, here)
        if self.take("("):
            return self.group(token)
        if token.text in ("always", "eventually", "not"):
            raise self.mistake(
                f"'{token.text}' makes a truth, and a number is wanted: set parentheses"
            )
        raise self.mistake(self._missing(token))

    def group(self, opened: Token) -> _Read:
        inner = self.implication()
        if not self.take(")"):
            if self.now.kind == END:
                raise self.mistake("this parenthesis is never closed: add )", opened.at, 1)
            raise self.mistake(self._after())
        return _Read(inner.it, opened.at, self.tokens[self.next - 1].at + 1)

    def call(self, word: Token, here: _Read) -> _Read:
        if not self.take("("):
            raise self.mistake(f"{word.text} is a function: write {word.text}(…)")
        arguments = [self.number(self.implication(), word.text)]
        while self.take(","):
            arguments.append(self.number(self.implication(), word.text))
        if not self.take(")"):
            if self.now.kind == END:
                raise self.mistake(
                    f"the parenthesis of {word.text} is never closed: add )", word.at
                )
            raise self.mistake(f"'{self.now.text}' does not belong here: , or ) is wanted")
        wanted = FUNCTIONS[word.text]
        if (len(arguments) != 1) if wanted == 1 else (len(arguments) < wanted):
            least = "at least " if wanted > 1 else ""
            count = f"{least}{wanted} number{'s'[: wanted != 1]}; here are {len(arguments)}"
            raise self.mistake(f"{word.text} takes {count}", word.at, word.width)
        return self.read(Arithmetic(word.text, tuple(arguments)), here)

    def _missing(self, token: Token) -> str:
        if token.kind == END:
            before = self.tokens[self.next - 1].text if self.next else ""
            return f"the specification ends after '{before}', where something is missing"
        if token.text == "]":
            return "this bracket closes nothing"
        if token.text == "[":
            return "bounds belong to always, eventually and until, right after the word"
        if token.text == "inf":
            return "inf is for bounds only, such as always[2, inf]"
        if token.text in COMPARISONS:
            return f"what is to be compared is missing before '{token.text}'"
        return f"a signal, a number or a formula is missing before '{token.text}'"


def is_name(name: str) -> bool:
    """Whether a signal can have this name.

    >>> is_name("gap"), is_name("always"), is_name("2nd")
    (True, False, False)
    """
    try:
        found = tokens(name)
    except SpecificationError:
        return False
    return len(found) == 2 and found[0].kind == NAME and found[0].text not in WORDS
