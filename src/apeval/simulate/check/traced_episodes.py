"""Episodes for the checks: rolled through the contract, every decision kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from apeval.problem.draws import MIXTURE, NATURE, Draws
from apeval.problem.laws import Law
from apeval.problem.types import Array, BoolArray, FloatArray, IntArray
from apeval.simulate.check.contract import Contract


@dataclass(frozen=True)
class Decision:
    """One decision of the episodes that were still running."""

    ids: IntArray
    s: Array
    a_A: Array
    a_E: Array
    law: Law
    s_next: Array
    kind: IntArray
    """Kinds of failure as `failed` gives them."""
    judged: BoolArray
    """Where event and margin speak of the same state: not before the end with judge_at_end, and
    not where the horizon itself is the failure, which no margin of a state can see."""
    margin: FloatArray | None


@dataclass
class Trace:
    """A batch of episodes."""

    n: int
    decisions: list[Decision] = field(default_factory=list)
    law_0: Law | None = None
    x: Any = None
    running: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Episodes that had not ended at the limit; `x` is their state."""

    @property
    def steps(self) -> int:
        """Decisions in all."""
        return sum(len(d.ids) for d in self.decisions)

    def failures(self, horizon: int | None, horizon_kind: int) -> int:
        """Episodes that failed, at a horizon that is a failure too."""
        last = None if horizon is None or not horizon_kind else horizon - 1
        return sum(
            int(((d.kind > 0) & d.judged).sum()) + (int((~d.judged).sum()) if t == last else 0)
            for t, d in enumerate(self.decisions)
        )

    def episode(self, id: int) -> dict[str, list[Array]]:
        """What happened to one episode, in causal order within a decision."""
        rows = [(d, int(k[0])) for d in self.decisions if len(k := np.flatnonzero(d.ids == id))]
        names = ["s", "a_A", "a_E", "s_next", "kind"]
        names += ["margin"] if rows and rows[0][0].margin is not None else []
        return {name: [np.atleast_1d(getattr(d, name)[k]) for d, k in rows] for name in names}


def walk(
    contract: Contract,
    key: IntArray,
    ids: IntArray,
    limit: int,
    until: float = np.inf,
    stress: bool = False,
    calm: bool = False,
) -> Trace:
    """At most `limit` decisions of the episodes `ids`, or until the clock says `until`. Under
    `stress` each episode's uniforms are pressed towards one side, some a little and some to the
    outermost thousandth: disturbances that the nominal can bring, in episodes that it hardly
    would. `calm` episodes are not disturbed: medians, or likeliest outcomes."""
    problem = contract.problem
    draws = Draws(key, ids)
    push = _Push(draws, problem.nominal.dim) if stress else None
    x, _, law_0 = contract.start(draws, calm)
    trace, alive = Trace(len(ids), law_0=law_0), ids
    s = contract.observe(x, len(alive), "at reset")
    for t in range(min(limit, problem.longest)):
        if t and monotonic() > until:
            break
        draws = Draws(key, alive, t)
        a_A = contract.act(x, draws)
        law = contract.law(x, a_A)
        u = draws.stream(NATURE, problem.nominal.dim)
        u = u if push is None else push(u, np.isin(ids, alive))
        a_E = contract.sample("nominal", law, u, problem.nominal.dim, calm)
        x = contract.step(x, a_A, a_E, draws)
        s_next = contract.observe(x, len(alive), f"at decision {t}")
        kind, done = contract.judge(x, len(alive))
        ended, judged = _ends(contract, kind, done, t)
        margin = contract.margin(x, len(alive))
        trace.decisions.append(Decision(alive, s, a_A, a_E, law, s_next, kind, judged, margin))
        going = ~ended
        alive, s = alive[going], s_next[going]
        if len(alive) == 0:
            return trace
        x = contract.rest(x, going)
    trace.x, trace.running = x, alive
    return trace


def _ends(
    contract: Contract, kind: IntArray, done: BoolArray, t: int
) -> tuple[BoolArray, BoolArray]:
    """Which episodes end here, and where margin and event speak of the same state."""
    problem = contract.problem
    at_horizon = problem.horizon is not None and t + 1 >= problem.horizon
    here = done | at_horizon
    ended: BoolArray = here if problem.judge_at_end else (kind > 0) | here
    own_failure = (kind > 0) | done | (problem.horizon_kind == 0)
    judged = (ended if problem.judge_at_end else np.ones(len(kind), bool)) & (
        own_failure if at_horizon else True
    )
    return ended, judged


class _Push:
    """Presses uniforms to one side, per episode and component."""

    def __init__(self, draws: Draws, dim: int) -> None:
        unit = draws.stream(MIXTURE, dim + 1)
        self.width = 10.0 ** (-3.0 * unit[:, :1])
        self.up = unit[:, 1:] > 0.5

    def __call__(self, u: FloatArray, rows: BoolArray) -> FloatArray:
        width, up = self.width[rows], self.up[rows]
        return np.where(up, 1.0 - width * (1.0 - u), width * u)
