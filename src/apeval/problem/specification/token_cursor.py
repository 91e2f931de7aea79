"""A specification's tokens, read one after the other; a mistake knows its place."""

from __future__ import annotations

from apeval.problem.specification.mistakes import SpecificationError
from apeval.problem.specification.tokens import SIGN, WORD, Token, tokens


class TokenCursor:
    """The tokens of a text, and which comes next."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.next = text, tokens(text), 0

    @property
    def now(self) -> Token:
        return self.tokens[self.next]

    def mistake(
        self, message: str, at: int | None = None, width: int | None = None
    ) -> SpecificationError:
        """An error at the next token, or at the place given."""
        at = self.now.at if at is None else at
        return SpecificationError(message, self.text, at, width or self.now.width)

    def take(self, *texts: str) -> Token | None:
        """The next token, where it is one of these words or signs."""
        token = self.now
        if token.kind in (WORD, SIGN) and token.text in texts:
            self.next += 1
            return token
        return None
