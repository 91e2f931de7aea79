"""One run at a time in a folder: a lock that its holder's end releases, however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError, StorageError
from apeval.results.provenance import now

LOCK = "lock"


def holder(folder: Path) -> str | None:
    """Who writes to a folder now, in words; None where nobody does."""
    try:
        file = os.open(folder / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    try:
        return None if _try_to_lock(file) else _holder(file)
    finally:
        os.close(file)


class Lock:
    """Held from `acquire` to `release`, or to the end of the process.

    The operating system keeps the lock and drops it when its holder ends, so that one left behind
    by a killed run does not hold. The file says who holds it, and since when.

    Args:
        folder: The run folder, which exists.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / LOCK
        self._file: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            ApevalError: Somebody holds it; with who, and since when.
        """
        if self._file is not None:
            return
        while True:
            file = self._open()
            if not _try_to_lock(file):
                held = _holder(file)
                os.close(file)
                raise ApevalError(
                    f"{self.folder} is in use by another run ({held}): wait for it to end, stop "
                    "it, or choose another folder"
                )
            if self._is(file):
                break
            os.close(file)  # its last holder removed it meanwhile
        self._file = file
        self._sign(file)

    def release(self) -> None:
        """Give it back."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):  # the folder may be gone
            self.path.unlink(missing_ok=True)
        os.close(self._file)
        self._file = None

    def __del__(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            return os.open(self.path, flags, 0o644)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror or error}") from None

    def _is(self, file: int) -> bool:
        """Whether the open file is the one that stands there."""
        try:
            there, here = os.stat(self.path), os.fstat(file)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def _sign(self, file: int) -> None:
        said = {"pid": os.getpid(), "host": socket.gethostname(), "since": now()}
        try:
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps(said).encode(), 0)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror or error}") from None


def _try_to_lock(file: int) -> bool:
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: whoever signed the file holds it while he lives
        return not _alive(_signed(file))
    return True


def _signed(file: int) -> dict[str, Any]:
    try:
        said = json.loads(os.pread(file, 1_000, 0))
    except (OSError, ValueError):
        said = None
    return said if isinstance(said, dict) else {}


def _alive(said: dict[str, Any]) -> bool:
    pid = said.get("pid")
    if not isinstance(pid, int) or said.get("host") != socket.gethostname():
        return bool(said)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _holder(file: int) -> str:
    said = _signed(file)
    if not said:
        return "which has not said who it is"
    pid, host, since = (str(said.get(name))[:80] for name in ("pid", "host", "since"))
    return f"process {pid} on {host} since {since}"
