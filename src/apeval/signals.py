"""Ctrl-C and SIGTERM, from a program's first line to its last: one line and exit code 130.

Imports as little as it can, so that it is ready before anything else is.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any

STOPPED = 130
"""The exit code."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def handlers() -> dict[int, Any]:
    """What each signal does now; what was not set from Python counts as the default."""
    found = {number: signal.getsignal(number) for number in SIGNALS}
    return {k: signal.SIG_DFL if v is None else v for k, v in found.items()}


def leave(number: int = 0, frame: FrameType | None = None) -> None:
    """End the program here and now; a handler of signals."""
    shown = b"\x1b[?25h" if os.isatty(2) else b""  # a live view hides the cursor
    try:
        os.write(2, shown + b"apeval: stopped\n")
    finally:
        os._exit(STOPPED)


def _forked() -> None:
    """A process that a problem forks, as asynchronous vector environments do, is not the program:
    a signal ends it as it would any other."""
    usual: dict[int, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    for number, handler in usual.items():
        mine = str(getattr(signal.getsignal(number), "__module__", "")).startswith("apeval.")
        if mine:
            signal.signal(number, handler)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class ProgramStoppedError(BaseException):
    """Somebody asked the program to stop. No KeyboardInterrupt: libraries answer that in ways of
    their own, and Python ends with another exit code where one came at the wrong moment."""


class Stoppable:
    """While this context lasts, a first signal raises `ProgramStoppedError`, so that files and
    workers are put away; a second one ends the program. The exception may come from the context's
    own first and last lines as well: whoever catches it stands around the context.

    In any thread but the main one, which alone hears signals, nothing is changed.
    """

    def __init__(self) -> None:
        self.asked = False
        """Whether a signal has come, whatever became of the exception."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stoppable:
        import threading

        if threading.current_thread() is threading.main_thread():
            self._before = handlers()
            for number in SIGNALS:
                signal.signal(number, self._stop)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.restore()

    def restore(self) -> None:
        """What signals did before; once more where one came just then."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            leave()
        self.asked = True
        raise ProgramStoppedError
