"""Is there uncontrolled randomness? Failures are replayed with the same disturbances.

What nature decides alone fails again. Where other things are random too, an episode with the same
disturbances need not. The first failures may lie so far out that they fail again whatever chance
does; where batch after batch of what was learned from failures hardly fails, the question is open
again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.episode_memory import EpisodeMemory
from apeval.learn.whitened import to_action
from apeval.problem.laws import Law
from apeval.problem.types import Array, BoolArray, FloatArray
from apeval.simulate.adversary import Adversary, Mixture, Situation, mixture
from apeval.simulate.simulation import Simulation

PLAYED = 8
"""Episodes that are spent on it, each time."""
_FAILURES = 4  # that are played
_DOUBTFUL, _IN_VAIN = 0.2, 5  # batches in a row below this rate of failures: ask again


@dataclass
class RandomnessTest:
    """Whether there is uncontrolled randomness, and when to test for it (again)."""

    chance: float | None = None
    """How often failures do not fail again with the same disturbances; None before an answer."""
    asked: int = 0
    before: int = 0
    """Batches whose failures were there when it was asked last."""
    _in_vain: int = 0

    def learned_batch(self, rate: float) -> None:
        """How often the episodes of a batch failed whose proposal was learned from failures."""
        self._in_vain = self._in_vain + 1 if rate < _DOUBTFUL else 0

    @property
    def open(self) -> bool:
        """Ever less often, and never after chance has shown itself."""
        return self.asked == 0 or (not self.chance and self._in_vain >= _IN_VAIN * self.asked)

    def answer(self, failed: BoolArray, batches: int) -> None:
        """Which of the replayed episodes failed again, after so many batches."""
        if len(failed):
            self.chance = 1.0 - float(failed.mean())
        self.asked, self.before, self._in_vain = self.asked + 1, batches, 0


@dataclass(frozen=True, eq=False)
class ReplayedEpisode(Adversary):
    """The disturbances of one episode, then π_E,gt: to look at, not to weigh."""

    e: FloatArray
    """As in `DecisionRows`, (T, d)."""
    z_0: FloatArray
    """(d_0,); d_0 = 0: the start is drawn from its nominal law."""

    def sample(self, now: Situation, u: FloatArray) -> Array:
        a_E, known = now.law.sample(u), now.t < len(self.e)
        if now.law.discrete:
            a_E[known] = self.e[now.t[known]]
        elif known.any():
            a_E[known] = to_action(now.law.take(np.flatnonzero(known)), self.e[now.t[known]])
        return a_E

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        raise TypeError("a replayed episode has no density")

    def sample_initial(self, law: Law, u: FloatArray) -> Array:
        if len(self.z_0) == 0:
            return law.sample(u)
        return to_action(law, np.broadcast_to(self.z_0, u.shape))


def run_test(question: RandomnessTest, memory: EpisodeMemory, simulation: Simulation) -> bool:
    """Replay failures that were not there before, if the question is open and there are enough
    of them; says whether it did."""
    n = min(PLAYED, simulation.affordable() - 1)
    fresh = memory.failed & (memory.batch >= question.before)
    if not question.open or memory.rows is None or min(n, int(fresh.sum())) < _FAILURES:
        return False
    proposal = replay_failures(memory.rows.take(fresh), memory.log_weights()[fresh])
    again = simulation.run(proposal, n, 0)
    question.answer(again.failed[~again.unresolved], len(memory.sizes))
    return True


def replay_failures(failures: DecisionRows, log_w: FloatArray) -> Mixture:
    """The failures with the largest weights, alike."""
    chosen = np.sort(np.argsort(-log_w)[:_FAILURES])
    parts = [ReplayedEpisode(failures.e[failures.episode == k], failures.z_0[k]) for k in chosen]
    return mixture(parts, [1.0 / len(parts)] * len(parts))
