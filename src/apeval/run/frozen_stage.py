"""The frozen stage: episodes from one proposal that no longer changes, and the batches of
learning that count beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.estimate.interval import Estimate, estimate
from apeval.estimate.precision_target import PrecisionTarget
from apeval.estimate.sample import AUTO, Sample, combine, join
from apeval.learn.method import CountedBatch, PopulationPlan
from apeval.problem.types import IntArray
from apeval.run.failure_log import FailureLog
from apeval.run.population_stage import PopulationStage
from apeval.run.progress import ESTIMATING, Listener, ProgressReporter
from apeval.run.reduction import reduce
from apeval.simulate.adversary import Mixture
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Simulation
from apeval.simulate.stage_blocks import StageBlocks

_RECORDS_KEPT = 100
_NO_LIMIT = 10**12
_FRESH = 1.05  # growth of the sample after which a watcher gets new numbers


@dataclass(frozen=True)
class FrozenStage:
    """The frozen stage's sample and estimate, and its failures."""

    sample: Sample
    estimate: Estimate
    failures: FailureLog
    ids: IntArray
    """Numbers of the sample's episodes, (n,)."""
    looks: int = 0
    """How often a target was checked."""
    ended_by_roulette: int = 0
    """Episodes of the sample that Russian roulette ended early: they could hardly fail any more."""
    interrupted: bool = False
    """Whether somebody stopped it before its end."""
    populations: PopulationStage | None = None
    """Where episodes branched off each other."""

    @property
    def records(self) -> tuple[Mapping[str, Any], ...]:
        """Replay records of the first failures."""
        return self.failures.as_json(_RECORDS_KEPT)


@dataclass(frozen=True)
class _Earlier:
    """Batches of learning that count, each with its share."""

    stages: tuple[tuple[float, Sample], ...]
    planned: int
    """Frozen episodes beside which these shares were set."""
    estimator: str
    """Of the combined sample."""

    @staticmethod
    def of(counted: Sequence[CountedBatch], planned: int, estimator: str) -> _Earlier:
        stages = tuple((c.share, _as_one(c)) for c in counted)
        return _Earlier(stages, planned, estimator)

    @property
    def n(self) -> int:
        return sum(sample.n for _, sample in self.stages)

    @property
    def starts(self) -> list[int]:
        """Where each batch begins in the combined sample."""
        sizes = [sample.n for _, sample in self.stages]
        return [sum(sizes[:k]) for k in range(len(sizes))]

    def with_final(self, samples: list[Sample]) -> Sample:
        """The combined sample; the frozen stage has what is left of 1. Where a target makes it
        longer than planned, the shares of the early batches shrink in proportion: they would
        else keep their part of the error, and no number of episodes could reach the target."""
        final = replace(
            samples[0] if len(samples) == 1 else join(samples), estimator=self.estimator
        )
        if not self.stages:
            return final
        shrunk = self.planned / final.n if final.n > self.planned else 1.0
        stages = [(share * shrunk, sample) for share, sample in self.stages]
        rest = 1.0 - sum(share for share, _ in stages)
        return combine([*stages, (rest, final)])


def _as_one(counted: CountedBatch) -> Sample:
    """A batch as a sample from its mixture, taken as one component with the shares that the
    components really had: a batch is too small to be a stratum for each of them."""
    sample = reduce(counted.episodes, counted.proposal)
    together = sample.log_p - sample.log_weights
    return replace(sample, component=np.zeros(sample.n, np.int64), log_q=together[:, None])


@dataclass
class _Looks:
    """When the stage is looked at, and whether it may end."""

    target: PrecisionTarget | None
    next: int = 0
    done: int = 0
    over: bool = False

    def after(
        self, n: int, drawn: Callable[[], list[Sample]], earlier: _Earlier, confidence: float
    ) -> None:
        """Look at the n episodes of the samples, if it is time."""
        if self.target is None or n < self.next:
            return
        samples = drawn()
        failures = sum(int(s.failed.sum()) for s in samples)
        numbers = None
        if self.target.due(failures):
            numbers = estimate(earlier.with_final(samples), confidence)
            self.done += 1
            self.over = self.target.reached(numbers)
        self.next = self.target.next_look(n, failures, numbers)


class _Blocks(StageBlocks):
    """Blocks of independent episodes, with what the estimate needs of each."""

    def __init__(self, simulation: Simulation, proposal: Mixture) -> None:
        super().__init__(simulation, proposal)
        self._samples: list[Sample] = []

    def next(self, until: int | None = None) -> Episodes | None:
        batch = super().next(until)
        if batch is not None:
            self._samples.append(reduce(batch, self.proposal))
        return batch

    @property
    def whole(self) -> int:
        """Episodes that count."""
        return self.position

    def samples(self) -> list[Sample]:
        """What has come back."""
        return self._samples


def run_frozen_stage(
    proposal: Mixture,
    simulation: Simulation,
    confidence: float,
    listener: Listener | None = None,
    target: PrecisionTarget | None = None,
    counted: Sequence[CountedBatch] = (),
    planned: int | None = None,
    estimator: str = AUTO,
    populations: PopulationPlan | None = None,
) -> FrozenStage:
    """Draw episodes from the frozen proposal until the budget is spent or the target reached.

    Looks stand at numbers of episodes that follow from the episodes themselves, and blocks end
    there: neither who simulates them nor how many do changes when the stage ends. `planned` is the
    number of episodes that the shares of `counted` were set for, where a target may ask for more.
    `estimator` names the interval construction. With `populations` episodes branch off each other.
    """
    ids = [c.episodes.ids for c in counted]
    ended_by_roulette = sum(int(c.episodes.ended_by_roulette.sum()) for c in counted)
    log = FailureLog(simulation.problem, simulation.key)
    most = _NO_LIMIT if planned is None else max(planned, 1)
    earlier = _Earlier.of(counted, most, estimator)
    for c, start in zip(counted, earlier.starts, strict=True):
        log.add(c.episodes, start)
    level = confidence if target is None else target.confidence(confidence)
    looks = _Looks(target, 0 if target is None else target.next_look(0, 0, None))
    shown_at, shown = 0.0, None
    teller = ProgressReporter(listener, simulation, target)
    teller.tell(ESTIMATING)
    if populations is None:  # whose episodes are as long as those of the pilot
        simulation.begin_stage()
    flow: _Blocks | PopulationStage = _Blocks(simulation, proposal)
    if populations is not None:
        flow = PopulationStage(simulation, proposal, populations, open_end=target is not None)
    looked = 0
    while not looks.over:
        start = flow.position
        batch = flow.next(None if target is None else looks.next)
        if batch is None:
            break
        log.add(batch, earlier.n + start)
        ids.append(batch.ids)
        ended_by_roulette += int(batch.ended_by_roulette.sum())
        if flow.whole > looked:
            looked = flow.whole
            looks.after(looked, flow.samples, earlier, level)
        if listener:
            if flow.whole and (shown is None or flow.whole >= _FRESH * shown_at):
                shown_at, shown = flow.whole, estimate(earlier.with_final(flow.samples()), level)
            teller.tell(ESTIMATING, numbers=shown)
    flow.close()
    samples = flow.samples()
    if not samples:
        raise ApevalError(
            f"the budget leaves no episode for the estimate ({simulation.steps:,} decisions "
            f"used, an episode may need {simulation.problem.longest:,}): raise it"
            + (", or give the problem a horizon" if simulation.problem.horizon is None else "")
        )
    sample = earlier.with_final(samples)
    numbers = estimate(sample, level)
    if isinstance(flow, PopulationStage):
        log.first(flow.whole)
    return FrozenStage(
        sample,
        _named(numbers, confidence),
        log,
        np.concatenate(ids)[: sample.n],
        looks.done,
        ended_by_roulette,
        interrupted=not looks.over and flow.stopped,
        populations=flow if isinstance(flow, PopulationStage) else None,
    )


def _named(numbers: Estimate, confidence: float) -> Estimate:
    """With the confidence that the interval has after the stopping, not that of one look."""
    return Estimate(**{**vars(numbers), "confidence": confidence})
