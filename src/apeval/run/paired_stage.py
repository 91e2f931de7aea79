"""Episodes in pairs: two policies under one frozen proposal and the same random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from apeval.errors import ApevalError
from apeval.estimate.sample import Sample, join
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.run.reduction import reduce
from apeval.simulate.adversary import Adversary, Mixture, Nominal, mixture, only
from apeval.simulate.backends import Backend
from apeval.simulate.episode_source import EpisodeSource
from apeval.simulate.episodes import Episodes
from apeval.simulate.fault_handling import FaultPolicy
from apeval.simulate.simulation import Budget
from apeval.simulate.task import Task
from apeval.simulate.undisturbed import Undisturbed

_FIRST, _GROWTH = 64, 8  # pairs before the first look; between looks, a part of those before
_FEW = 2  # undisturbed pairs that tell whether anything else is random
_CONTROL, _CONTROL_SHARE = 100, 0.05  # undisturbed pairs, and their part of the budget, at most


def common_proposal(a: Mixture, b: Mixture) -> Mixture:
    """Half of the episodes from each; π_E,gt, which both may have, is one component."""
    learned: list[Adversary] = []
    shares: list[float] = []
    nominal = 0.0
    for proposal in (a, b):
        for component, share in zip(proposal.components, proposal.shares, strict=True):
            part = 0.5 * share / sum(proposal.shares)
            if type(component) is Nominal:
                nominal += part
            else:
                learned.append(component)
                shares.append(part)
    return mixture([*learned, Nominal()], [*shares, nominal])


@dataclass
class Arms:
    """Both policies at work on the same random numbers, within one budget."""

    problems: tuple[Problem, Problem]
    key: IntArray
    backend: Backend
    faults: FaultPolicy
    budget: Budget
    """Of both together."""
    steps: int = 0
    episodes: int = 0
    longest_seen: int = 0
    sources: tuple[EpisodeSource, EpisodeSource] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        a, b = (EpisodeSource(p, self.key, self.backend, None, self.faults) for p in self.problems)
        self.sources = (a, b)

    def close(self) -> None:
        """Close the worker pools."""
        for source in self.sources:
            source.close()

    @property
    def _left(self) -> int:
        used = self.episodes if self.budget.steps is None else self.steps
        return (self.budget.steps or self.budget.episodes or 0) - used

    def affordable(self) -> int:
        """How many pairs can start now, so that all of them can end within the budget."""
        if self.budget.steps is None:
            return self._left // 2
        longest = [p.longest + int(p.initial is not None) for p in self.problems]
        if self.problems[0].horizon is None or self.problems[1].horizon is None:
            longest = [min(it, 2 * max(self.longest_seen, 8)) for it in longest]
        return self._left // sum(longest)

    def expected(self) -> int:
        """How many pairs the budget will hold, by the lengths seen so far."""
        if self.budget.steps is None or not self.episodes:
            return max(1, self.affordable())
        return max(1, int(self._left * self.episodes / (2.0 * self.steps)))

    def draw(self, proposal: Mixture, first: int, n: int) -> tuple[Episodes, Episodes]:
        """Pairs `first` …, n of them."""
        endless = any(p.horizon is None for p in self.problems) and self.budget.steps is not None
        total = max(n, self._left // 2) if endless else None
        task = Task(proposal, first, first, n, total)
        for source in self.sources:
            source.order(task)
        a, b = (source.collect() for source in self.sources)
        for it in (a, b):
            self.steps += it.steps
            self.episodes += it.n
            self.longest_seen = max(self.longest_seen, int(it.length.max()))
        return a, b

    def undisturbed(self) -> tuple[Episodes, Episodes]:
        """The control arm: few pairs, and only two where nothing is random but the disturbance."""
        proposal = only(Undisturbed())
        most = int(min(_CONTROL, _CONTROL_SHARE * self.affordable()))
        a, b = self.draw(proposal, 0, max(1, min(_FEW, most)))
        if most > _FEW and not (_repeats(a) and _repeats(b)):
            a, b = self.draw(proposal, 0, most)
        return a, b

    def pairs(self, proposal: Mixture) -> Iterator[tuple[Sample, Sample]]:
        """The samples of both so far, again and again, until the budget is spent."""
        samples: tuple[list[Sample], list[Sample]] = ([], [])
        drawn = 0
        chunk = min(p.chunk for p in self.problems)
        while (n := min(self.affordable(), chunk, max(_FIRST, drawn // _GROWTH))) > 0:
            for batch, kept in zip(self.draw(proposal, drawn, n), samples, strict=True):
                kept.append(reduce(batch, proposal))
            drawn += n
            yield join(samples[0]), join(samples[1])
        if not drawn:
            raise ApevalError(
                "the budget leaves no pair of episodes for the comparison after learning and the "
                f"control arm ({self.steps:,} decisions): raise it"
            )


def _repeats(episodes: Episodes) -> bool:
    """Whether undisturbed episodes are all the same: then one tells all."""
    rows = [episodes.rows_of(i) for i in range(episodes.n)]
    return all(np.array_equal(episodes.s[rows[0]], episodes.s[it]) for it in rows[1:]) and bool(
        (episodes.s_end == episodes.s_end[0]).all()
    )
