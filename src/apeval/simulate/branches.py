"""Episodes that begin with another one's decisions: from a copy of its state, or played again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from apeval.problem.laws import Law
from apeval.problem.lineage import Lineage
from apeval.problem.problem import Problem
from apeval.problem.types import BoolArray, FloatArray, IntArray
from apeval.simulate.adversary import Mixture
from apeval.simulate.episodes import PER_EPISODE, BranchTrace, Episodes
from apeval.simulate.rollout import EpisodeObserver, StartStates, rollout

_PER_ROW = ("t", "s", "a_A", "a_E")


@dataclass(frozen=True)
class Branches:
    """n branches. Where the simulator's state is an array, each goes on from a copy of it, and
    `shared` has the decisions before; elsewhere the whole episode is played again by its lineage.
    The numbers are the same, and so is what the budget is charged with: who simulates has no say
    in it."""

    lineage: Lineage
    since: IntArray
    """The first decision that is a branch's own, (n,)."""
    shared: Episodes | None
    """The decisions before, where states are copied."""
    over: BoolArray
    """Whether the other episode ended there, so that nothing is left to decide, (n,)."""
    copied: IntArray
    """Decisions that need not be simulated, (n,)."""

    def part(self, first: int, end: int) -> Branches:
        """Branches `first` … `end` − 1."""
        mine = np.zeros(len(self.since), bool)
        mine[first:end] = True
        return Branches(
            self.lineage.take(slice(first, end)),
            self.since[first:end],
            None if self.shared is None else self.shared.take(mine),
            self.over[first:end],
            self.copied[first:end],
        )

    def replayed(self) -> Branches:
        """The same, played from the start."""
        return replace(self, shared=None)

    def simulate(
        self,
        problem: Problem,
        proposal: Mixture,
        key: IntArray,
        ids: IntArray,
        position: IntArray,
        total: int | None,
        watch: EpisodeObserver | None = None,
    ) -> Episodes:
        """The branches as whole episodes."""
        if self.shared is None:
            if total is not None:
                total += int(self.copied.sum())
            found = rollout(
                problem, proposal, key, ids, position, total, watch, self.lineage, follow=True
            )
        else:
            go_on = np.flatnonzero(~self.over)
            new = None
            if len(go_on):
                mine = self.lineage.take(go_on)
                new = rollout(
                    problem, proposal, key, ids[go_on], position[go_on], total, watch, mine,
                    _states(problem, self.shared, self.since, go_on), follow=True,
                )  # fmt: skip
            found = _spliced(replace(self.shared, ids=ids), new, go_on)
            found = replace(found, component=proposal.assign(position))
        if found.trace is None:
            return found
        return replace(found, trace=replace(found.trace, copied=self.copied))


def replayed(lineage: Lineage) -> Branches:
    """Branched episodes again, each of them whole."""
    n = len(lineage.episode)
    nothing = np.zeros(n, np.int64)
    return Branches(lineage, nothing, None, np.zeros(n, bool), nothing)


def shared_part(parents: Episodes, chosen: IntArray, since: IntArray) -> Episodes:
    """The first `since` decisions of the chosen episodes, one of which may be chosen often; ends
    and margins are those of the whole episodes."""
    begins = np.searchsorted(parents.episode, chosen)
    starts = np.cumsum(since) - since
    number = np.repeat(np.arange(len(chosen)), since)
    rows = begins[number] + np.arange(int(since.sum())) - starts[number]
    per_episode = {name: getattr(parents, name)[chosen] for name in PER_EPISODE}
    trace = parents.trace
    return Episodes(
        **per_episode,
        **{name: getattr(parents, name)[rows] for name in _PER_ROW},
        episode=number,
        law=parents.law.take(rows),
        law_0=None if parents.law_0 is None else parents.law_0.take(chosen),
        trace=None
        if trace is None
        else BranchTrace(
            trace.drawn[rows],
            trace.margin[rows],
            None if trace.x is None else trace.x[rows],
            np.zeros(len(chosen), np.int64),
        ),
    )


def _states(problem: Problem, shared: Episodes, since: IntArray, chosen: IntArray) -> StartStates:
    """Where the chosen episodes stand after the decisions that they share. What a method sees of
    that state is not known before the next decision; s_end stands in until then."""
    trace = shared.trace
    last = np.searchsorted(shared.episode, chosen, side="right") - 1
    if trace is None or trace.x is None:
        raise AssertionError("no states were kept")
    smallest = _smallest(shared, trace.margin)[chosen]
    return StartStates(
        t=since[chosen],
        x=trace.x[last],
        margin=np.full(len(chosen), np.inf) if problem.judge_at_end else smallest,
        s=shared.s_end[chosen],
        a_0=shared.a_0[chosen],
        law_0=None if shared.law_0 is None else shared.law_0.take(chosen),
    )


def _smallest(it: Episodes, margin: FloatArray) -> FloatArray:
    """The smallest margin of each episode's decisions."""
    found = np.full(it.n, np.inf)
    np.minimum.at(found, it.episode, margin)
    return found


def _spliced(shared: Episodes, new: Episodes | None, rows: IntArray) -> Episodes:
    """The shared decisions of all, then the new ones of the episodes in `rows`."""
    if new is None:
        return shared
    episode = np.concatenate([shared.episode, rows[new.episode]])
    order = np.argsort(episode, kind="stable")
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(shared, name), getattr(new, name)])[order]
        for name in _PER_ROW
    }
    for name in ("length", "kind", "unresolved", "ended_by_roulette", "margin", "s_end"):
        arrays[name] = getattr(shared, name).copy()
        arrays[name][rows] = getattr(new, name)
    law = Law.stack([shared.law, new.law], [len(shared.t), len(new.t)]).take(order)
    one, two = shared.trace, new.trace
    trace = None
    if one is not None and two is not None:
        x = None
        if one.x is not None and two.x is not None:
            x = np.concatenate([one.x, two.x])[order]
        trace = BranchTrace(
            np.concatenate([one.drawn, two.drawn])[order],
            np.concatenate([one.margin, two.margin])[order],
            x,
            one.copied,
        )
    return replace(shared, episode=episode[order], law=law, trace=trace, **arrays)
