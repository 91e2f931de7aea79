"""Roll n episodes in lockstep under a frozen mixture of adversaries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from apeval.errors import SimulationError
from apeval.problem.draws import MIXTURE, NATURE, ROULETTE, Draws, Tape
from apeval.problem.laws import Law
from apeval.problem.lineage import Lineage
from apeval.problem.problem import Problem
from apeval.problem.types import Array, BoolArray, FloatArray, IntArray
from apeval.simulate.adversary import Adversary, Mixture, Situation
from apeval.simulate.answer_checks import (
    failure_kinds,
    one_each,
    require_finite,
    require_sound,
    rows_of,
    same_precision,
    same_width,
)
from apeval.simulate.episodes import BranchTrace, Episodes

_ABOVE_ZERO = float(np.nextafter(0.0, 1.0))


class EpisodeObserver(Protocol):
    """Is told of every decision before f_E hears of it, so that it is known whatever f_E does."""

    def started(self, a_0: Array, law_0: Law | None) -> None:
        """The initial disturbances, before the reset."""
        ...

    def decided(self, now: Situation, a_E: Array, margin: FloatArray) -> None:
        """Nature's actions, and the smallest margin so far of each episode still running."""
        ...


@dataclass
class _Rows:
    """Rows gathered decision by decision."""

    episode: list[IntArray] = field(default_factory=list)
    t: list[IntArray] = field(default_factory=list)
    s: list[Array] = field(default_factory=list)
    a_A: list[Array] = field(default_factory=list)
    a_E: list[Array] = field(default_factory=list)
    law: list[Law] = field(default_factory=list)
    drawn: list[IntArray] = field(default_factory=list)
    margin: list[FloatArray] = field(default_factory=list)
    x: list[Array] = field(default_factory=list)

    def add(self, alive: IntArray, now: Situation, a_E: Array) -> None:
        self.episode.append(alive)
        self.t.append(now.t)
        self.s.append(now.s)
        self.a_A.append(now.a_A)
        self.a_E.append(a_E)
        self.law.append(now.law)

    def sorted(self, n: int) -> dict[str, Any]:
        """All rows of n episodes, by episode and time."""
        episode = np.concatenate(self.episode)
        order = np.argsort(episode, kind="stable")
        rows = {k: np.concatenate(getattr(self, k))[order] for k in ("t", "s", "a_A", "a_E")}
        law = Law.stack(self.law, [len(e) for e in self.episode]).take(order)
        return {"episode": episode[order], "law": law, "trace": self._trace(order, n), **rows}

    def follow(self, drawn: IntArray, margin: FloatArray, x: Any) -> None:
        """What a branch may need of the decision: see `BranchTrace`."""
        self.drawn.append(drawn)
        self.margin.append(margin)
        if can_copy(x):
            self.x.append(x)

    def _trace(self, order: IntArray, n: int) -> BranchTrace | None:
        if not self.drawn:
            return None
        drawn, margin = np.concatenate(self.drawn)[order], np.concatenate(self.margin)[order]
        x = np.concatenate(self.x)[order] if len(self.x) == len(self.drawn) else None
        return BranchTrace(drawn, margin, x, np.zeros(n, np.int64))


def can_copy(x: Any) -> bool:
    """Whether a simulator's state can be copied and gone on from: an array of plain numbers, a row
    for each episode. It is a property of the problem, whoever simulates."""
    return isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype.kind in "biuf"


@dataclass(frozen=True)
class StartStates:
    """States that n episodes go on from, in the middle."""

    t: IntArray
    """The decision that comes next, (n,)."""
    x: Array
    """The simulator's states, (n, …)."""
    margin: FloatArray
    """The smallest margin so far, (n,)."""
    s: Array
    """What a method sees of x, (n, d_s)."""
    a_0: Array
    law_0: Law | None


@dataclass
class EpisodeOutcomes:
    """What is known of each episode so far."""

    kind: IntArray
    unresolved: BoolArray
    ended_by_roulette: BoolArray
    margin: FloatArray
    length: IntArray
    seen: FloatArray
    """The margin in the last state, ∞ before the first."""

    @staticmethod
    def none(n: int, length: int) -> EpisodeOutcomes:
        """Before the first decision; a controlled start counts as one."""
        return EpisodeOutcomes(
            np.zeros(n, np.int64),
            np.zeros(n, bool),
            np.zeros(n, bool),
            np.full(n, np.inf),
            np.full(n, length, np.int64),
            np.full(n, np.inf),
        )


def rollout(
    problem: Problem,
    proposal: Mixture,
    key: IntArray,
    ids: IntArray,
    position: IntArray,
    total: int | None = None,
    watch: EpisodeObserver | None = None,
    lineage: Lineage | None = None,
    start: StartStates | None = None,
    follow: bool = False,
) -> Episodes:
    """Simulate the episodes `ids`, at the given positions of their stage.

    Episodes that still run when the batch has made `total` decisions in all, or at the cap of a
    problem without horizon, are stopped and count as unresolved. Where they have a `lineage`, they
    draw with the random numbers that it names. With `start` they go on from these states, and
    only decisions from there on come back. With `follow` there is a `BranchTrace`.
    """
    n = len(ids)
    component = proposal.assign(position)
    last = problem.longest
    tape = Tape(key, np.asarray(ids), last, lineage)
    draws = tape.start()
    if start is not None:  # who goes on from a copy has the numbers of others behind it
        tape = Tape(key, np.asarray(ids), last, since=start.t)
    if start is None:
        x, a_0, law_0 = _reset(problem, proposal, component, draws, watch)
        waiting = np.zeros(0, np.int64)
    else:
        x, a_0, law_0 = start.x[:0], start.a_0, start.law_0
        waiting = np.argsort(start.t, kind="stable")
    first = 0 if law_0 is None else 1
    outcomes = EpisodeOutcomes.none(n, first)
    left = n * last if total is None else total - (n * first if start is None else 0)
    persistent = any(q.persistent for q in proposal.components)
    whole = draws.stream(MIXTURE, problem.nominal.dim) if persistent else None
    roulette = any(
        type(q).survival_probability is not Adversary.survival_probability
        for q in proposal.components
    )
    luck = draws.stream(ROULETTE, 1)[:, 0] if roulette else None
    rows, alive, s_end = _Rows(), np.arange(n), None
    if start is not None:
        alive, s_end = alive[:0], start.s.copy()
        outcomes.margin[:], outcomes.length[:] = start.margin, start.t + first
    for t in range(0 if start is None else int(start.t.min()), last):
        if start is not None and len(waiting):
            joining = waiting[start.t[waiting] == t]
            waiting = waiting[len(joining) :]
            x, alive = np.concatenate([x, start.x[joining]]), np.concatenate([alive, joining])
            if not len(alive):
                continue
        left -= len(alive)
        if left < 0:
            break
        draws = tape.at(t, alive)
        now = situation(problem, x, draws, None if whole is None else whole[alive])
        a_E = _decide(proposal, component[alive], now, draws, problem.nominal.dim)
        require_sound(now, a_E, draws.ids, t)
        rows.add(alive, now, a_E)
        if watch is not None:
            watch.decided(now, a_E, outcomes.margin[alive])
        x = problem.step(x, now.a_A, a_E, draws)
        s = rows_of("step", problem.observe(x), draws.n)
        require_finite(s, draws.ids, t)
        same_width(problem, now.s if s_end is None else s_end, s)
        if s_end is not None and s.dtype != s_end.dtype:
            same_precision("the state that a method sees", s_end, s, int(draws.ids[0]))
        s_end = np.empty((n, s.shape[1]), s.dtype) if s_end is None else s_end
        s_end[alive] = s
        ended = judge(problem, x, alive, t, outcomes)
        if follow:
            rows.follow(tape.numbers(np.array([t]), alive)[:, 0], outcomes.seen[alive], x)
        if luck is not None:
            killed = ~ended & (luck[alive] > _survival(proposal, component[alive], s, t + 1))
            outcomes.ended_by_roulette[alive] = killed
            ended |= killed
        if ended.any():
            if ended.all() and not len(waiting):
                alive = alive[:0]
                break
            x, alive = x[~ended], alive[~ended]
    outcomes.unresolved[alive] = True
    outcomes.unresolved[waiting] = True
    margin = episode_margin(problem, outcomes.margin, outcomes.kind > 0)
    margin[outcomes.ended_by_roulette] += np.inf
    return Episodes(
        ids=np.asarray(ids),
        component=component,
        length=outcomes.length,
        kind=outcomes.kind,
        unresolved=outcomes.unresolved,
        ended_by_roulette=outcomes.ended_by_roulette,
        margin=margin,
        s_end=s_end if s_end is not None else problem.observe(x),
        a_0=a_0,
        law_0=law_0,
        **rows.sorted(n),
    )


def situation(problem: Problem, x: Any, draws: Draws, whole: FloatArray | None = None) -> Situation:
    """s, a_A and π_E,gt(· | s, a_A) at the start of a decision; copies, because user code may go on
    working on what it returned."""
    a_A = rows_of("agent", np.array(problem.act(x, draws)), draws.n)
    law = problem.law(x, a_A)
    s = rows_of(f"view '{problem.view}'", np.array(problem.observe(x)), draws.n)
    return Situation(s, a_A, np.full(draws.n, draws.t, np.int64), law, whole)


def episode_margin(problem: Problem, smallest: FloatArray, failed: BoolArray) -> FloatArray:
    """The episode's margin, ≤ 0 if and only if it failed, by construction."""
    if problem.margin is None:
        return np.full(len(smallest), np.nan)
    return np.where(failed, np.minimum(smallest, 0.0), np.maximum(smallest, _ABOVE_ZERO))


def _reset(
    problem: Problem,
    proposal: Mixture,
    component: IntArray,
    draws: Draws,
    watch: EpisodeObserver | None,
) -> tuple[Any, Array, Law | None]:
    if problem.initial is None:
        if watch is not None:
            watch.started(np.zeros((draws.n, 0)), None)
        return problem.reset(draws), np.zeros((draws.n, 0)), None
    law = problem.initial.given(None, None)
    u = draws.stream(NATURE, problem.initial.dim)
    a_0: Array | None = None
    for j, adversary in enumerate(proposal.components):
        mine = component == j
        if mine.any():
            drawn = adversary.sample_initial(law, u[mine])
            a_0 = np.empty((draws.n, drawn.shape[1]), drawn.dtype) if a_0 is None else a_0
            a_0[mine] = drawn
    if a_0 is None:
        raise SimulationError("a batch needs at least one episode")
    if watch is not None:
        watch.started(a_0, law)
    return problem.reset(draws, a_0), a_0, law


def _decide(
    proposal: Mixture, component: IntArray, now: Situation, draws: Draws, dim: int
) -> Array:
    """a_E ~ π_E of each episode's own component."""
    u = draws.stream(NATURE, dim)
    if len(proposal.components) == 1:
        return proposal.components[0].sample(now, u)
    a_E: Array | None = None
    for j, adversary in enumerate(proposal.components):
        mine = np.flatnonzero(component == j)
        if len(mine):
            drawn = adversary.sample(now.take(mine), u[mine])
            a_E = np.empty((draws.n, drawn.shape[1]), drawn.dtype) if a_E is None else a_E
            a_E[mine] = drawn
    if a_E is None:
        raise SimulationError("a batch needs at least one episode")
    return a_E


def _survival(proposal: Mixture, component: IntArray, s: Array, t: int) -> FloatArray:
    """The part of the episodes in states s that may take decision t, by their own component."""
    part = np.ones(len(s))
    for j, adversary in enumerate(proposal.components):
        mine = np.flatnonzero(component == j)
        if len(mine) and (keep := adversary.survival_probability(s[mine], t)) is not None:
            part[mine] = keep
    return part


def judge(
    problem: Problem, x: Any, alive: IntArray, t: int, outcomes: EpisodeOutcomes
) -> BoolArray:
    """Read failure, end and margin in the new states; returns which episodes ended."""
    at_horizon = problem.horizon is not None and t + 1 >= problem.horizon
    kind = failure_kinds(problem, x, len(alive))
    done = np.zeros(len(alive), bool)
    if problem.done is not None:
        done = one_each("done", problem.done(x), len(alive)).astype(bool)
    if problem.judge_at_end:
        kind = np.where(done | at_horizon, kind, 0)
    ended = (kind > 0) | done
    if at_horizon:
        kind = np.where(ended, kind, problem.horizon_kind)
        ended = np.ones(len(alive), bool)
    if problem.margin is not None:
        m = one_each("margin", problem.margin(x), len(alive)).astype(np.float64)
        if np.isnan(m).any():
            raise SimulationError(
                "`margin` returned a value that is not a number: mend it, or leave it out"
            )
        outcomes.seen[alive] = m
        seen = m if not problem.judge_at_end else np.where(ended, m, np.inf)
        outcomes.margin[alive] = np.minimum(outcomes.margin[alive], seen)
    outcomes.kind[alive] = kind
    outcomes.length[alive] += 1
    return np.asarray(ended)
