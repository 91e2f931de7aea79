"""Where π_E starts if nobody says so: "one possible choice is using large variances".

A pilot draws from π_E,gt. Where it sees too few failures to learn from, a second one draws from
wider versions, and the narrowest that fails often is π̂_E. Both are part of the learning budget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from apeval.remedies import Note
from apeval.simulate.adversary import Adversary, Mixture, Nominal, mixture, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Budget, Simulation

_PILOT = 0.1  # of the learning budget, for each of the two pilots
_ENOUGH = 10  # failures under π_E,gt, from which a learner can start
_OFTEN = 0.1  # failure rate of a start
_UNKNOWN = 100  # decisions of an episode at the most, before any was seen
_DISTANCES = (2.0, 4.0, 6.0, 9.0)  # of a whole episode's disturbances, as `ape` widens


@dataclass(frozen=True)
class Trial:
    """Pilot episodes at one scale."""

    scale: float
    """Standard deviation of the disturbance, in nominal ones."""
    episodes: int
    failures: int


@dataclass(frozen=True)
class WidenedStart:
    """The start that a pilot found, with what the pilot drew."""

    scale: float
    """Standard deviation of π̂_E in nominal ones; 1: π_E,gt itself."""
    trials: tuple[Trial, ...]
    drawn: tuple[tuple[Episodes, Mixture], ...]
    """The pilot's batches and what each was drawn from."""

    @property
    def failures(self) -> int:
        """Failures in all of the pilot."""
        return sum(trial.failures for trial in self.trials)

    def notes(self) -> list[Note]:
        """What the result says of the start; nothing where π_E,gt served."""
        if len(self.trials) < 2:
            return []
        nominal = self.trials[0]
        seen = f"a pilot saw {nominal.failures:,} failures in {nominal.episodes:,} nominal episodes"
        if self.failures == 0:
            n = sum(trial.episodes for trial in self.trials[1:])
            text = (
                f"{seen} and none in {n:,} wider ones, so π_E started {self.scale:.3g} times as "
                "wide as π_E,gt, the widest tried: warm_scale and warm_shift set another start"
            )
            return [Note(text, serious=False, more=1.0)]
        text = (
            f"{seen}, so π_E started {self.scale:.3g} times as wide as π_E,gt (found by a pilot; "
            f"warm_scale={self.scale:.3g} sets it)"
        )
        return [Note(text, serious=False)]


def find_start(
    simulation: Simulation, budget: Budget, widened: Callable[[float], Adversary]
) -> WidenedStart:
    """Draw the pilots, within a tenth of the learning budget each.

    Args:
        simulation: Where episodes come from; it must have simulated nothing yet.
        budget: What learning may spend in all, the pilots included.
        widened: The adversary whose disturbance has so many nominal standard deviations.
    """
    first, length = only(Nominal()), float(min(simulation.problem.longest, _UNKNOWN))
    n = _episodes(simulation, budget, length)
    if n < 1:
        return WidenedStart(1.0, (), ())
    nominal = simulation.run(first, n, 0)
    trials = [Trial(1.0, nominal.n, int(nominal.failed.sum()))]
    length = max(1.0, simulation.steps / simulation.episodes)
    n = _episodes(simulation, budget, length)
    if trials[0].failures >= _ENOUGH or n < len(_DISTANCES):
        return WidenedStart(1.0, tuple(trials), ((nominal, first),))
    components = length * simulation.problem.nominal.dim
    scales = [float(np.sqrt(1.0 + b * b / components)) for b in _DISTANCES]
    wider = mixture([widened(scale) for scale in scales], [1.0 / len(scales)] * len(scales))
    batch = simulation.run(wider, n, 0)
    drawn = np.bincount(batch.component, minlength=len(scales))
    failed = np.bincount(batch.component[batch.failed], minlength=len(scales))
    trials += [Trial(*row) for row in zip(scales, drawn.tolist(), failed.tolist(), strict=True)]
    return WidenedStart(_narrowest(trials), tuple(trials), ((nominal, first), (batch, wider)))


def _episodes(simulation: Simulation, budget: Budget, length: float) -> int:
    """Episodes of one pilot."""
    if budget.episodes is not None:
        wanted = int(_PILOT * budget.episodes)
    else:
        wanted = int(_PILOT * (budget.steps or 0) / length)
    return min(wanted, simulation.affordable() - 1)


def _narrowest(trials: list[Trial]) -> float:
    """The narrowest scale that fails often; else the one that fails most often."""
    for trial in trials:
        if trial.failures >= _OFTEN * trial.episodes > 0:
            return trial.scale
    most = max(trials, key=lambda trial: trial.failures / max(1, trial.episodes))
    return most.scale if most.failures else trials[-1].scale
