"""What a report is made from: a run folder, and in words what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from apeval.errors import ApevalError
from apeval.estimate.sample import Sample
from apeval.problem.problem import Problem
from apeval.results.extension import read_extension
from apeval.results.problem_rebuild import build_again
from apeval.simulate.episodes import Episodes

if TYPE_CHECKING:
    from apeval.results.folder import Run

T = TypeVar("T")
_MAY_LACK = ("problem's own code", "there is no folder")
"""Errors of a folder that is whole but for code that was not given, or a journal that was put
away."""


@dataclass(frozen=True)
class ReportData:
    """One run, as far as it is stored."""

    name: str
    result: Mapping[str, Any]
    """As in result.json."""
    sample: Sample | None
    episodes: Episodes | None
    """In the order of the sample."""
    learning: Episodes | None
    problem: Problem | None
    provenance: Mapping[str, Any]
    curve: tuple[tuple[int, float], ...]
    """(steps, learned v(s0)) along the way."""
    extended: Mapping[str, Any] | None
    """The common answer of this run and those that it extends; None where it extends none."""
    seal: str
    """SHA-256 of the folder's manifest."""
    missing: tuple[str, ...]
    """Why something above is None."""

    @property
    def confidence(self) -> float:
        """Of the result's interval."""
        return float(self.result["confidence"])


def gather(
    run: Run, address: str | None = None, fits: Callable[[Problem], Problem] | None = None
) -> ReportData:
    """All that the folder holds; what cannot be read without the problem's own code is left out
    and said. `address` is where that code is, and `fits` what is done to the problem that is built
    from it. A damaged folder is refused."""
    missing: list[str] = []

    def get(read: Callable[[], T], code: bool = False) -> T | None:
        try:
            return read()
        except ApevalError as error:
            text = str(error)
            if not code and not any(part in text for part in _MAY_LACK):
                raise
            if run.path.is_absolute():  # a reader has another machine
                text = text.replace(str(run.path), run.path.name)
            if text not in missing:
                missing.append(text)
            return None

    def build() -> Problem:
        if fits is None or address is None:
            return run.problem(address)
        r = run.result
        return run.fitting(fits(build_again(r.problem, r.parameters, address, run.path)))

    problem = get(build, code=True)  # first: episodes may need its code
    sample = get(lambda: run.sample)
    episodes = get(lambda: run.episodes)
    learning = get(lambda: run.learning)
    extended = get(lambda: read_extension(run.path))
    return ReportData(
        name=run.path.resolve().name or run.result.problem or "run",
        result=run.result.as_json(),
        sample=sample,
        episodes=episodes,
        learning=learning if learning is not None and learning.n else None,
        problem=problem,
        provenance=run.provenance,
        curve=run.curve,
        extended=None if extended is None else extended.as_json(),
        seal=run.seal,
        missing=tuple(missing),
    )


def distinct(runs: list[ReportData], paths: Sequence[Path]) -> list[ReportData]:
    """Folders of the same name get their parent's before it."""
    names = [it.name for it in runs]
    return [
        it
        if names.count(it.name) == 1
        else replace(it, name=f"{path.resolve().parent.name}/{it.name}")
        for it, path in zip(runs, paths, strict=True)
    ]
