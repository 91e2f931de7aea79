# ruff: noqa: NPY002, T201
"""Functions that ask the world outside: clocks, global random numbers, processes, files; that
print, raise, end Python, change global settings, or answer otherwise after a while."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import walk as w
from .walk import Late, Way, instead

ONLY_BETWEEN_PROCESSES = ("the process's number", "the hash of a text", "a worker ends late")
"""Ways that are the same wherever one process looks."""
SOON, LATER = 500, 5_000


def _pushed(push: Callable[[Any], Any]) -> Way:
    """A simulator with something added to the disturbance."""
    return instead({"step": lambda x, a_A, a_E, draws: w.step(x, a_A, a_E + push(x), draws)})


def _beside(act: Callable[[], Any]) -> Way:
    """A simulator that does something beside its work, which it does well."""

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        act()
        return w.step(x, a_A, a_E, draws)

    return instead({"step": step})


def _acting(act: Callable[[], Any]) -> Way:
    """A policy that does something beside its work."""

    def agent(x: Any) -> Any:
        act()
        return w.agent(x)

    return instead({"agent": agent})


def _late(part: str, after: int, change: Callable[[Any], Any]) -> Way:
    """A part whose answer changes its form, or does not come, after so many rows."""

    def make() -> dict[str, Any]:
        begun, inner = Late(after), getattr(w, part)

        def function(x: Any, *more: Any) -> Any:
            answer = inner(x, *more)
            return change(answer) if begun(x) else answer

        return {part: function}

    return Way(make)


def _clock(x: Any) -> Any:
    return 0.3 * np.sin(1e3 * time.time())


def _counter(x: Any) -> Any:
    return 0.3 * np.sin(1e5 * time.perf_counter())


def _process(x: Any) -> Any:
    return 0.1 * (os.getpid() % 7)


def _hashed(x: Any) -> Any:
    return 0.001 * (hash("apeval") % 500)


def _address(x: Any) -> Any:
    return 0.1 * (id(x) // 64 % 7)


def _variable(x: Any) -> Any:
    count = int(os.environ.get("WAYS_COUNT", "0")) + 1
    os.environ["WAYS_COUNT"] = str(count)
    return 0.05 * (count % 5)


def _file(x: Any) -> Any:
    path = Path("ways_state.txt")
    count = int(path.read_text()) + 1 if path.exists() else 0
    path.write_text(str(count))
    return 0.05 * (count % 5)


def _threaded() -> dict[str, Any]:
    state = [0.0]

    def work() -> None:
        for k in range(10_000):
            state[0] = 0.3 * (k % 2)
            time.sleep(0.0005)

    threading.Thread(target=work, daemon=True).start()

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        return w.step(x, a_A, a_E + state[0], draws)

    return {"step": step}


def _no_seed() -> None:
    np.random.seed = lambda *_: None


def _raise(error: BaseException) -> Callable[[Any], Any]:
    def change(answer: Any) -> Any:
        raise error

    return change


def _nan(answer: Any) -> Any:
    return answer * np.nan


def _one_nan(answer: Any) -> Any:
    answer = np.array(answer, float)
    answer[0] = np.nan
    return answer


def _worker_ends(answer: Any) -> Any:
    if os.environ.get("WAYS_PARENT", str(os.getpid())) != str(os.getpid()):
        os._exit(3)
    return answer


def _errors() -> None:
    warnings.simplefilter("error")


def _deaf() -> None:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115


WAYS: dict[str, Way] = {
    "np.random in the simulator": _pushed(lambda x: 0.3 * np.random.normal(size=x.shape)),
    "random in the simulator": _pushed(lambda x: 0.3 * random.gauss(0.0, 1.0)),
    "a fresh generator in the simulator": _pushed(
        lambda x: 0.3 * np.random.default_rng().normal(size=x.shape)
    ),
    "np.random in the policy": instead(
        {"agent": lambda x: -0.2 * x + 0.2 * np.random.normal(size=x.shape)}
    ),
    "np.random.seed in the simulator": _beside(lambda: np.random.seed(1)),
    "random.seed in the policy": _acting(lambda: random.seed(1)),
    "seeded by a global seed": _pushed(
        lambda x: (np.random.seed(1), 0.3 * np.random.normal(size=x.shape))[1]
    ),
    "np.random.seed is replaced": _beside(_no_seed),
    "the clock": _pushed(_clock),
    "the performance counter": _pushed(_counter),
    "the process's number": _pushed(_process),
    "the hash of a text": _pushed(_hashed),
    "the address of an array": _pushed(_address),
    "an environment variable that counts": _pushed(_variable),
    "a file that changes": _pushed(_file),
    "a thread that changes state": Way(_threaded),
    "prints in the simulator": _beside(lambda: print("step")),
    "prints in the policy": _acting(lambda: print("agent", flush=True)),
    "writes to descriptor 1": _beside(lambda: os.write(1, b"step\n")),
    "writes to sys.__stdout__": _beside(lambda: print("step", file=sys.__stdout__)),
    "prints to stderr": _beside(lambda: print("step", file=sys.stderr)),
    "warns": _beside(lambda: warnings.warn("odd", stacklevel=2)),
    "makes warnings errors": _beside(_errors),
    "closes stdout": _beside(_deaf),
    "np.seterr": _beside(lambda: np.seterr(all="raise")),
    "np.set_printoptions": _beside(lambda: np.set_printoptions(precision=1, threshold=2)),
    "sys.setrecursionlimit": _beside(lambda: sys.setrecursionlimit(150)),
    "changes the current folder": _beside(lambda: os.chdir("/")),
    "raises late": _late("step", LATER, _raise(ValueError("odd"))),
    "policy raises late": _late("agent", SOON, _raise(KeyError("odd"))),
    "raises StopIteration late": _late("step", SOON, _raise(StopIteration())),
    "ends Python late": _late("step", SOON, _raise(SystemExit(0))),
    "policy ends Python at once": _late("agent", 0, _raise(SystemExit(3))),
    "raises KeyboardInterrupt late": _late("step", SOON, _raise(KeyboardInterrupt())),
    "a worker ends late": _late("step", SOON, _worker_ends),
    "NaN late": _late("step", LATER, _nan),
    "one NaN late": _late("step", LATER, _one_nan),
    "policy's NaN late": _late("agent", LATER, _one_nan),
    "margin's NaN late": _late("margin", LATER, _one_nan),
    "another shape late": _late("step", LATER, lambda x: np.hstack([x, x])),
    "a row less late": _late("step", LATER, lambda x: x[1:]),
    "a row more late": _late("step", LATER, lambda x: np.vstack([x, x[:1]])),
    "one number late": _late("agent", LATER, lambda a: float(a[0, 0])),
    "one row late": _late("agent", LATER, lambda a: a[:1]),
    "single precision late": _late("step", LATER, lambda x: x.astype(np.float32)),
    "half precision late": _late("step", LATER, lambda x: x.astype(np.float16)),
    "whole numbers late": _late("step", LATER, lambda x: x.astype(int)),
    "objects late": _late("step", LATER, lambda x: x.astype(object)),
    "lists late": _late("step", LATER, lambda x: x.tolist()),
    "None late": _late("step", LATER, lambda x: None),
    "failed as numbers late": _late("failed", LATER, lambda f: 0.6 * f),
    "failed as a kind that there is not": _late("failed", LATER, lambda f: 5 * f.astype(int)),
    "failed as text late": _late("failed", LATER, lambda f: f.astype(str)),
    "margin as columns late": _late("margin", LATER, lambda m: m[:, None]),
    "view's width changes late": _late("view", LATER, lambda s: np.hstack([s, s])),
    "mean's shape changes late": _late("mean", LATER, lambda m: m[:, 0]),
    "mean as one number late": _late("mean", LATER, lambda m: float(m[0, 0])),
}
