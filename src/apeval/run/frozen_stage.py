"""The frozen stage: episodes from one proposal that no longer changes, and the batches of
learning that count beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from apeval.errors import ApevalError, ProblemError
from apeval.estimate.interval import Estimate, estimate
from apeval.estimate.precision_target import PrecisionTarget
from apeval.estimate.sample import AUTO, Sample, combine, join
from apeval.learn.method import CountedBatch
from apeval.problem.types import IntArray
from apeval.run.failure_log import FailureLog
from apeval.run.progress import ESTIMATING, Listener, ProgressReporter
from apeval.simulate.adversary import Mixture, Nominal
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
        final = replace(join(samples), estimator=self.estimator)
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

    def after(self, n: int, samples: list[Sample], earlier: _Earlier, confidence: float) -> None:
        """Look at the n episodes of the samples, if it is time."""
        if self.target is None or n < self.next:
            return
        failures = sum(int(s.failed.sum()) for s in samples)
        numbers = None
        if self.target.due(failures):
            numbers = estimate(earlier.with_final(samples), confidence)
            self.done += 1
            self.over = self.target.reached(numbers)
        self.next = self.target.next_look(n, failures, numbers)


def run_frozen_stage(
    proposal: Mixture,
    simulation: Simulation,
    confidence: float,
    listener: Listener | None = None,
    target: PrecisionTarget | None = None,
    counted: Sequence[CountedBatch] = (),
    planned: int | None = None,
    estimator: str = AUTO,
) -> FrozenStage:
    """Draw episodes from the frozen proposal until the budget is spent or the target reached.

    Looks stand at numbers of episodes that follow from the episodes themselves, and blocks end
    there: neither who simulates them nor how many do changes when the stage ends. `planned` is the
    number of episodes that the shares of `counted` were set for, where a target may ask for more.
    `estimator` names the interval construction.
    """
    samples: list[Sample] = []
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
    simulation.begin_stage()
    flow = StageBlocks(simulation, proposal)
    while not looks.over:
        start = flow.position
        batch = flow.next(None if target is None else looks.next)
        if batch is None:
            break
        log.add(batch, earlier.n + start)
        ids.append(batch.ids)
        ended_by_roulette += int(batch.ended_by_roulette.sum())
        samples.append(reduce(batch, proposal))
        looks.after(flow.position, samples, earlier, level)
        if listener:
            if shown is None or flow.position >= _FRESH * shown_at:
                shown_at, shown = flow.position, estimate(earlier.with_final(samples), level)
            teller.tell(ESTIMATING, numbers=shown)
    flow.close()
    if not samples:
        raise ApevalError(
            f"the budget leaves no episode for the estimate ({simulation.steps:,} decisions "
            f"used, an episode may need {simulation.problem.longest:,}): raise it"
            + (", or give the problem a horizon" if simulation.problem.horizon is None else "")
        )
    sample = earlier.with_final(samples)
    numbers = estimate(sample, level)
    return FrozenStage(
        sample,
        _named(numbers, confidence),
        log,
        np.concatenate(ids),
        looks.done,
        ended_by_roulette,
        interrupted=not looks.over and flow.stopped,
    )


def reduce(batch: Episodes, proposal: Mixture) -> Sample:
    """What the estimate needs of a batch: densities and outcomes."""
    log_p = batch.log_density(Nominal())
    if np.isnan(log_p).any():
        raise ProblemError(
            "the nominal disturbance has no density where it was drawn: a std must be > 0, low "
            "must be below high, and probabilities must be ≥ 0 and sum to 1 in every state"
        )
    return Sample(
        component=batch.component,
        log_p=log_p,
        log_q=np.stack([batch.log_density(q) for q in proposal.components], axis=1),
        kind=batch.kind,
        unresolved=batch.unresolved,
        length=batch.length,
        margin=batch.margin,
    )


def _named(numbers: Estimate, confidence: float) -> Estimate:
    """With the confidence that the interval has after the stopping, not that of one look."""
    return Estimate(**{**vars(numbers), "confidence": confidence})
