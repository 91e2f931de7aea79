"""What commands print: stdout has the results and nothing else."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import typer

from apeval.errors import StorageError, harmless
from apeval.remedies import in_shell

_quiet = False
_results: TextIO | None = None  # the stdout that a command began with, while it runs


def hush(quiet: bool) -> None:
    """Print nothing but results and errors, or (False, at a command's start) all there is."""
    global _quiet
    _quiet = quiet


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return _quiet


def say(text: str) -> None:
    """A result, on stdout."""
    _write(harmless(in_shell(text)))


def note(text: str) -> None:
    """Something that is no result, such as where a file was written."""
    if not _quiet:
        say(text)


def print_json(data: dict[str, Any]) -> None:
    """One object on stdout."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False)
    _write(text.encode("utf-8", "replace").decode("utf-8"))  # half a character is no UTF-8


def styled(text: str) -> None:
    """A result that `rich` has laid out for `results()`."""
    _write(text, nl=False)


def results() -> TextIO:
    """Where results go."""
    return sys.stdout if _results is None else _results


def _write(text: str, nl: bool = True) -> None:
    try:
        typer.echo(text, file=results(), nl=nl)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"cannot write the result: {error.strerror or error}") from None


@contextmanager
def stdout_for_results() -> Iterator[None]:
    """For a command: only `say`, `note` and `print_json` write to stdout. What a user's problem
    prints, in this process or in one that it starts, in Python or in C, goes to stderr."""
    global _results
    printed = sys.stdout
    _flush(printed)
    with _descriptor_kept() as kept:
        _results = mine = _opened(printed, kept)
        sys.stdout = sys.stderr
        try:
            yield
            mine.flush()
        finally:
            _flush(printed)  # what was printed through the old object, such as by a logger
            _flush(sys.stdout)
            sys.stdout, _results = printed, None
            if mine is not printed:
                with suppress(OSError):  # it was told when it was written
                    mine.close()


@contextmanager
def _descriptor_kept() -> Iterator[int | None]:
    """Descriptor 1 is stderr's; yields a copy of what it was, None where it was closed."""
    try:
        kept = os.dup(1)
    except OSError:
        kept = None
    _send_stdout_to_stderr()
    try:
        yield kept
    finally:
        if kept is None:
            os.close(1)
        else:
            os.dup2(kept, 1)
            os.close(kept)


def leave_stdout() -> None:
    """When the last result is printed: what a user's code prints at the very end, or a C library
    holds until then, goes to stderr as well."""
    _flush(sys.stdout)
    _send_stdout_to_stderr()
    sys.stdout = sys.stderr


def _send_stdout_to_stderr() -> None:
    """Descriptor 1 becomes another name of descriptor 2, or of nothing where that is closed."""
    try:
        os.dup2(2, 1)
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        if nothing != 1:
            os.dup2(nothing, 1)
            os.close(nothing)


def _opened(printed: TextIO | None, kept: int | None) -> TextIO:
    """What writes to where `printed` wrote before descriptor 1 was sent elsewhere."""
    if printed is None or kept is None:
        return printed or open(os.devnull, "w", encoding="utf-8")
    try:
        own = printed.fileno() != 1
    except (OSError, ValueError):  # it writes to memory
        own = True
    if own:
        return printed
    # a terminal that lacks a character shows another in its place
    return open(kept, "w", encoding=printed.encoding, errors="replace", closefd=False)


def _flush(stream: TextIO | None) -> None:
    """Write what is held, where anybody still reads it."""
    with suppress(OSError, ValueError):
        if stream is not None:
            stream.flush()
