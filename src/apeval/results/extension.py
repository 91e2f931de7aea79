"""A run that extends earlier ones: which, and their common answer, beside its own files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from apeval.errors import ApevalError
from apeval.results.dataclass_json import build, damaged
from apeval.results.files import read_object
from apeval.results.folder import Run, load
from apeval.results.manifest import write_listed
from apeval.results.plausible import check_merged
from apeval.results.store import EXTENSION
from apeval.run.merge import Merged, merge

_NUMBERS = ("estimate", "standard_error", "interval", "confidence", "episodes", "failures", "ess",
            "detection_limit")  # fmt: skip


def save_extension(folder: Path, earlier: list[Run], merged: Merged) -> Path:
    """Beside the run's own result; earlier runs are named relative to the folder."""
    answer = {"earlier": relative(earlier, folder), **merged.as_json()}
    return write_listed(folder, EXTENSION, answer)


def relative(earlier: list[Run], folder: Path) -> list[str]:
    """Where earlier runs are, seen from the folder."""
    return [os.path.relpath(run.path.resolve(), folder.resolve()) for run in earlier]


def read_extension(folder: Path) -> Merged | None:
    """The common answer that was stored with a run; None where it extends nothing. Where one of the
    runs is not there any more, nothing can tell whether it is theirs: it is not to be trusted."""
    where = folder / EXTENSION
    if not where.exists() and not where.is_symlink():
        return None
    merged = build(Merged, read_object(where), where)
    check_merged(merged, where)
    try:
        runs = chain(folder)
    except ApevalError as error:  # this one's part of the answer is there
        _check_parts(merged, [load(folder)], where)
        doubt = f"the common answer cannot be verified: {error}"
        return replace(merged, trusted=False, warnings=(doubt, *merged.warnings))
    _check_parts(merged, runs, where)
    _check_numbers(merged, merge(runs, extended=True), where)
    return merged


def _check_parts(merged: Merged, runs: list[Run], where: Path) -> None:
    """The runs that are there have the problem and the numbers that the common answer says of
    them."""
    if merged.problem != runs[-1].result.problem:
        raise damaged(where, f"problem is not that of {runs[-1].path}")
    if len(runs) not in (1, len(merged.parts)):
        raise damaged(where, "it does not list the runs")
    mean = sum(part.share * part.estimate for part in merged.parts)
    if not np.isclose(merged.estimate, mean, rtol=1e-9, atol=0.0):
        raise damaged(where, "estimate does not follow from those of the runs")
    for part, run in zip(merged.parts[-len(runs) :], runs, strict=True):
        it = run.result
        said = (part.method, part.seed, part.estimate, tuple(part.interval))
        if said != (it.method, it.seed, it.estimate, tuple(it.interval)):
            raise damaged(where, f"what it says of {run.path} is not what stands there")
    final = [run.result.final for run in runs]
    least = sum(it.episodes for it in final), sum(it.failures for it in final)
    if merged.episodes < least[0] or merged.failures < least[1]:
        raise damaged(where, "it has fewer episodes or failures than its runs")


def _check_numbers(merged: Merged, again: Merged, where: Path) -> None:
    """The common answer once more, from the runs; another machine may round otherwise."""
    for name in _NUMBERS:
        one, two = (np.asarray(getattr(it, name), np.float64) for it in (merged, again))
        if one.shape != two.shape or not np.allclose(one, two, rtol=1e-9, atol=0.0, equal_nan=True):
            raise damaged(where, f"{name} does not follow from the runs")
    mine, theirs = ([part.share for part in it.parts] for it in (merged, again))
    if not np.allclose(mine, theirs, rtol=1e-9, atol=0.0) or merged.trusted != again.trusted:
        raise damaged(where, "shares, or whether it is trusted, do not follow from the runs")


def chain(path: Path) -> list[Run]:
    """A run with all that it extends, the first one first."""
    run = load(path)
    where = run.path / EXTENSION
    if not where.exists():
        return [run]
    paths = read_object(where).get("earlier")
    if not isinstance(paths, list) or not all(isinstance(p, str) for p in paths):
        raise ApevalError(f"{where} is damaged: it does not list the earlier runs")
    try:
        return [*(load(Path(os.path.normpath(run.path / p))) for p in paths), run]
    except ApevalError as error:
        raise ApevalError(
            f"{path} extends a run that is not there any more ({error}): move it back"
        ) from None
