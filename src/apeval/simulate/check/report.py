"""What a check found, in words."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.errors import ProblemError, number_of
from apeval.notebook_cards import card

_SHOWN = 3  # findings that an error quotes


@dataclass(frozen=True)
class Finding:
    """One check's outcome."""

    name: str
    """Which check it was."""
    ok: bool
    """Whether it passed."""
    message: str
    """What was found; where it is bad, the cause and the remedy."""
    remark: bool = False
    """Nothing to mend, but worth knowing before a run."""

    @property
    def word(self) -> str:
        """ok, BAD or note."""
        return "BAD" if not self.ok else "note" if self.remark else "ok"

    def __str__(self) -> str:
        return f"{self.word:<4} {self.name}: {self.message}"


@dataclass(frozen=True)
class CheckReport:
    """Everything that was checked of a problem."""

    problem: str
    """The problem's name."""
    findings: tuple[Finding, ...]
    """One entry per check, in the order in which they ran."""
    complete: bool = True
    """Whether every check ran; a broken part keeps the later ones from running."""

    @property
    def bad(self) -> tuple[Finding, ...]:
        """What must be mended."""
        return tuple(f for f in self.findings if not f.ok)

    @property
    def remarks(self) -> tuple[Finding, ...]:
        """What is worth knowing before a run."""
        return tuple(f for f in self.findings if f.ok and f.remark)

    @property
    def ok(self) -> bool:
        """Whether nothing must be mended."""
        return not self.bad

    def __str__(self) -> str:
        name = f"problem '{self.problem}'" if self.problem else "the problem"
        verdict = "passed" if self.ok else f"{len(self.bad)} to mend"
        lines = [f"{name}: {number_of(len(self.findings), 'check')}, {verdict}"]
        lines += [f"  {finding}" for finding in self.findings]
        if not self.complete:
            lines.append("  the other checks can run once this is mended")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        rows = [(it.word, f"{it.name}: {it.message}") for it in self.findings]
        return card(str(self).partition("\n")[0], rows)

    def raise_if_bad(self) -> None:
        """Go on only with a problem that passed.

        Raises:
            ProblemError: Something must be mended; the first findings are in its text.
        """
        if self.ok:
            return
        text = "; ".join(f"{f.name}: {f.message}" for f in self.bad[:_SHOWN])
        raise ProblemError(text)


class BrokenError(Exception):
    """A part of the problem on which no further check can rest."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.finding = Finding(name, False, message)
