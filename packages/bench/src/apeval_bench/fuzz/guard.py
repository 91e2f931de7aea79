"""Inputs run in a process of their own, so that a hang or a crash is a finding and no end."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import random
import shutil
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import Any

from apeval_bench.fuzz.calls import Calls
from apeval_bench.fuzz.watch import Auditor

SECONDS = 10.0
"""That one call may take."""
_STARTING = 600.0  # imports, compiling, and the small runs that are damaged later
_MEMORY = 6 * 2**30
FAMILIES = {
    "folders": "apeval_bench.fuzz.folders",
    "configurations": "apeval_bench.fuzz.configurations",
    "problems": "apeval_bench.fuzz.problems",
    "attacked folders": "apeval_bench.attack.folders",
    "command lines": "apeval_bench.attack.lines",
}
"""Modules with LIBRARIES, which are loaded before the clock starts, `prepare(folder)`, once, and
`fuzz(calls, rng, prepared)` for each input, whose seed or name is `calls.case`."""
Inputs = list[int | str]


def run_inputs(
    family: str,
    seeds: Sequence[int] | Sequence[str],
    seconds: float = SECONDS,
    prepared: Path | None = None,
) -> Iterator[dict[str, Any]]:
    """The outcome of every input, by its seed or name: findings, and how many calls answered or
    refused. `prepared`: what the module's `prepare` has made already."""
    left: Inputs = list(seeds)
    with tempfile.TemporaryDirectory(prefix="apeval-fuzz-") as folder:
        if prepared is not None:
            shutil.copytree(prepared, Path(folder, "prepared"))
            Path(folder, "ready").touch()
        while left:
            with _child(family, left, Path(folder)) as told:
                for outcome in _heard(told, left, seconds):
                    yield outcome
                    left.pop(0)


@contextlib.contextmanager
def _child(family: str, seeds: Inputs, folder: Path) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(
        target=_work, args=(FAMILIES[family], seeds, folder, its), daemon=True
    )
    process.start()
    its.close()
    try:
        yield mine
    finally:
        mine.close()
        process.join(1.0)
        if process.is_alive():
            process.kill()
            process.join()


def _heard(told: Connection, seeds: Inputs, seconds: float) -> Iterator[dict[str, Any]]:
    """Outcomes in the order of the seeds; ends early where the child hung or crashed, after an
    outcome that says so."""
    at, limit = "starting", _STARTING
    word: str
    content: Any
    for seed in list(seeds):
        while True:
            try:
                word, content = told.recv() if told.poll(limit) else ("hang", None)
            except EOFError:
                word, content = "crash", None
            if word == "at":
                at, limit = content, seconds
                continue
            break
        if word == "done":
            yield content
            continue
        if word == "broken":
            raise RuntimeError(f"the fuzzer itself is broken, seed {seed}: {content}")
        if at == "starting":
            raise RuntimeError(f"the fuzzer itself did not start: {word}")
        detail = f"more than {seconds:g} s" if word == "hang" else "the process ended"
        yield _outcome(seed, [{"call": at, "kind": word, "detail": detail}])
        return


def _outcome(
    seed: int | str,
    findings: list[dict[str, str]],
    answered: int = 0,
    refused: int = 0,
    tally: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Any]:
    counts = {"answered": answered, "refused": refused, "tally": dict(tally)}
    return {"seed": seed, **counts, "findings": findings}


def _work(name: str, seeds: Inputs, folder: Path, tell: Connection) -> None:
    """The child: prepares once, then runs one input after the other."""
    _limit_memory()
    for number in (1, 2):  # what a library writes to the terminal itself is of no interest
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    caches = _caches(folder / "caches")
    module = importlib.import_module(name)
    for library in module.LIBRARIES:
        with contextlib.suppress(ImportError):  # an extra
            importlib.import_module(library)
    prepared, ready = folder / "prepared", folder / "ready"
    if not ready.exists():  # else by a child before this one
        prepared.mkdir()
        module.prepare(prepared)
        ready.touch()
    auditor = Auditor(caches)
    for seed in seeds:
        sandbox = Path(tempfile.mkdtemp(dir=folder, prefix="box"))
        os.chdir(sandbox)
        calls = Calls(sandbox, auditor, lambda what: tell.send(("at", what)), seed)
        calls.beat("preparing an input")
        try:
            module.fuzz(calls, random.Random(f"{name} {seed}"), prepared)
        except BaseException:
            tell.send(("broken", traceback.format_exc()))
            raise
        counts = calls.answered, calls.refused, calls.tally
        tell.send(("done", _outcome(seed, calls.findings, *counts)))
        os.chdir(folder)
        shutil.rmtree(sandbox, ignore_errors=True)
    tell.close()


def _caches(folder: Path) -> Path:
    """Where libraries keep what they keep, instead of in the user's home."""
    folder.mkdir(exist_ok=True)
    for name in ("MPLCONFIGDIR", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME"):
        os.environ[name] = str(folder)
    return folder


def _limit_memory() -> None:
    """A call that asks for all memory there is must fail alone."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, hard))
