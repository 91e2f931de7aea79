"""What a call leaves behind: files changed where nothing may change, programs started."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apeval.simulate.workers.process import PROGRAM as WORKER

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = ("os.mkdir", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.truncate")
_STARTS = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen")
_COMPILED = "__pycache__"  # Python and Numba keep compiled code there

Listing = dict[str, tuple[int, int, int]]


def listing(folder: Path) -> Listing:
    """Everything below a folder: mode, size and time of its last change."""
    found: Listing = {}
    for where, folders, files in os.walk(folder):
        for name in folders:
            it = os.lstat(os.path.join(where, name))
            found[os.path.join(where, name)] = (it.st_mode, 0, 0)
        for name in files:
            it = os.lstat(os.path.join(where, name))
            found[os.path.join(where, name)] = (it.st_mode, it.st_size, it.st_mtime_ns)
    return found


def changes(before: Listing, after: Listing, allowed: Sequence[Path]) -> list[str]:
    """What was made, changed or removed outside the allowed places."""
    free = tuple(str(path) for path in allowed)
    different = [p for p in {**before, **after} if before.get(p) != after.get(p)]
    return sorted(p for p in different if not _below(p, free))


def _below(path: str, folders: Sequence[str]) -> bool:
    return any(path == f or path.startswith(f.rstrip(os.sep) + os.sep) for f in folders)


class Auditor:
    """Hears of every file that Python opens for writing and of every program that it starts. A
    hook stays for the life of a process, so there is one auditor in it."""

    def __init__(self, caches: Path) -> None:
        """`caches`: where libraries may keep files of their own."""
        self.heard: list[str] = []
        self._caches = str(caches)
        self._free: tuple[str, ...] = ()
        sys.addaudithook(self._hear)

    @contextmanager
    def listening(self, home: Path, allowed: Sequence[Path]) -> Iterator[None]:
        """Listen. Files below `home` are not reported, for their listing tells, nor what is
        allowed."""
        self.heard.clear()
        self._free = (str(home), self._caches, os.devnull, *map(str, allowed))
        try:
            yield
        finally:
            self._free = ()

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._free:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITES:
                self._tell("wrote", path)
        elif event in _CHANGES:
            self._tell(event, arguments[0])
        elif event == "os.rename":
            self._tell(event, arguments[1])
        elif event in _STARTS and not _is_worker(arguments):
            self.heard.append(f"started a program: {arguments[:2]!r:.120}")

    def _tell(self, what: str, path: Any) -> None:
        if isinstance(path, int):  # a descriptor that was opened, and heard of, before
            return
        text = os.path.abspath(os.fsdecode(path))
        if not _below(text, self._free) and _COMPILED not in text:
            self.heard.append(f"{what} {text}")


def _is_worker(arguments: tuple[Any, ...]) -> bool:
    """apeval's own: a fault is replayed in a process that may die of it."""
    program, words = arguments[:2]
    own = isinstance(words, list) and len(words) > 2 and str(words[2]) == WORKER
    return bool(own and program == sys.executable)


def is_plain(path: Path) -> bool:
    """Whether a plain file is there, and no link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
