"""The latest episodes that ran to their end, failing or not: roulette is learned from them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from apeval.learn.ape.decision_rows import DecisionRows, join
from apeval.learn.ape.proposal_part import PartAdversary
from apeval.learn.ape.russian_roulette import RouletteChoice, learn_roulette
from apeval.problem.types import BoolArray, FloatArray
from apeval.simulate.adversary import Mixture
from apeval.simulate.episodes import Episodes

_KEPT = 1_500  # episodes
_LATE = 4  # the rate of failures is that of the last quarter
_FREQUENT = 0.2
_GROWN = 1.25  # times as many failures as at the last time are worth a new fit


@dataclass
class CompleteEpisodes:
    """Complete episodes, each with the number of drawn ones that it stands for."""

    rows: DecisionRows | None = None
    failed: BoolArray = field(default_factory=lambda: np.zeros(0, bool))
    stands_for: FloatArray = field(default_factory=lambda: np.zeros(0))
    seen: int = 0
    """Failures that ever came."""
    _learned_at: int = 0

    def add(self, rows: DecisionRows, batch: Episodes, proposal: Mixture) -> None:
        """Keep the batch's complete episodes; the oldest ones go."""
        complete = ~(batch.ended_by_roulette | batch.unresolved)
        if not complete.any():
            return
        survival = np.ones(batch.n)
        for j, player in enumerate(proposal.components):
            if isinstance(player, PartAdversary) and player.roulette is not None:
                mine = batch.component == j
                survival[mine] = np.exp(player.roulette.log_survival(rows))[mine]
        new = rows.take(complete)
        self.rows = new if self.rows is None else join(self.rows, new)
        self.failed = np.concatenate([self.failed, batch.failed[complete]])
        self.stands_for = np.concatenate([self.stands_for, 1.0 / survival[complete]])
        self.seen += int(batch.failed.sum())
        if self.rows.n > _KEPT:
            late = np.arange(self.rows.n) >= self.rows.n - _KEPT
            self.rows, self.failed = self.rows.take(late), self.failed[late]
            self.stands_for = self.stands_for[late]

    @property
    def length(self) -> float:
        """Decisions of an episode that runs to its end, on average."""
        if self.rows is None:
            return 1.0
        total = self.stands_for * self.rows.lengths()
        return max(1.0, float(total.sum() / self.stands_for.sum()))

    @property
    def frequent(self) -> bool:
        """Whether failures are so frequent by now that there is too little to save."""
        if self.rows is None:
            return False
        late = slice(-self.rows.n // _LATE, None)
        rate = float(self.stands_for[late] @ self.failed[late] / self.stands_for[late].sum())
        return rate > _FREQUENT

    def due(self) -> bool:
        """Whether a new fit is worth its time."""
        return self.seen > _GROWN * self._learned_at

    def failures(self) -> DecisionRows | None:
        """The failing episodes."""
        return None if self.rows is None else self.rows.take(self.failed)

    def learn(self, weight: FloatArray, times: int) -> RouletteChoice | None:
        """Roulette from these episodes; `weight` is what each failure counts in the variance."""
        if self.rows is None:
            return None
        learned = None
        if not self.frequent:
            learned = learn_roulette(self.rows, self.failed, self.stands_for, weight, times)
        self._learned_at = 0 if learned is None else self.seen
        return learned
