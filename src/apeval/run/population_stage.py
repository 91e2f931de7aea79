"""A stage of populations: episodes that branch off each other, reduced to one weighted sample."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from apeval.errors import number_of
from apeval.estimate.genealogy import Genealogy
from apeval.estimate.sample import Sample, join
from apeval.learn.method import PopulationPlan
from apeval.learn.population import Forecast, Population
from apeval.problem.types import FloatArray, IntArray
from apeval.remedies import Note
from apeval.run.reduction import reduce
from apeval.simulate.adversary import Mixture
from apeval.simulate.episode_source import RunStoppedError
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Simulation

_USED = 0.95  # of what is left, by plan: what a population costs is not known exactly
_FEWEST = 2  # particles


@dataclass
class _CountedPopulation:
    """A population with its share of the estimate, fixed before it was drawn."""

    population: Population
    share: float
    parts: list[Sample] = field(default_factory=list)
    ids: list[IntArray] = field(default_factory=list)
    copied: list[IntArray] = field(default_factory=list)

    def add(self, new: Episodes, proposal: Mixture) -> None:
        """A round's episodes; their weights are known when the population is over."""
        self.parts.append(reduce(new, proposal))
        self.ids.append(new.ids)
        self.copied.append(np.zeros(new.n, np.int64) if new.trace is None else new.trace.copied)

    @property
    def n(self) -> int:
        return sum(part.n for part in self.parts)

    def genealogy(self, number: int) -> Genealogy:
        """Who descends from whom."""
        it = self.population
        return Genealogy(
            np.full(self.n, number),
            it.family,
            np.asarray(it.family == np.concatenate(self.ids)),
            it.log_pairs,
            np.concatenate(self.copied),
        )


class PopulationStage:
    """Populations one after the other, until the budget is spent.

    The estimate is Σ λ_b v̂_b with Σ λ_b = 1. Size and share of a population are functions of what
    came before it, and so is the round at which the budget ends it: the sum has the expectation v
    (`Population` has the argument for each v̂_b). Where a target may end the stage, the number of
    populations is not known before, and each counts by its roots.
    """

    def __init__(
        self, simulation: Simulation, proposal: Mixture, plan: PopulationPlan, open_end: bool
    ) -> None:
        self.simulation, self.proposal, self.plan = simulation, proposal, plan
        self.open_end = open_end
        """Whether a target may end the stage."""
        self.position = 0
        """Episodes that have come back."""
        self.whole = 0
        """Those whose population is over: they count."""
        self.stopped = False
        """Whether it ended because somebody asked."""
        self._done: list[_CountedPopulation] = []
        self._now: _CountedPopulation | None = None
        self._rest = 1.0
        self._last = False

    def next(self, until: int | None = None) -> Episodes | None:
        """The next round's episodes; None where the budget is spent, or somebody asked to stop."""
        it = self.simulation
        now = self._now or self._begin()
        if now is None:
            return None
        begun = bool(self._done or now.parts)
        try:
            if begun and it.source.ends(it.next_id, 1):
                raise RunStoppedError
            new = now.population.advance(whole=not begun)
        except RunStoppedError:
            self.stopped = True
            if not self._done:
                now.population.end()  # a valid end, at whatever round
                self._keep(now)
            return None
        now.add(new, self.proposal)
        self.position += new.n
        if now.population.over:
            self._keep(now)
        return new

    def samples(self) -> list[Sample]:
        """The episodes of populations that are over, as one sample; none before the first is."""
        if not self._done:
            return []
        rows = join([part for drawn in self._done for part in drawn.parts])
        if not any(drawn.population.climbed for drawn in self._done):
            return [rows]  # nothing branched: Monte Carlo
        log_w = np.concatenate([drawn.population.log_weight for drawn in self._done])
        log_w = log_w + np.log(np.repeat(self._shares(), [drawn.n for drawn in self._done]))
        descent = Genealogy.join([drawn.genealogy(0) for drawn in self._done])
        log_q = (rows.log_p - log_w - np.log(rows.n))[:, None]
        return [Sample(**{**vars(rows), "log_q": log_q, "genealogy": descent})]

    @property
    def strayed(self) -> bool:
        """Whether a branch did not begin as the episode that it branched off."""
        drawn = self._done if self._now is None else [*self._done, self._now]
        return any(it.population.strayed for it in drawn)

    @property
    def extinct(self) -> int:
        """Populations that came to no failure because all particles were at one level."""
        return sum(it.population.extinct for it in self._done)

    @property
    def populations(self) -> int:
        """Populations that count."""
        return len(self._done)

    def close(self) -> None:
        """Keep what is under way."""
        self.simulation.source.flush()

    def _keep(self, now: _CountedPopulation) -> None:
        self._done.append(now)
        self._now = None
        self.whole = self.position

    def _begin(self) -> _CountedPopulation | None:
        """The next population, its size and its share."""
        it, plan = self.simulation, self.plan
        left = it.steps_left if it.budget.steps is not None else it.episodes_left
        each = self._each()
        total = _USED * (left or 0) / each if each is not None else float(plan.most)
        most = min(float(plan.most), total, float(it.affordable()))
        count = max(1, round(total / max(most, 1.0)))
        if self._last or (self.open_end and self._done and total < _FEWEST):
            return None
        last = count == 1
        n = int(min(total, it.affordable()) if last else most)
        if n < _FEWEST:
            return None
        self._last = last
        share = self._rest / count
        self._rest -= share
        forecast = self._forecast() if last else None
        position = self.position
        population = Population(it, self.proposal, n, position, plan.score, forecast)
        self._now = _CountedPopulation(population, share)
        return self._now

    def _shares(self) -> FloatArray:
        """λ of every population that is over. They add up to 1 unless the stage was stopped, or
        nothing was left for a population that was planned."""
        if self.open_end:
            roots = np.array([drawn.population.n for drawn in self._done], np.float64)
        else:
            roots = np.array([drawn.share for drawn in self._done])
        shares: FloatArray = roots / roots.sum()
        return shares

    def _each(self) -> float | None:
        """What a particle costs, from all that came before."""
        done = [drawn.population for drawn in self._done if np.isfinite(drawn.population.cost)]
        if not done:
            return self.plan.each
        return sum(it.cost for it in done) / sum(it.n for it in done)

    def _forecast(self) -> Forecast | None:
        """What is known of the way to failure, from all that came before."""
        done = [drawn.population for drawn in self._done]
        known = [it for it in done if np.isfinite(it.log_probability)]
        if not known:
            return self.plan.forecast
        n = np.array([float(it.n) for it in known])
        values = np.array([it.log_probability for it in known])
        log_p = float(np.logaddexp.reduce(values + np.log(n / n.sum())))
        return Forecast(log_p, float(np.average([it.per_nat for it in known], weights=n)))


def population_notes(stage: PopulationStage | None) -> list[Note]:
    """What went wrong with branches, and what they left of the budget."""
    if stage is None:
        return []
    notes = [] if stage.stopped or stage.open_end else _left(stage.simulation)
    if stage.strayed:
        from apeval.learn.splitting import strayed

        notes.append(strayed())
    if stage.extinct and stage.populations:
        notes.append(
            Note(
                f"{stage.extinct} of {number_of(stage.populations, 'population')} died out: all "
                "of their particles came to one level, as with a margin that moves in jumps. "
                "They count with 0",
                serious=False,
            )
        )
    return notes


def _left(simulation: Simulation) -> list[Note]:
    """Said where more is left than was planned for."""
    budget = simulation.budget
    unit, whole, left = "decisions", budget.steps, simulation.steps_left
    if whole is None:
        unit, whole, left = "episodes", budget.episodes, simulation.episodes_left
    if not whole or not left or left <= (1.0 - _USED) * whole:
        return []
    return [
        Note(
            f"{left:,} of {whole:,} {unit} of the budget were not used: the last population took "
            "less than was planned for it, and one more would not count",
            serious=False,
        )
    ]
