"""Many independent runs: in parallel, kept as they finish, never run twice."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

from apeval.errors import StorageError
from apeval.plugins import folders
from apeval.simulate.workers.orphans import leave_with_parent
from apeval_bench.registry import ExperimentRequest

Cell = Mapping[str, Any]
"""What one run is: a problem, a method, a budget, a seed, …; anything that JSON can hold."""

_RESULTS_DEPEND_ON = (
    "problem", "environments", "apeval_paper", "simulate", "learn", "estimate", "run",
)  # fmt: skip


def run_cells(
    task: str,
    work: Callable[[Cell], dict[str, Any]],
    cells: Sequence[Cell],
    request: ExperimentRequest,
    workers: int | None = None,
    of: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> list[dict[str, Any]]:
    """`work(cell)` for every cell, in the order of the cells.

    With `request.cache`, each outcome is appended to `<cache>/<task>.jsonl` as soon as it is
    known, and a cell that stands there already, made by the same code, is not run again. `work`
    must be a function at the top level of a module, because other processes import it. `of` and
    `without` narrow the code that the outcomes depend on, as in `fingerprint`.
    """
    code = fingerprint(of, without) if of or without else fingerprint()
    known = _read(_path(request, task), code)
    missing = [cell for cell in {_key(c): c for c in cells}.values() if _key(cell) not in known]
    done, total = len(cells) - len(missing), len(cells)
    request.tick(task, done, total)
    for cell, outcome in _outcomes(work, missing, workers):
        known[_key(cell)] = outcome
        _append(_path(request, task), cell, outcome, code)
        done += 1
        request.tick(f"{task}: {_name(cell)}", done, total)
    return [known[_key(cell)] for cell in cells]


def _outcomes(
    work: Callable[[Cell], dict[str, Any]], cells: Sequence[Cell], workers: int | None
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    workers = min(workers or os.cpu_count() or 1, len(cells))
    if workers <= 1:
        for cell in cells:
            yield cell, work(cell)
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # inherited: the workers share the cores
    context, others = multiprocessing.get_context("spawn"), multiprocessing.active_children()
    with ProcessPoolExecutor(workers, context, leave_with_parent) as pool:
        running: dict[Future[dict[str, Any]], Cell] = {pool.submit(work, c): c for c in cells}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():  # a cell may take many minutes
                if worker not in others:
                    worker.terminate()
            raise


@cache
def fingerprint(of: tuple[str, ...] = _RESULTS_DEPEND_ON, without: tuple[str, ...] = ()) -> str:
    """Changes whenever the code that outcomes depend on does: the files and folders `of` (all
    that a run is made of), leaving out the folders `without`. They are named within the package
    `apeval`, or with another package of the repository in front (``apeval_bench/modes.py``)."""
    omitted = [_located(part) for part in without]
    digest = hashlib.sha256()
    for part in of or _RESULTS_DEPEND_ON:
        path = _located(part)
        if not path.exists():
            raise FileNotFoundError(f"no outcome can depend on {part}: there is no {path}")
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            if not any(folder in file.parents for folder in omitted):
                digest.update(f"{part}/{file.relative_to(path).as_posix()}".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _located(part: str) -> Path:
    """The file or folder that a name in `fingerprint` stands for."""
    package, _, rest = part.partition("/")
    return folders()[package] / rest if package in folders() else folders()["apeval"] / part


def _path(request: ExperimentRequest, task: str) -> Path | None:
    return None if request.cache is None else request.cache / f"{task}.jsonl"


def _key(cell: Cell) -> str:
    return json.dumps(cell, sort_keys=True)


def _name(cell: Cell) -> str:
    return " ".join(str(v) for k, v in cell.items() if k in ("problem", "method", "seed"))


def _read(path: Path | None, code: str) -> dict[str, dict[str, Any]]:
    """Outcomes made by this code; a last line torn by an interruption is left out."""
    known: dict[str, dict[str, Any]] = {}
    if path is None or not path.exists():
        return known
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
            if entry["code"] == code:
                known[_key(entry["cell"])] = entry["outcome"]
        except (ValueError, KeyError, TypeError):
            continue
    return known


def _append(path: Path | None, cell: Cell, outcome: dict[str, Any], code: str) -> None:
    if path is None:
        return
    line = json.dumps({"code": code, "cell": cell, "outcome": outcome})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        torn = path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
        with path.open("a", encoding="utf-8") as file:
            file.write(("\n" if torn else "") + line + "\n")
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from None
