"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from apeval.errors import StorageError


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file beside `path` to write to, which takes its place at the end. Where anything goes
    wrong, or somebody stops the program, what was at `path` stays and nothing is left beside it.

    Args:
        path: Where the file goes; its folder must be there.

    Yields:
        The open file.

    Raises:
        StorageError: The file cannot be written.
    """
    draft = path.with_name(path.name + ".part")
    try:
        draft.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(draft, flags, 0o644), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from None


def write_bytes(path: Path, data: bytes) -> Path:
    """Write a file whole or not at all: beside it first, then renamed into place."""
    with written_whole(path) as file:
        file.write(data)
    return path
