"""The run's one door to the simulator: hands out episode numbers and keeps the budget."""

from __future__ import annotations

from dataclasses import dataclass, field

from apeval import validate
from apeval.errors import ApevalError, number_of
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.simulate.adversary import Mixture
from apeval.simulate.branches import Branches
from apeval.simulate.episode_source import EpisodeSource, RunStoppedError
from apeval.simulate.episodes import Episodes, join
from apeval.simulate.task import cut

_FIRST_BATCH = 16  # where no episode's length is known yet


@dataclass(frozen=True)
class Budget:
    """What a run may simulate: decisions of nature, or episodes; exactly one is given."""

    steps: int | None = None
    episodes: int | None = None

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.episodes is None):
            raise ApevalError("give a budget: either steps (decisions) or episodes, not both")
        unit = "steps" if self.episodes is None else "episodes"
        object.__setattr__(self, unit, validate.whole(unit, getattr(self, unit), 1))

    def in_words(self) -> str:
        """The budget as a reader says it."""
        if self.steps is not None:
            return number_of(self.steps, "step")
        return number_of(self.episodes or 0, "episode")

    def share(self, fraction: float) -> Budget:
        """A part of the budget (possibly its first unit only).

        Args:
            fraction: From 0 to 1.

        Returns:
            The part, in the same unit.
        """
        if self.steps is not None:
            return Budget(steps=max(1, int(self.steps * fraction)))
        return Budget(episodes=max(1, int((self.episodes or 0) * fraction)))


@dataclass
class Simulation:
    """Simulates within a budget, and never outside it."""

    problem: Problem
    key: IntArray
    budget: Budget
    steps: int = 0
    episodes: int = 0
    failures: int = 0
    longest_seen: int = 0
    source: EpisodeSource = field(default=None, repr=False)  # type: ignore[assignment]
    """Where the episodes come from; by default this process simulates them."""
    whole: Simulation | None = field(default=None, repr=False)
    """The simulation that this is a part of."""

    def __post_init__(self) -> None:
        if self.source is None:
            self.source = EpisodeSource(self.problem, self.key)

    @property
    def steps_left(self) -> int | None:
        """Decisions left; None where the budget counts episodes."""
        return None if self.budget.steps is None else self.budget.steps - self.steps

    @property
    def episodes_left(self) -> int | None:
        """Episodes left; None where the budget counts decisions."""
        return None if self.budget.episodes is None else self.budget.episodes - self.episodes

    def affordable(self) -> int:
        """How many episodes can start now, so that all of them can end within the budget."""
        if self.episodes_left is not None:
            return self.episodes_left
        left = self.steps_left or 0
        if self.problem.horizon is not None:
            return left // self.most_decisions
        if self.longest_seen == 0:
            return min(_FIRST_BATCH, left // (1 + self._first))
        return left // min(self.most_decisions, 2 * self.longest_seen)

    def surely_affordable(self, under_way: int) -> int:
        """How many episodes can start beside those under way, however long these take.

        Args:
            under_way: Episodes that have not come back.

        Returns:
            A number of episodes.
        """
        if self.episodes_left is not None:
            return self.episodes_left - under_way
        return (self.steps_left or 0) // self.most_decisions - under_way

    @property
    def most_decisions(self) -> int:
        """What an episode may take of the budget at the most."""
        return self.problem.longest + self._first

    @property
    def _first(self) -> int:
        """A controlled initial state is a decision of its own."""
        return int(self.problem.initial is not None)

    def begin_stage(self) -> None:
        """Episode lengths seen so far say nothing of a new proposal's."""
        self.longest_seen = 0

    def part(self, budget: Budget) -> Simulation:
        """A part with a budget of its own; what it simulates is booked here as well.

        Args:
            budget: What the part may spend.

        Returns:
            The part.
        """
        return Simulation(self.problem, self.key, budget, source=self.source, whole=self)

    def run(
        self,
        proposal: Mixture,
        n: int,
        position: int,
        branches: Branches | None = None,
        follow: bool = False,
        whole: bool = False,
    ) -> Episodes:
        """Simulate the next n episodes; they stand at `position` … of their stage. They may be
        `branches` of others; with `follow` others may branch off them. As a `whole` they come back
        although somebody asked to stop.

        Args:
            proposal: Who draws the disturbances.
            n: How many episodes.
            position: The place of the first one in its stage.
            branches: From which episodes, and from which decision on, they branch off.
            follow: Whether others may branch off them later.
            whole: Whether they come back although somebody asked to stop.

        Returns:
            The episodes in their order, counted in the budget.
        """
        if n < 1:
            raise ApevalError("a batch needs at least one episode")
        total = self.steps_left
        copied = 0 if branches is None else int(branches.copied.sum())
        if total is not None and n * self.most_decisions - copied <= total:
            total = None  # it cannot be reached
        first, size = self.next_id, self.problem.chunk
        tasks = cut(proposal, first, position, n, size, total, branches, follow)
        blocks = []
        for block in self.source.stream(tasks, whole):
            self.book(block, proposal)
            blocks.append(block)
        return join(blocks)

    def book(self, done: Episodes, proposal: Mixture) -> None:
        """Book episodes that came back from the proposal.

        Args:
            done: The episodes.
            proposal: Who drew them.
        """
        self.count(done.steps, done.n, int(done.failed.sum()), int(done.length.max()))

    def pause(self) -> None:
        """Where a learner that simulates by itself can be stopped."""
        if self.source.ends(self.next_id, 1):
            raise RunStoppedError

    @property
    def next_id(self) -> int:
        """The number of the episode that comes next."""
        return self.episodes if self.whole is None else self.whole.next_id

    def count(self, steps: int, episodes: int, failures: int, longest: int) -> None:
        """Book what was simulated.

        Args:
            steps: Decisions.
            episodes: Episodes.
            failures: Those of them that failed.
            longest: Decisions of the longest one.
        """
        self.steps += steps
        self.episodes += episodes
        self.failures += failures
        self.longest_seen = max(self.longest_seen, longest)
        if self.whole is not None:
            self.whole.count(steps, episodes, failures, longest)
