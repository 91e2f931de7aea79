"""A block: consecutive episodes that one worker simulates together."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from apeval.errors import ProblemError, SimulationError, blame, within_apeval
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.simulate.adversary import Mixture
from apeval.simulate.branches import Branches
from apeval.simulate.episodes import Episodes
from apeval.simulate.rollout import EpisodeObserver, rollout

RAISED, DIED, LATE, BREACH, INTERNAL = "raised", "died", "late", "breach", "internal"


@dataclass(frozen=True)
class Task:
    """Episodes `first` … at `position` … of their stage, n of them."""

    proposal: Mixture
    first: int
    position: int
    n: int
    total: int | None = None
    """Decisions that the block may make in all; None: as many as its episodes take."""
    branches: Branches | None = None
    """Where its episodes branch off others; None: they begin at the beginning."""
    follow: bool = False
    """Whether others may branch off them (`Episodes.trace`)."""

    @property
    def fields(self) -> tuple[Any, ...]:
        """All but the proposal, in order: what travels to a worker that has it already."""
        return self.first, self.position, self.n, self.total, self.branches, self.follow

    def simulate(
        self, problem: Problem, key: IntArray, watch: EpisodeObserver | None = None
    ) -> Episodes:
        """Roll the block."""
        each = np.arange(self.n)
        ids, positions = self.first + each, self.position + each
        if self.branches is None:
            return rollout(
                problem, self.proposal, key, ids, positions, self.total, watch, follow=self.follow
            )
        return self.branches.simulate(
            problem, self.proposal, key, ids, positions, self.total, watch
        )

    def alone(self) -> Iterator[Task]:
        """Each of its episodes as a block of its own, with its part of the decisions."""
        total = None if self.total is None else max(1, self.total // self.n)
        for k in range(self.n):
            yield self.single(k, total)

    def single(self, k: int, total: int | None = None) -> Task:
        """Its k-th episode as a block of its own, from the start."""
        branches = None if self.branches is None else self.branches.part(k, k + 1).replayed()
        first, position = self.first + k, self.position + k
        return replace(self, first=first, position=position, n=1, total=total, branches=branches)


@dataclass(frozen=True)
class Trouble:
    """Why a block did not come back."""

    what: str
    """raised, died, late, breach: the problem breaks its contract, and would do so again; or
    internal: no code of the problem's raised."""
    text: str
    """One line, with the place in the user's code where it is known."""
    trace: str = ""
    found: str = ""
    """Of an internal one: what a check of the problem found to mend, there where it happened."""


def cut(
    proposal: Mixture,
    first: int,
    position: int,
    n: int,
    size: int,
    total: int | None,
    branches: Branches | None = None,
    follow: bool = False,
) -> list[Task]:
    """n episodes as blocks of at most `size`, each with its proportional share of `total`. Who
    simulates them, and how many do, has no say in it.

    >>> from apeval.simulate.adversary import Nominal, only
    >>> [(t.first, t.n, t.total) for t in cut(only(Nominal()), 5, 0, 7, 3, 70)]
    [(5, 3, 30), (8, 3, 30), (11, 1, 10)]
    """
    tasks = []
    for start in range(0, n, size):
        end = min(start + size, n)
        share = None if total is None else total * end // n - total * start // n
        mine = None if branches is None else branches.part(start, end)
        tasks.append(
            Task(proposal, first + start, position + start, end - start, share, mine, follow)
        )
    return tasks


def attempt(
    problem: Problem, key: IntArray, task: Task, watch: EpisodeObserver | None = None
) -> Episodes | Trouble:
    """The block, or what went wrong in it."""
    try:
        return task.simulate(problem, key, watch)
    except ProblemError as error:
        return Trouble(BREACH, str(error))
    except SimulationError as error:
        return Trouble(RAISED, str(error), traceback.format_exc())
    except (Exception, SystemExit) as error:  # whatever a user's simulator may raise
        if within_apeval(error):
            return Trouble(INTERNAL, blame(error), traceback.format_exc())
        return Trouble(RAISED, f"your problem raised {blame(error)}", traceback.format_exc())
