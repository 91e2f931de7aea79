"""What a run shows while it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from apeval import validate
from apeval.estimate.interval import Estimate
from apeval.estimate.precision_target import PrecisionTarget, half_width
from apeval.simulate.simulation import Simulation

ESTIMATING = "estimating"
"""The phase of the frozen stage; those of learning are named by the method."""


@dataclass(frozen=True)
class Progress:
    """Where a run stands."""

    phase: str
    """exploring, learning or estimating."""
    done: int
    """What is done so far."""
    total: int
    """Of the budget; with a target error, of what will probably be needed."""
    unit: str
    """Of `done` and `total`: decisions or episodes."""
    steps: int
    """Decisions simulated so far."""
    episodes: int
    """Episodes simulated so far."""
    failures: int
    """Failing episodes so far."""
    batch: tuple[int, int] | None = None
    """Failures and episodes since the last time; None where nothing was simulated."""
    estimate: float | None = None
    """While learning, the learned v(s0), where the method has one."""
    interval: tuple[float, float] | None = None
    """While estimating, the interval so far."""
    ess: float | None = None
    """Effective sample size of the failures."""


Listener = Callable[[Progress], None]


@dataclass
class ProgressReporter:
    """Tells a listener, if there is one, what came since the last time."""

    listener: Listener | None
    simulation: Simulation
    target: PrecisionTarget | None = None
    _start: int = field(init=False, default=0)
    _episodes: int = field(init=False, default=0)
    _failures: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        validate.listener(self.listener)
        self._start = self._done
        self._episodes, self._failures = self.simulation.episodes, self.simulation.failures

    def tell(self, phase: str, value: float | None = None, numbers: Estimate | None = None) -> None:
        """Tell where the run stands."""
        if self.listener is None:
            return
        it = self.simulation
        batch = (it.failures - self._failures, it.episodes - self._episodes)
        self._episodes, self._failures = it.episodes, it.failures
        self.listener(
            Progress(
                phase=phase,
                done=self._done,
                total=self._total(numbers),
                unit="episodes" if it.budget.steps is None else "decisions",
                steps=it.steps,
                episodes=it.episodes,
                failures=it.failures,
                batch=batch if batch[1] else None,
                estimate=value if numbers is None else numbers.value,
                interval=None if numbers is None else numbers.interval,
                ess=None if numbers is None else numbers.ess,
            )
        )

    @property
    def _done(self) -> int:
        it = self.simulation
        return it.episodes if it.budget.steps is None else it.steps

    def _total(self, numbers: Estimate | None) -> int:
        """The budget, or what the target will take: the error falls with the root of the stage."""
        budget = self.simulation.budget
        total = (budget.episodes if budget.steps is None else budget.steps) or 0
        if self.target is None or numbers is None or numbers.value <= 0.0:
            return total
        times = max(1.0, min(half_width(numbers) / self.target.error, 1e100) ** 2)
        return min(total, self._start + int((self._done - self._start) * times))
