"""Edited run folders, and surroundings that have changed: is another number shown for the run?"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from random import Random

from apeval_bench.attack import bases, surroundings
from apeval_bench.attack.bases import BASES
from apeval_bench.attack.edits import Edit, edits
from apeval_bench.attack.readings import Answer, difference, judge, only_learning, readings
from apeval_bench.attack.seals import UNTOLD, Seal, find_seals, seal
from apeval_bench.fuzz.calls import Calls
from apeval_bench.fuzz.folders import LIBRARIES

__all__ = ["LIBRARIES", "fuzz", "names", "prepare"]

_UNSEALED = 9  # every so many edits, one whose hashes are left as they were
_PER_BASE = 190  # edits of a base, drawn evenly over its files where there are more
_AROUND = 4  # cases of changed surroundings in the small version
_BY = "@"  # between an edit and the readings to try, where not all are wanted


_SMALL = (
    "complete:result.json:estimate:x1.5@show+report+compare",
    "complete:result.json:interval.0:x0.2@show",
    "complete:result.json:interval.1:x0.2@report",
    "complete:result.json:standard_error:x0.2@show",
    "complete:result.json:confidence:=0.5@show+merge",
    "complete:result.json:seed:=1@show+extend",
    "complete:result.json:problem:=walk@show+merge",
    "complete:result.json:kinds.high.probability:x1.5@show",
    "complete:result.json:parameters.beta:x1.5@report",
    "complete:result.json:estimate:x1.5:unsealed@show",
    "complete:sample.parquet:log_p:all@reweight+merge",
    "complete:sample.parquet:kind:one@compare",
    "complete:sample.parquet:rows:half gone@merge",
    "complete:sample.parquet:of another run@reweight",
    "complete:run.json:inputs.seed:=1@resume",
    "complete:run.json:of another run@show",
    "complete:provenance.json:inputs.confidence:=0.5@report",
    "complete:provenance.json:inputs.problem:=walk@replay",
    "complete:manifest.json:batches:+1@export",
    "complete:episodes/000000.episodes.parquet:kind:all@export",
    "complete:episodes/000000.decisions.parquet:a_E_0:all@export",
    "complete:episodes/000001:gone and the rest renumbered@export",
    "complete:failures.json:0.a_E.0.0:x1.5@replay",
    "complete:model.json:method:=mc@show",
    "tabular:result.json:estimate:x0.2@show",
    "tabular:sample.parquet:log_p:one@reweight",
    "own:result.json:estimate:x1.5@resume",
    "own:run.json:inputs.parameters.std:x1.5@resume+extend",
    "killed:run.json:inputs.seed:=1@resume",
    "killed:run.json:inputs.confidence:=0.5@resume",
    "killed:run.json:inputs.parameters.top:x0.2@resume",
    "killed:run.json:inputs.budget.episodes:+1@resume",
    "killed:episodes/000000.episodes.parquet:kind:all@resume",
    "killed:episodes/000000.decisions.parquet:a_E_0:all@resume",
    "stopped:run.json:inputs.confidence:=0.99@resume",
    "stopped:episodes/000000.episodes.parquet:of another run@resume",
    "faults:faults.json:0.outcome:other@fault",
    "faults:result.json:unresolved.episodes:x3@show",
    "python:result.json:estimate:x1.5@report",
    "extended:extended.json:estimate:x1.5@show",
    "extended:extended.json:problem:=walk@resume",
    "extended:manifest.json:complete:=False:unsealed@resume",
)
"""The small version: edits of every kind, and the readings to try with each."""


def prepare(folder: Path) -> None:
    """Make the folders that are edited."""
    bases.prepare(folder)


def names(prepared: Path, small: bool = False) -> list[str]:
    """Every case: `folders:BASE:FILE:PLACE:VALUE`, and `:unsealed` where the hashes stay."""
    around = [f"folders:around:{name}" for name in surroundings.CASES]
    if small:
        return [*(f"folders:{name}" for name in _SMALL), *around[:_AROUND]]
    found = []
    for base in BASES:
        chosen = _spread(list(_edits(prepared, base)), _PER_BASE)
        found += [f"folders:{base}:{name}" for name in chosen]
        found += [f"folders:{base}:{name}:unsealed" for name in chosen[::_UNSEALED]]
    return [*found, *around]


def _spread(names: list[str], most: int) -> list[str]:
    """At most so many, in equal shares from every file, evenly over its edits."""
    files: dict[str, list[str]] = {}
    for name in names:
        head = name.split(":")[0]
        files.setdefault("episodes" if head.startswith("episodes/") else head, []).append(name)
    taken: list[str] = []
    left = most
    for k, mine in enumerate(sorted(files.values(), key=len)):
        share = min(len(mine), max(left // (len(files) - k), 0))
        taken += [mine[j * len(mine) // share] for j in range(share)]
        left -= share
    return [name for name in names if name in set(taken)]


def fuzz(calls: Calls, rng: Random, prepared: Path) -> None:
    """Edit the folder as the case's name says, then read it in every way."""
    name = str(calls.case).removeprefix("folders:")
    for file in ("own.py", "attacked_part.py"):
        shutil.copyfile(prepared / file, calls.sandbox / file)
    base, _, rest = name.partition(":")
    if base == "around":
        surroundings.CASES[rest](calls, prepared)
        return
    rest, _, only = rest.partition(_BY)
    edit = _edits(prepared, base)[rest.removesuffix(":unsealed")]
    ways = readings(BASES[base])
    chosen = only.split("+") if only else list(ways)
    honest = _honest(calls, prepared, base, chosen)
    edited = prepared.parent / "edited"
    shutil.rmtree(edited, ignore_errors=True)
    shutil.copytree(prepared / base / "run", edited)
    edit.do(edited)
    if not rest.endswith(":unsealed"):
        seal(edited, _seals(prepared, base))
    for way in chosen:
        _lay_out(calls, prepared, base, edited)
        seen = ways[way].ask(calls)
        verdict = judge(honest[way], seen)
        if verdict in ("different", "answered") and edit.minor:
            verdict = "different beside the number"
        if verdict == "different" and edit.untold and only_learning(honest[way], seen):
            verdict = UNTOLD
        calls.tally[verdict] += 1
        if verdict in ("different", "answered"):
            what = difference(honest[way].numbers, seen.numbers)
            calls.find(way, "different number", what)


def _lay_out(calls: Calls, prepared: Path, base: str, run: Path | None = None) -> None:
    """The undisturbed folders in an empty sandbox, or an edited one in the run's place."""
    for name in ("run", "other", "more"):
        shutil.rmtree(calls.sandbox / name, ignore_errors=True)
    shutil.copytree(run or prepared / base / "run", calls.sandbox / "run")
    shutil.copytree(prepared / base / "other", calls.sandbox / "other")


_KNOWN: dict[tuple[str, str], Answer] = {}


def _honest(calls: Calls, prepared: Path, base: str, ways: list[str]) -> dict[str, Answer]:
    """What the undisturbed run says; found once in a process."""
    for way in ways:
        if (base, way) not in _KNOWN:
            _lay_out(calls, prepared, base)
            _KNOWN[base, way] = readings(BASES[base])[way].ask(calls)
    return {way: _KNOWN[base, way] for way in ways}


@cache
def _edits(prepared: Path, base: str) -> dict[str, Edit]:
    found = edits(prepared / base / "run", prepared / base / "other")
    return {edit.name: edit for edit in found}


@cache
def _seals(prepared: Path, base: str) -> list[Seal]:
    return find_seals(prepared / base / "run")
