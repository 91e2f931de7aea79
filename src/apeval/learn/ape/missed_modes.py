"""A search for failure modes that learning passed over.

Everything that is fitted to the same failures misses the same mode, and neither an interval nor
an effective size tells. So, once something was learned, failures are looked for again, without
it: under disturbances so wide that failures of every mode come. Walks lead from these to failures
that π_E,gt would show (`failure_walks`). One that ends where the learned proposal goes so rarely
that a single such failure would weigh as much as the whole estimate is *lost* on it: it belongs to
a mode that the proposal does not know, and a further part is fitted to it. Searches go on while
they find such modes; where the last one still did, the estimate is not to be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from apeval.learn.ape.decision_rows import DecisionRows, join
from apeval.learn.ape.episode_features import EpisodeFeatures
from apeval.learn.ape.failure_walks import FailureWalks, begin_walks
from apeval.learn.ape.gaussian_part import GaussianPart
from apeval.learn.ape.log_sum import log_sum
from apeval.learn.ape.mixture_fit import MixtureFit
from apeval.learn.ape.proposal_part import PartAdversary, ProposalPart
from apeval.learn.ape.widened_proposals import Wider
from apeval.problem.types import BoolArray, FloatArray, IntArray
from apeval.simulate.adversary import only
from apeval.simulate.simulation import Simulation

_SHARE = 0.03  # of the budget, for the steps of all walks
_FEWEST, _MOST = 4, 64  # walks
_STEPS = 8  # of every walk; as many again of those that lead to unknown modes
_SIGMAS = (2.0, 3.0)  # standard deviations under which failures are looked for
_TRIED, _FREQUENT = 16, 0.1  # episodes that try one, and the share of failures that is enough
_PARTS = 16  # at the most, which a search adds to the proposal
_COST = 4  # episodes that may be spent on each walk's first failure

Lost = Callable[[DecisionRows], BoolArray]
"""Which of these failures would weigh as much as the whole estimate, if the proposal met them."""


@dataclass
class ModeSearch:
    """Failures from wide disturbances, then walks."""

    wanted: int
    rng: np.random.Generator
    over: bool = False
    complete: bool = False
    """Whether its walks came to their end, and were judged."""
    found: DecisionRows | None = None
    """Failures of modes that the proposal did not know; some, where there are many."""
    lost: int = 0
    """Walks that ended in them."""
    _walks: FailureWalks | None = None
    _unknown: FailureWalks | None = None
    _sigma: int = 0
    _starts: list[tuple[DecisionRows, IntArray]] = field(default_factory=list)
    _drawn: int = 0

    @staticmethod
    def planned(episodes: float, rng: np.random.Generator) -> ModeSearch:
        """For a budget of so many episodes."""
        walks = int(np.clip(_SHARE * episodes / _STEPS, _FEWEST, _MOST))
        return ModeSearch(walks, rng)

    @property
    def cost(self) -> int:
        """Episodes that it may take, about."""
        return 2 * _TRIED + (_COST + 2 * _STEPS) * self.wanted

    @property
    def walks(self) -> int:
        """Walks that were begun."""
        return 0 if self._walks is None else self._walks.n

    def advance(self, simulation: Simulation, scene: EpisodeFeatures, lost: Lost) -> None:
        """The next batch; at the end it is `over`."""
        if simulation.affordable() < 2 * self.wanted + _TRIED:
            self.over = True
            if self._unknown is not None:  # cut off on their way
                self._keep(self._unknown.rows)
        elif self._walks is None:
            self._find_starts(simulation, scene)
        elif self._walks.moves < _STEPS:
            self._walks.advance(simulation, scene)
            if self._walks.moves == _STEPS:
                unknown = lost(self._walks.rows)
                self.over = self.complete = not unknown.any()
                self._unknown = None if self.over else self._walks.take(unknown)
        elif self._unknown is not None:
            self._unknown.advance(simulation, scene)
            if self._unknown.moves == 2 * _STEPS:
                self.over = self.complete = True
                unknown = lost(self._unknown.rows)
                if unknown.any():
                    self._keep(self._unknown.rows.take(unknown))

    def _keep(self, rows: DecisionRows) -> None:
        self.lost = rows.n
        self.found = rows.take(np.arange(rows.n) < _PARTS)

    def _find_starts(self, simulation: Simulation, scene: EpisodeFeatures) -> None:
        """Failures under the first σ that has them often enough."""
        have = sum(rows.n for rows, _ in self._starts)
        n = _TRIED
        if have:
            rate = have / self._drawn
            n = int(min(np.ceil((self.wanted - have) / rate), _COST * self.wanted - self._drawn))
        n = min(n, simulation.affordable() - 1)
        if n >= 1:
            part = Wider(_SIGMAS[self._sigma])
            batch = simulation.run(only(PartAdversary(part, scene)), n, 0)
            failed = batch.failed & ~batch.unresolved
            self._drawn += n
            if failed.any():
                self._starts.append((scene.rows(batch).take(failed), batch.kind[failed]))
        have = sum(rows.n for rows, _ in self._starts)
        last = self._sigma == len(_SIGMAS) - 1
        if have < _FREQUENT * self._drawn and not last:
            self._sigma, self._drawn, self._starts = self._sigma + 1, 0, []
        elif have >= self.wanted or n < 1 or self._drawn >= _COST * self.wanted or not have:
            self._begin(have)

    def _begin(self, have: int) -> None:
        if not have:
            self.over = True
            return
        rows, kind = self._starts[0]
        for more, others in self._starts[1:]:
            rows, kind = join(rows, more), np.concatenate([kind, others])
        n = min(have, self.wanted)
        self._walks = begin_walks(rows, kind, np.ones(rows.n), n, self.rng)
        self._starts = []


def push_ratio(
    fits: Sequence[tuple[MixtureFit, float]], rows: DecisionRows, rng: np.random.Generator
) -> FloatArray:
    """log q/p of episodes under fits with shares, as if their disturbances were those of π_E,gt but
    for the push.

    A walk keeps some of the wide disturbances that it began with for long, in all directions that
    do not matter, and a part that is a little wider than π_E,gt gets credit for each of them. So
    the covariance of a Gaussian part counts as that of π_E,gt. Of other parts the push is what
    changes sign with the disturbances, and the rest is taken from noise of π_E,gt.
    """
    noise = rng.standard_normal(rows.e.shape), rng.standard_normal(rows.z_0.shape)
    columns = []
    for fit, whole in fits:
        for part, share in zip(fit.parts, fit.shares, strict=True):
            if isinstance(part, GaussianPart):
                ratio = part.push_ratio(rows)
            else:
                odd = _at(part, rows, rows.e, rows.z_0) - _at(part, rows, -rows.e, -rows.z_0)
                even = _at(part, rows, *noise) + _at(part, rows, -noise[0], -noise[1])
                ratio = 0.5 * (odd + even)
            columns.append(ratio + np.log(whole * share))
    return log_sum(np.stack(columns, axis=1))


def _at(part: ProposalPart, rows: DecisionRows, e: FloatArray, z_0: FloatArray) -> FloatArray:
    """log q/p of other disturbances in the same states."""
    return part.log_ratio(replace(rows, e=e, z_0=z_0))
