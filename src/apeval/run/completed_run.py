"""A run that is over, as the questions after it need it: in memory, or read from its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from apeval import validate
from apeval.errors import ApevalError
from apeval.estimate.precision_target import of_a_look
from apeval.estimate.sample import Sample
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.run.result import Result, plain
from apeval.run.run_recorder import IDENTITY, FinishedRun
from apeval.run.run_tables import RunTables
from apeval.simulate.adversary import Mixture
from apeval.simulate.episodes import Episodes, join
from apeval.simulate.identity.identity import (
    ANSWERS,
    CODE,
    FILES,
    differences,
    identify,
    in_short,
)


class CompletedRun(Protocol):
    """What `apeval.load` returns, or `InMemory`."""

    @property
    def path(self) -> Path: ...
    @property
    def result(self) -> Result: ...
    @property
    def sample(self) -> Sample: ...
    @property
    def episodes(self) -> Episodes: ...
    @property
    def key(self) -> IntArray: ...
    @property
    def identity(self) -> Mapping[str, Any]: ...
    def problem(self, address: str | None = None, **changes: Any) -> Problem: ...


def check_run(name: str, run: CompletedRun) -> None:
    """Refuse what is no run."""
    what = "a run: what apeval.load returns, or an InMemory recorder"
    validate.having(name, run, what, "result")


def level(result: Result, wanted: float) -> float:
    """The confidence of a single look at the run's sample: higher than the one that is wanted
    where a target error could have ended the run early."""
    return wanted if result.target is None else of_a_look(wanted)


def same_problem(runs: list[CompletedRun]) -> str | None:
    """Why runs cannot speak of one probability, or None."""
    first = runs[0].result
    for run in runs[1:]:
        other = run.result
        if other.problem != first.problem:
            return f"{run.path} is a run of {other.problem or 'another problem'}"
        changed = differing(first.parameters, other.parameters)
        if changed:
            return f"{run.path} has other settings of the problem: {', '.join(changed)}"
        found = differences(runs[0].identity, run.identity, ignore=("name", "view", "files"))
        if found:
            return f"{run.path} differs from {runs[0].path} in {in_short(found)}"
    return None


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of the parameters that are not the same, one side perhaps read from JSON.

    >>> differing({"top": 5, "legs": (1, 2)}, {"top": 6, "legs": [1, 2]})
    ['top']
    """
    a, b = plain(one), plain(other)
    return sorted(key for key in {**a, **b} if a.get(key) != b.get(key))


@dataclass
class InMemory:
    """A recorder that keeps the run in memory, for the questions after it. Given to another run,
    it keeps that one.

    Raises:
        ApevalError: A part is asked for before the run is over, or the run is one of another
            problem than `of`.

    Examples:
        >>> import apeval
        >>> problem, run = apeval.make("walk", top=5), InMemory(apeval.make("walk", top=5))
        >>> result = apeval.evaluate(problem, steps=2_000, recorder=run)
        >>> run.episodes.n == run.sample.n == result.final.episodes
        True
    """

    of: Problem
    """The problem that is evaluated."""
    path: Path = Path("run")
    """A name for the run, in answers and warnings."""
    batches: list[Episodes] = field(default_factory=list, repr=False)
    """The episodes that were simulated; after the run, those that count."""
    outcome: FinishedRun | None = field(default=None, repr=False)
    """What the run ended with; None before."""
    faults: list[dict[str, Any]] = field(default_factory=list, repr=False)
    """What went wrong with the simulator."""
    identity: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The problem's fingerprint, made when the run began."""

    def begin(self, inputs: Mapping[str, Any]) -> None:
        """Of the inputs nothing is kept but the problem and its fingerprint."""
        identity = inputs.get(IDENTITY, {})
        mine = identify(self.of, lambda: None)
        found = differences(mine, identity, ignore=("view", CODE, ANSWERS, FILES))
        if identity and found:
            raise ApevalError(
                f"the InMemory recorder is for another problem ({in_short(found)}): make one of "
                "the problem that is evaluated, apeval.InMemory(problem)"
            )
        self.identity, self.outcome = identity, None
        self.batches, self.faults = [], []

    def detour(self) -> None:
        """A run in memory cannot be resumed."""

    def recorded(self, first: int, n: int) -> Episodes | None:
        """Nothing from before."""
        return None

    def close(self) -> None:
        """Nothing has to be given back."""

    def fault(self, entry: dict[str, Any]) -> None:
        """Keep a fault."""
        self.faults.append(entry)

    def batch(self, episodes: Episodes, position: int) -> None:
        """Keep a batch."""
        self.batches.append(episodes)

    def finish(self, outcome: FinishedRun) -> None:
        """Keep the outcome, and of the episodes those that count."""
        self.outcome = outcome
        counted = [np.isin(batch.ids, outcome.ids) for batch in self.batches]
        self.batches = [
            b.take(mine) for b, mine in zip(self.batches, counted, strict=True) if mine.any()
        ]

    @property
    def _done(self) -> FinishedRun:
        if self.outcome is None:
            raise ApevalError("the run is not over: give this recorder to evaluate first")
        return self.outcome

    @property
    def result(self) -> Result:
        """What `evaluate` returned."""
        return self._done.result

    @property
    def proposal(self) -> Mixture:
        """The frozen proposal: the adversary that was learned, with its shares."""
        return self._done.proposal

    @property
    def sample(self) -> Sample:
        """What the estimate was computed from."""
        return self._done.sample

    @property
    def episodes(self) -> Episodes:
        """The sample's episodes, in its order."""
        return join(self.batches)

    @property
    def tables(self) -> RunTables:
        """Episodes, decisions and failures as Arrow tables; `to_pandas()` makes DataFrames."""
        return RunTables(self.sample, self.episodes, tuple(self.result.kinds))

    @property
    def key(self) -> IntArray:
        """With an episode's number it names all of its random numbers."""
        return make_key(self.result.seed)

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return f"<p>{escape(repr(self))}</p>" if self.outcome is None else self.result._repr_html_()

    def problem(self, address: str | None = None, **changes: Any) -> Problem:
        """The problem that was evaluated.

        Args:
            address: Not needed in memory.
            **changes: Not possible in memory: build the changed problem yourself.

        Returns:
            The problem.

        Raises:
            ApevalError: Changes were asked for.
        """
        if changes:
            raise ApevalError("a run in memory has no recipe: build the changed problem yourself")
        return self.of
