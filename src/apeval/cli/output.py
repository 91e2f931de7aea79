"""What commands print."""

from __future__ import annotations

import json
from typing import Any

import typer

from apeval.errors import harmless
from apeval.remedies import in_shell

_quiet = False


def hush(quiet: bool) -> None:
    """Print nothing but results and errors, or (False, at a command's start) all there is."""
    global _quiet
    _quiet = quiet


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return _quiet


def say(text: str) -> None:
    """A result, on stdout."""
    typer.echo(harmless(in_shell(text)))


def note(text: str) -> None:
    """Something that is no result, such as where a file was written."""
    if not _quiet:
        say(text)


def print_json(data: dict[str, Any]) -> None:
    """One object on stdout."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False)
    typer.echo(text.encode("utf-8", "replace").decode("utf-8"))  # half a character is no UTF-8
