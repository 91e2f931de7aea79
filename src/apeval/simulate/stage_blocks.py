"""A stage's blocks, as many under way as can be without changing what is simulated."""

from __future__ import annotations

from apeval.simulate.adversary import Mixture
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Simulation
from apeval.simulate.task import Task


class StageBlocks:
    """Blocks of at most `problem.chunk` episodes from one proposal, until the budget is spent.

    How large a block is depends on the decisions that the blocks before it took. One is started
    before these are known only if it would have the same size whatever they take.
    """

    def __init__(self, simulation: Simulation, proposal: Mixture) -> None:
        self.simulation, self.proposal = simulation, proposal
        self.position = 0
        """Episodes of the stage that have come back."""
        self._ordered = 0

    def next(self, until: int | None = None) -> Episodes | None:
        """The next block, none of it beyond position `until`; None where the budget is spent, or
        somebody asked to stop."""
        source = self.simulation.source
        while not source.full and (n := self._size(until)) > 0:
            first = self.simulation.episodes + source.under_way
            total = None if source.under_way else self._total(n)
            source.order(Task(self.proposal, first, self._ordered, n, total))
            self._ordered += n
        if not source.under_way:
            source.flush()
            return None
        block = source.collect()
        self.simulation.book(block, self.proposal)
        self.position += block.n
        return block

    @property
    def stopped(self) -> bool:
        """Whether it ended because somebody asked, with some of the budget left."""
        return self.simulation.source.stop.asked and self.simulation.affordable() > 0

    def close(self) -> None:
        """Keep what is under way."""
        while self.simulation.source.under_way:
            self.simulation.source.collect()
        self.simulation.source.flush()

    def _size(self, until: int | None) -> int:
        """Episodes of the block that may start now; 0 where it has to wait, none is left, or
        somebody asked to stop: but not before the first."""
        n, source = self._possible(until), self.simulation.source
        first = self.simulation.episodes + source.under_way
        return 0 if n > 0 and self._ordered and source.ends(first, n) else n

    def _possible(self, until: int | None) -> int:
        it = self.simulation
        wanted = it.problem.chunk
        if until is not None:
            wanted = min(wanted, until - self._ordered)
        if not it.source.under_way:
            return min(wanted, it.affordable())
        surely = it.surely_affordable(it.source.under_way)
        if it.budget.episodes is not None:
            return min(wanted, surely)
        return wanted if surely >= wanted else 0

    def _total(self, n: int) -> int | None:
        """Decisions that the block may make, where it might make too many."""
        left = self.simulation.steps_left
        return None if left is None or n * self.simulation.most_decisions <= left else left
