"""One call of apeval, from the command line or from Python, and whether it ended as it may.

It may succeed, or refuse in one line. A traceback, a second line, an answer that is no JSON where
JSON was asked for, a changed file outside its output, or a warning that points into apeval's own
code is a finding.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unicodedata import bidirectional, category

from apeval.errors import ApevalError, user_frame
from apeval_bench.fuzz.watch import Auditor, changes, listing

_PROGRAM = "apeval.cli.main"
"""The program under test stands above this folder, and is addressed by its name as users do."""
_ANSWERS = (0, 1)
_REFUSED = 2
_STOPPED = 130
_AGAIN = 5.0  # seconds between two Ctrl-C: the third ends the process, and the fuzzer with it
_HERE = str(Path(__file__).parent)
_PACKAGE = str(Path(importlib.import_module("apeval").__file__ or "").parent)


class Said(NamedTuple):
    """What a command said."""

    code: int
    out: str
    err: str


@dataclass
class Calls:
    """Calls in one sandbox, and what was found in them."""

    sandbox: Path
    auditor: Auditor
    beat: Callable[[str], None] = lambda what: None
    """Told of each call before it begins."""
    case: int | str = 0
    """The seed or the name of the input."""
    findings: list[dict[str, str]] = field(default_factory=list)
    refused: int = 0
    answered: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    """Further counts of a family's own."""

    def command(
        self, *arguments: str, writes: Sequence[Path] = (), stop: float | None = None
    ) -> Said | None:
        """The command line, in this process: what it said, or None where it ended in a traceback.
        With `stop`, Ctrl-C is pressed after so many seconds, and again every few seconds."""
        what = "apeval " + " ".join(arguments)
        out, err = _stream("strict"), _stream("backslashreplace")
        code: Any = None

        def run() -> None:
            nonlocal code
            main = importlib.import_module(_PROGRAM).main
            sys.argv = ["apeval", *arguments]
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                _stopped_after(stop),
            ):
                try:
                    main()
                except SystemExit as ended:
                    code = ended.code

        if not self._watched(what, run, writes):
            return None
        said, complained = _text(out), _text(err)
        if stop is not None and code == _STOPPED:
            self.answered += 1
        elif code in _ANSWERS:
            self.answered += 1
            if "--json" in arguments and not is_json(said):
                self.find(what, "no JSON", said[:200])
            if "--json" not in arguments and _is_obeyed(said):
                self.find(what, "characters that a terminal obeys", repr(said)[:200])
        elif code == _REFUSED:
            self.refused += 1
            helped = not complained and "Usage:" in said
            why = None if helped else _not_one_line(complained)
            if why is not None:
                self.find(what, "no clear line", f"{why}: {complained[:300]!r}")
        else:
            self.find(what, "exit code", f"{code}: {complained[:300]!r}")
        return Said(code if isinstance(code, int) else 0, said, complained)

    def python(
        self,
        what: str,
        call: Callable[[], Any],
        writes: Sequence[Path] = (),
        users_code: bool = False,
    ) -> Any:
        """A call of the library: its answer, or None where it refused. With `users_code`, what
        the code of the user's problem raises may come through."""
        answer: Any = None

        def run() -> None:
            nonlocal answer
            try:
                answer = call()
                self.answered += 1
            except ApevalError as error:
                self.refused += 1
                if why := _not_one_line(f"apeval: {error}\n"):
                    self.find(what, "no clear line", f"{why}: {str(error)[:300]!r}")
            except (Exception, SystemExit) as error:
                if not users_code or user_frame(error) is None:
                    raise
                self.refused += 1

        self._watched(what, run, writes)
        return answer

    def _watched(self, what: str, run: Callable[[], None], writes: Sequence[Path]) -> bool:
        """Run it; False where it ended in a traceback."""
        self.beat(self._said(what)[:300])
        before = listing(self.sandbox)
        ended = True
        with self._warned(what), self.auditor.listening(self.sandbox, writes):
            try:
                run()
            except (Exception, SystemExit) as error:
                ended = False
                self.find(what, "traceback", _place(error))
        for path in changes(before, listing(self.sandbox), writes):
            self.find(what, "changed a file", path)
        for event in self.auditor.heard:
            self.find(what, "outside the sandbox", event)
        return ended

    @contextlib.contextmanager
    def _warned(self, what: str) -> Iterator[None]:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            yield
        for warning in told:
            if warning.filename.startswith(_PACKAGE) and not warning.filename.startswith(_HERE):
                where = f"{Path(warning.filename).relative_to(_PACKAGE)}:{warning.lineno}"
                self.find(what, "warning", f"{warning.message} ({where})")

    def find(self, what: str, kind: str, detail: str) -> None:
        """Note a finding."""
        self.findings.append(
            {"call": self._said(what)[:300], "kind": kind, "detail": self._said(detail)[:400]}
        )

    def _said(self, text: str) -> str:
        """Without where the sandbox is, which is nobody's business and never the same."""
        text = text.replace(str(self.sandbox), "SANDBOX")
        return text.replace(str(self.sandbox.parent), "FOLDER")


@contextlib.contextmanager
def _stopped_after(seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return

    def press(number: int, frame: FrameType | None) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGALRM, press)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _stream(errors: str) -> io.TextIOWrapper:
    """As Python opens a terminal's."""
    return io.TextIOWrapper(io.BytesIO(), "utf-8", errors, write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def is_json(text: str) -> bool:
    """Whether a text is one JSON value, by the standard."""

    def refuse(constant: str) -> float:
        raise ValueError(constant)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


def _is_obeyed(text: str) -> bool:
    """Whether a terminal would take a part of it as an order: control characters, characters that
    turn the writing round, halves of characters."""
    odd = [c for c in set(text) if not c.isprintable() and c != "\n"]
    return any(category(c) in ("Cc", "Cs", "Zl", "Zp") or len(bidirectional(c)) == 3 for c in odd)


def _not_one_line(text: str) -> str | None:
    """Why an error is not one line that a terminal can show, or None."""
    if not text.startswith("apeval: ") or len(text) < len("apeval: x\n"):
        return "it does not say who speaks"
    line = text.removesuffix("\n")
    if len(line.splitlines()) != 1:
        return "it is more than one line"
    if _is_obeyed(line):
        return "it holds characters that a terminal obeys"
    return "it is too long to read" if len(line) > 2_000 else None


def _place(error: BaseException) -> str:
    """The exception, and the innermost line of apeval that it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [
        f for f in frames if f.filename.startswith(_PACKAGE) and not f.filename.startswith(_HERE)
    ]
    text = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    if not ours:
        return text
    last = ours[-1]
    return f"{text} ({Path(last.filename).relative_to(_PACKAGE)}:{last.lineno}, {last.name})"
