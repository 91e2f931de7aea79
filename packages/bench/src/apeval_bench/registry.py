"""Reproductions and benchmarks by name: one module each beside this file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from apeval import validate
from apeval.atomic_files import write_bytes
from apeval.errors import ApevalError, unknown
from apeval.results.store import write_json
from apeval.run.verify import REPORTING as REPORTING

TUNING = range(0, 1_000)


@dataclass(frozen=True)
class ExperimentRequest:
    """How often, from which seed, with which output folder, and who watches."""

    seeds: int
    first_seed: int = REPORTING.start
    out: Path | None = None
    cache: Path | None = None
    """Where outcomes are kept, so that an interrupted experiment goes on where it stopped."""
    tick: Callable[[str, int, int], None] = lambda what, done, total: None
    rows: tuple[str, ...] = ()
    """The rows to measure, by key or problem; all where none is named."""
    methods: tuple[str, ...] = ()
    """The methods to measure; the experiment's own choice where none is named."""
    held_out: bool = False
    """Measure what no one has tuned on instead."""

    def __post_init__(self) -> None:
        validate.whole("seeds", self.seeds, 1, len(REPORTING))
        validate.seed(self.first_seed, "first_seed")
        last = self.first_seed + self.seeds - 1
        if not any(self.first_seed in r and last in r for r in (TUNING, REPORTING)):
            raise ApevalError(
                "seeds below 1,000 are for tuning and seeds from 10,000 on for reporting; "
                f"{self.first_seed} … {last} is neither"
            )

    @property
    def all_seeds(self) -> range:
        """The seeds to run."""
        return range(self.first_seed, self.first_seed + self.seeds)


@dataclass(frozen=True)
class ExperimentReport:
    """An experiment's outcome: data, and the same as text for a person."""

    data: dict[str, Any]
    text: str
    passed: bool = True
    files: dict[str, Path] = field(default_factory=dict)


def store(report: ExperimentReport, folder: Path, name: str, made_by: str) -> None:
    """Write a report's data and text, with the command that made them."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / f"{name}.json", report.data)
    text = f"{report.text}\n\nMade by `{made_by}`.\n"
    write_bytes(folder / f"{name}.md", text.encode())


Run = Callable[[ExperimentRequest], ExperimentReport]
R = TypeVar("R", bound=Run)


@dataclass(frozen=True)
class Experiment:
    """A registered experiment."""

    name: str
    description: str
    default_seeds: int
    run: Run
    selects: bool = False
    """Whether rows and methods can be chosen."""


_REGISTERED: dict[str, dict[str, Experiment]] = {"reproduce": {}, "bench": {}}


def experiment(
    command: str, name: str, description: str, seeds: int, selects: bool = False
) -> Callable[[R], R]:
    """Register a function as `apeval reproduce NAME` or `apeval bench NAME`."""

    def decorate(run: R) -> R:
        _REGISTERED[command][name] = Experiment(name, description, seeds, run, selects)
        return run

    return decorate


def experiments(command: str) -> dict[str, Experiment]:
    """All experiments of a command, by name."""
    package = importlib.import_module("apeval_bench")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_REGISTERED[command].items()))


def find(command: str, name: str) -> Experiment:
    """An experiment by name."""
    known = experiments(command)
    if name not in known:
        raise unknown(f"{command} target", name, known)
    return known[name]
