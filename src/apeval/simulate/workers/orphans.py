"""A process that ends when the one that started it is gone, whatever it is doing."""

from __future__ import annotations

import os
import signal
import threading
import time

_WATCH = 1.0  # seconds between looks


def leave_with_parent() -> None:
    """From now on: a parent that was killed can tell nobody."""
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH)
    if os.getpgrp() == os.getpid():  # what was started from here goes as well
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
