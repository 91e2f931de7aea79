"""What a user sees when something is wrong: one line, with the remedy in it."""

from __future__ import annotations

import difflib
import functools
import os
import re
import traceback
from collections.abc import Iterable
from pathlib import Path

from apeval.plugins import folders

_LONGEST = 1_500
# escapes, signs that turn the writing round, halves of characters; a new line is none of them
_OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    r"""A text that a terminal shows and does not obey: it may come from a file of someone else's.

    >>> harmless("\x1b[31mred")
    '\\x1b[31mred'
    """
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def number_of(n: int, what: str) -> str:
    """A count with its noun, in the plural where it is one.

    >>> number_of(1, "episode"), number_of(2_000, "episode")
    ('1 episode', '2,000 episodes')
    """
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def one_line(text: str) -> str:
    r"""A text as one line that can be read.

    >>> one_line("two\nlines")
    'two lines'
    """
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
    return harmless(" ".join(text.splitlines()))


class ApevalError(Exception):
    """A mistake at the door: bad input, an unusable file, an impossible request.

    All errors that apeval raises on purpose derive from it. Their text is one line with the remedy.
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class UnknownNameError(ApevalError):
    """A name that no registry knows."""


class ProblemError(ApevalError):
    """A problem whose parts contradict each other or the contract of `Problem`."""


class SimulationError(ApevalError):
    """A simulator that returned something no estimate can be built on."""


class StorageError(ApevalError):
    """A file that cannot be written: a full disk, a folder that went away."""


def unknown(kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """The error for an unknown name, with the nearest known one in it.

    >>> str(unknown("method", "ape-tabluar", ["ape-tabular", "mc"]))
    "unknown method 'ape-tabluar'. Did you mean 'ape-tabular'?"
    """
    known, name = sorted(str(it) for it in known), str(name)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(known)}."
    return UnknownNameError(f"unknown {kind} '{name}'. {hint}")


@functools.cache
def _ours() -> tuple[str, ...]:
    return tuple(f"{folder}{os.sep}" for folder in folders().values())


@functools.cache
def _others() -> tuple[str, ...]:
    import sysconfig  # an error can wait for its paths, the help of a command should not

    return tuple(sysconfig.get_paths()[k] for k in ("purelib", "platlib", "stdlib", "platstdlib"))


def user_frame(error: BaseException) -> traceback.FrameSummary | None:
    """The innermost line of the user's own code that an exception passed through, after it went
    through apeval; None where it never left apeval and installed libraries."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [k for k, frame in enumerate(frames) if frame.filename.startswith(_ours())]
    inner = frames[ours[0] :] if ours else frames
    users = [f for f in inner if not f.filename.startswith((*_ours(), *_others(), "<frozen"))]
    return users[-1] if users else None


@functools.cache
def _simulators() -> tuple[str, ...]:
    inside = (
        ("apeval", "adapt"),
        ("apeval", "environments"),
        ("apeval", "problem/gym.py"),
        ("apeval_paper", "environments"),
        ("apeval_public", ""),
    )
    return tuple(str(folders()[package] / it) for package, it in inside if package in folders())


@functools.cache
def _tools() -> tuple[str, ...]:
    return tuple(str(Path(path, it)) for path in _others()[:2] for it in ("numpy", "scipy"))


def within_apeval(error: BaseException) -> bool:
    """Whether an exception came about in apeval's own handling of episodes, or in the arithmetic
    that it asks for, and not in any simulator: its own mistake, or a wrong answer not refused."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return not any(
        file.startswith(_simulators()) or not file.startswith((*_ours(), *_tools(), "<frozen"))
        for file in files
    )


def _words(error: BaseException) -> str:
    try:
        return " ".join(str(error).split())
    except Exception:  # a user's class whose own words fail
        return ""


def blame(error: BaseException) -> str:
    """An exception in one line, with the place in the user's code, or in the library it called."""
    text = one_line(f"{type(error).__name__}: {_words(error)}").removesuffix(": ")
    frame = user_frame(error)
    if frame is None:
        frames = traceback.extract_tb(error.__traceback__)
        outside = [f for f in frames if not f.filename.startswith(_ours())]
        frame = outside[-1] if outside else None
    return text if frame is None else f"{text} ({Path(frame.filename).name}, line {frame.lineno})"
