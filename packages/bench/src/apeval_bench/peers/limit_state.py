"""A problem as structural reliability sees it: one function from R^n to a margin."""

from __future__ import annotations

import numpy as np

from apeval.errors import ApevalError
from apeval.learn.whitened import to_action
from apeval.problem.draws import Draws, make_key
from apeval.problem.problem import Problem
from apeval.problem.types import BoolArray, FloatArray
from apeval.simulate.answer_checks import failure_kinds
from apeval.simulate.rollout import episode_margin, situation

_TRIED = 32


class LimitState:
    """g(u) ≤ 0 if and only if the episode with the whitened disturbances u fails; u holds those
    of a controlled start first, then d_E per decision. Counts its calls."""

    def __init__(self, problem: Problem) -> None:
        if problem.horizon is None or problem.margin is None:
            raise ApevalError("a limit state needs a horizon and a margin")
        self.problem = problem
        self.dim_0 = 0 if problem.initial is None else problem.initial.dim
        self.dim = self.dim_0 + problem.horizon * problem.nominal.dim
        self.episodes = 0
        self.steps = 0
        self.failures = 0
        self._refuse_other_chance()

    def __call__(self, u: FloatArray) -> FloatArray:
        """The margins of n episodes, (n,)."""
        g = self._margins(np.asarray(u, np.float64), 0)
        self.episodes += len(g)
        self.failures += int((g <= 0.0).sum())
        return g

    def restart(self) -> None:
        """Count from zero."""
        self.episodes = self.steps = self.failures = 0

    def _margins(self, u: FloatArray, key: int) -> FloatArray:
        parts = [self._chunk(part, key) for part in _split(u, self.problem.chunk)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _chunk(self, u: FloatArray, key: int) -> FloatArray:
        problem, n, d = self.problem, len(u), self.problem.nominal.dim
        draws = Draws(make_key(key), np.arange(n))
        if problem.initial is None:
            x = problem.reset(draws)
        else:
            law = problem.initial.given(None, None)
            x = problem.reset(draws, to_action(law, u[:, : self.dim_0]))
        smallest, failed, alive = np.full(n, np.inf), np.zeros(n, bool), np.arange(n)
        for t in range(problem.longest):
            self.steps += len(alive)
            now = situation(problem, x, Draws(draws.key, draws.ids[alive], t))
            first = self.dim_0 + t * d
            a_E = to_action(now.law, u[alive, first : first + d])
            x = problem.step(x, now.a_A, a_E, Draws(draws.key, draws.ids[alive], t))
            ended, kind, margin = self._judge(x, len(alive), t)
            smallest[alive] = np.minimum(smallest[alive], margin)
            failed[alive] = kind
            if ended.all():
                break
            x, alive = x[~ended], alive[~ended]
        return episode_margin(problem, smallest, failed)

    def _judge(self, x: object, n: int, t: int) -> tuple[BoolArray, BoolArray, FloatArray]:
        """Which episodes ended, which failed, and the margins that count."""
        problem = self.problem
        failed = failure_kinds(problem, x, n) > 0
        done = np.zeros(n, bool) if problem.done is None else np.asarray(problem.done(x), bool)
        last = t + 1 == problem.longest
        if problem.judge_at_end:
            failed &= done | last
        ended = failed | done
        if last:
            failed |= ~ended & (problem.horizon_kind > 0)
            ended = np.ones(n, bool)
        margin = np.asarray(problem.margin(x), np.float64)  # type: ignore[misc]
        counts = ended if problem.judge_at_end else np.ones(n, bool)
        return ended, failed, np.where(counts, margin, np.inf)

    def _refuse_other_chance(self) -> None:
        u = np.random.default_rng(0).normal(size=(_TRIED, self.dim))
        if not np.array_equal(self._margins(u, 0), self._margins(u, 1)):
            raise ApevalError(
                f"{self.problem.name or 'the problem'} has chance that nature does not control: "
                "no limit state describes it"
            )


def _split(u: FloatArray, size: int) -> list[FloatArray]:
    return [u[k : k + size] for k in range(0, len(u), size)]
