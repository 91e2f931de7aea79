"""Simulators that do not always come back."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import apeval


def problem(
    what: str = "raise", above: float = 2.0, sleep: float = 0.0, once: str = ""
) -> apeval.Problem:
    """A sum of four normals above 4. A step with a disturbance above `above` goes wrong; where
    `once` names a file, only as long as that file is not there."""

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        time.sleep(sleep)
        bad = a_E[:, 0] > above
        if bad.any() and (not once or is_first(once)):
            go_wrong(what)
            if what == "nan":
                return np.where(bad[:, None], np.nan, x + a_E)
        return x + a_E

    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=step,
        failed=lambda x: x[:, 0] > 4.0,
        judge_at_end=True,
        margin=lambda x: 4.0 - x[:, 0],
        horizon=4,
        chunk=8,
    )


def is_first(mark: str) -> bool:
    """Whether nobody left this mark before; of several workers at once, one is the first."""
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def go_wrong(what: str) -> None:
    if what == "raise":
        raise ValueError("no convergence")
    if what == "exit":
        sys.exit(3)
    if what == "hang":
        time.sleep(1_000)
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)


def in_reset(above: float = 1.5) -> apeval.Problem:
    """Faults before the first decision, by the initial disturbance."""

    def reset(draws: Any, a_0: Any) -> Any:
        if (a_0 > above).any():
            raise RuntimeError("no such start")
        return a_0.copy()

    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        initial=apeval.Normal(0.0, 1.0),
        reset=reset,
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=lambda x: x[:, 0] > 3.0,
        horizon=2,
        chunk=8,
    )
