"""A family of inputs for the fuzzer that hangs once and crashes once: `bench/test_fuzz.py`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

from apeval_bench.fuzz.calls import Calls

LIBRARIES = ()


def prepare(folder: Path) -> None:
    (folder / "count").write_text("0")


def fuzz(calls: Calls, rng: Random, prepared: Path) -> None:
    number = int((prepared / "count").read_text())
    (prepared / "count").write_text(str(number + 1))
    if number == 1:
        calls.python("hang", lambda: time.sleep(600))
    if number == 2:
        calls.python("crash", lambda: os._exit(3))
