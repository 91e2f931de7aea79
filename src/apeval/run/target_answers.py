"""Answers to what a user asked beside the number: a precision reached, a bound shown."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.estimate.interval import Estimate
from apeval.estimate.precision_target import PrecisionTarget, half_width
from apeval.estimate.sample import Sample
from apeval.estimate.verdict import SHOWN, UNDECIDED, Verdict, judge
from apeval.run.frozen_stage import FrozenStage
from apeval.simulate.simulation import Simulation


@dataclass(frozen=True)
class TargetAnswer:
    """Whether the wanted precision was reached."""

    error: float
    """Wanted: half of the interval's width, relative to the estimate."""
    reached: float | None
    """The same of the interval there is; None without failures."""
    met: bool
    """Whether it was reached."""
    looks: int
    """How often the frozen stage was looked at."""
    budget: int | None
    """When not met: the budget that would reach it; the result's one remedy is at least that."""
    unit: str
    """Of `budget`: steps or episodes."""


@dataclass(frozen=True)
class BelowAnswer:
    """Whether the failure probability is below a bound."""

    below: float
    """The bound in question."""
    verdict: str
    """shown, refuted or undecided."""
    bound: float
    """The one-sided bound, at the run's confidence, that the verdict rests on: the upper one for
    shown and undecided, the lower one for refuted."""
    lower: float
    """One-sided lower bound at the run's confidence."""
    upper: float
    """One-sided upper bound at the run's confidence."""
    budget: int | None
    """When undecided: the budget that would decide if the estimate stays where it is; None where
    it lies too near the bound to say."""
    unit: str
    """Of `budget`: steps or episodes."""


@dataclass(frozen=True)
class Spending:
    """What learning and the frozen stage took, in the budget's unit."""

    learning: int
    frozen: int
    unit: str
    grows: bool
    """Whether learning takes its part of a larger budget too."""

    def times(self, factor: float) -> int:
        """The budget whose frozen stage is `factor` times as long, to two digits up.

        >>> Spending(2_000, 1_000, "steps", grows=False).times(3.0)
        5000
        >>> Spending(2_000, 1_000, "steps", grows=True).times(3.0)
        9000
        """
        factor = min(factor, 1e9)
        size = self.learning * (factor if self.grows else 1.0) + self.frozen * factor
        unit = 10 ** max(0, len(str(int(size))) - 2)
        return int(-(-size // unit) * unit)


def spending(
    simulation: Simulation, frozen: FrozenStage, target: PrecisionTarget | None
) -> Spending:
    """In decisions, or in episodes where the budget counts these. With a target learning does not
    grow with the budget, which is only a limit."""
    grows = target is None
    if simulation.budget.steps is None:
        return Spending(simulation.episodes - frozen.sample.n, frozen.sample.n, "episodes", grows)
    steps = frozen.sample.steps
    return Spending(simulation.steps - steps, steps, "steps", grows)


def answer_target(target: PrecisionTarget, frozen: FrozenStage, spent: Spending) -> TargetAnswer:
    """How far the run came."""
    width = half_width(frozen.estimate)
    met = width <= target.error
    too_wide = min(width / target.error, 1e100)  # whose square is a number still
    known = frozen.estimate.value > 0.0
    return TargetAnswer(
        error=target.error,
        reached=width if known else None,
        met=met,
        looks=frozen.looks,
        budget=None if met or not known else spent.times(1.05 * too_wide**2),
        unit=spent.unit,
    )


def answer_below(
    below: float, sample: Sample, numbers: Estimate, level: float, spent: Spending
) -> BelowAnswer:
    """The verdict; `level` is the confidence of a single look."""
    it: Verdict = judge(sample, numbers, below, level)
    return BelowAnswer(
        below=below,
        verdict=it.verdict,
        bound=it.upper if it.verdict in (SHOWN, UNDECIDED) else it.lower,
        lower=it.lower,
        upper=it.upper,
        budget=None if it.times is None else spent.times(it.times),
        unit=spent.unit,
    )
