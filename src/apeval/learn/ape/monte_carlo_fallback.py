"""The fallback to plain Monte Carlo, where nothing learned does better.

The disturbance may have little influence on failures that are not rare. What is learned from them
is then worth nothing, and every episode drawn from it is lost. An episode of π_E,gt is never lost:
it counts as one of Monte Carlo would, and teaches as much.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from apeval.learn.ape.proposal_choice import ProposalChoice

_SHOWN = 5.0  # failures that the budget would show to Monte Carlo, from which counting is a way
_SEEN = 2  # failures of π_E,gt that are no accident
_MOVED = 1.5  # times as often as π_E,gt a fit must meet the level that it is for
_LEVELS, _HIGH = 3, 0.05  # fits in a row that did not, and how likely the level must still be
_JUDGES = 2.0  # effective failures that can tell what a fit is worth, where π_E,gt showed none
_PACE, _TIMES_OVER = 3, 2.0  # fits that tell how fast levels fall; how far off is out of reach
_TRIALS = 1  # fits that may still try themselves although Monte Carlo seems better
_SETTLED, _ENOUGH = 6, 10.0  # fits in a row that prefer Monte Carlo; failures it must show then


@dataclass
class MonteCarloFallback:
    """What speaks for Monte Carlo so far."""

    seen: int = 0
    """Failures among episodes of π_E,gt itself."""
    shows: bool = False
    """Whether Monte Carlo would show some failures with the whole budget."""
    aimed_at: float = 1.0
    """Probability of the level that the last fit was for."""
    unmoved: int = 0
    """Fits in a row that hardly met their level more often than π_E,gt would."""
    stuck: bool = False
    """Whether fit after fit comes hardly nearer to failures than π_E,gt does."""
    far: bool = False
    """Whether failures are out of reach at the pace at which levels fall."""
    given_up: bool = False
    """Whether learning had its time and brought nothing."""
    levels: list[float] = field(default_factory=list)
    """Of the margin, that fits were for before any failure came."""
    told: bool = False
    """Whether the last fit was judged by failures that can tell."""
    preferred: int = 0
    """Fits in a row that were worth less than π_E,gt."""

    def come_down(self, met: float, probability: float) -> None:
        """How much of the last batch met the level that it was fitted to, and the probability of
        the level that the next fit is for; 0 at failures."""
        if self.aimed_at < 1.0 and not self.stuck:  # once stuck, π_E,gt draws the batches
            unmoved = met < _MOVED * self.aimed_at
            self.unmoved = self.unmoved + 1 if unmoved else 0
        self.aimed_at = probability
        self.stuck = self.unmoved >= _LEVELS and probability >= _HIGH

    def fall(self, level: float, fits: float) -> None:
        """The level of the next fit, no failure having come yet, where so many fits are still to
        be had: at their pace, failures may be out of reach."""
        self.levels.append(level)
        if len(self.levels) > _PACE and not self.far:
            pace = (self.levels[-1 - _PACE] - level) / _PACE
            self.far = level > _TIMES_OVER * pace * fits

    def expect(self, failures: float) -> None:
        """How many failures Monte Carlo would show with the whole budget."""
        self.shows = failures >= _SHOWN

    def hear(self, choice: ProposalChoice | None, failures: float) -> None:
        """What a new fit is worth, to so many effective failures. A single one of exploration,
        which weighs more than all others together, knows neither that nor how rare failures are."""
        self.told = failures >= _JUDGES or self.seen > 0
        self.preferred = self.preferred + 1 if self.prefers(choice) else 0

    def prefers(self, choice: ProposalChoice | None) -> bool:
        """Whether nothing learned seems worth sampling from, to failures that can tell."""
        return self.given_up or (self.told and choice is not None and choice.monte_carlo)

    @property
    def serves(self) -> bool:
        """Whether failures need not be led to: they have come, and will come again."""
        return self.shows and self.seen >= _SEEN

    def goes_on(self, choice: ProposalChoice | None) -> bool:
        """Whether the next batch is of π_E,gt alone."""
        if self.given_up:
            return True
        if choice is None:
            return self.serves or self.stuck or self.far
        return self.shows and self.preferred > _TRIALS

    def settles(self, choice: ProposalChoice | None, left: float) -> bool:
        """Whether fit after fit says that nothing beats Monte Carlo, and the episodes left will
        show failures enough that way."""
        if choice is None or self.preferred < _SETTLED:
            return False
        return left / (1.0 + choice.variance) >= _ENOUGH
