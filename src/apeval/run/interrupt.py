"""Ctrl-C and SIGTERM: the first asks a run to come to an end, the second ends it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from apeval.run.run_options import RAISE
from apeval.signals import SIGNALS, handlers
from apeval.simulate.episode_source import StopRequest


@contextmanager
def interrupts(mode: str) -> Iterator[StopRequest]:
    """With "finish" a first signal is only noted. With "raise", and in any thread but the main
    one, nothing is changed: Ctrl-C is Python's KeyboardInterrupt."""
    stop = StopRequest()
    if mode == RAISE or threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            _say("stopped")
            earlier = before[number]
            if callable(earlier):
                earlier(number, frame)
            raise KeyboardInterrupt
        stop.asked = True
        _say("stopping after what is under way; Ctrl-C again stops at once")

    before = handlers()
    try:
        for each in SIGNALS:
            signal.signal(each, ask)
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(text: str) -> None:
    # the signal may have come in the middle of another line, which Python does not take up again
    with suppress(RuntimeError, OSError, ValueError):
        sys.stderr.write(f"\n{text}\n")
        sys.stderr.flush()
