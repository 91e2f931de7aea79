"""Where failures come by themselves: plain Monte Carlo counts them, and nothing may do worse.

Nature may have little or no say in failures that are not rare. What is learned from them is then
worth nothing, and every episode drawn from it is lost. An episode of π_E,gt is never lost: it
counts as one of Monte Carlo would, and teaches as much.
"""

from __future__ import annotations

from dataclasses import dataclass

from apeval.learn.ape.relax import Choice

_SHOWN = 5.0  # failures that the budget would show to Monte Carlo, from which counting is a way
_SEEN = 2  # failures of π_E,gt that are no accident
_LEVELS, _HIGH = 4, 0.05  # fits after which a level should no longer be as likely as this
_TRIALS = 1  # fits that may still try themselves although Monte Carlo seems better
_SETTLED, _ENOUGH = 6, 10.0  # fits in a row that prefer Monte Carlo; failures it must show then


@dataclass
class Counting:
    """What speaks for Monte Carlo so far."""

    seen: int = 0
    """Failures among episodes of π_E,gt itself."""
    shows: bool = False
    """Whether Monte Carlo would show some failures with the whole budget."""
    levels: int = 0
    """Fits on the way to failures."""
    stuck: bool = False
    """Whether these fits do not bring the margin down: nature hardly moves it."""
    preferred: int = 0
    """Fits in a row that were worth less than π_E,gt."""

    def come_down(self, probability: float) -> None:
        """The probability of the level that a fit has reached on its way to failures; 0: there."""
        self.levels += 1
        self.stuck = self.levels >= _LEVELS and probability >= _HIGH

    def expect(self, failures: float) -> None:
        """How many failures Monte Carlo would show with the whole budget."""
        self.shows = failures >= _SHOWN

    def hear(self, choice: Choice | None) -> None:
        """What a new fit is worth."""
        preferred = choice is not None and choice.monte_carlo
        self.preferred = self.preferred + 1 if preferred else 0

    @property
    def serves(self) -> bool:
        """Whether failures need not be led to: they have come, and will come again."""
        return self.shows and self.seen >= _SEEN

    def goes_on(self, choice: Choice | None) -> bool:
        """Whether the next batch is of π_E,gt alone."""
        if choice is None:
            return self.serves or self.stuck
        return self.shows and self.preferred > _TRIALS

    def settles(self, choice: Choice | None, left: float) -> bool:
        """Whether fit after fit says that nothing beats Monte Carlo, and the episodes left will
        show failures enough that way."""
        if choice is None or self.preferred < _SETTLED:
            return False
        return left / (1.0 + choice.variance) >= _ENOUGH
