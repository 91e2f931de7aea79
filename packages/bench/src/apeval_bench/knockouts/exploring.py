"""Knock-outs of what is seen: pilot, widened proposals, levels, and how the past is weighted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from apeval.problem.types import FloatArray, IntArray
from apeval_bench.knockouts.problems import (
    CHANCE,
    CONTINUOUS,
    DISCRETE,
    LARGE,
    LONG,
    MANY,
    MARGIN,
    MODES,
    NOT_RARE,
    PLATEAU,
    SEQUENCE,
)
from apeval_bench.knockouts.replacing import KnockOut, put, use

_NEVER = 10**9


def _first_rungs(was: Callable[..., Any]) -> Callable[..., Any]:
    """Only the rungs that widen every decision on its own."""

    def ladder(d: int, decisions: float) -> tuple[list[Any], FloatArray]:
        rungs, _ = was(d, decisions)
        kept = [rung for rung in rungs if not rung.persistent]
        return kept, np.full(len(kept), 1.0 / len(kept))

    return ladder


def _last_rungs(was: Callable[..., Any]) -> Callable[..., Any]:
    """π_E,gt and the rungs that push all decisions the same way."""

    def ladder(d: int, decisions: float) -> tuple[list[Any], FloatArray]:
        rungs, _ = was(d, decisions)
        kept = rungs[:1] + [rung for rung in rungs if rung.persistent]
        return kept, np.full(len(kept), 1.0 / len(kept))

    return ladder


def _fixed_rungs(was: Callable[..., Any]) -> Callable[..., Any]:
    """Scales that do not depend on the number of decisions."""

    def ladder(d: int, decisions: float) -> tuple[list[Any], FloatArray]:
        rungs, _ = was(d, decisions)
        wider, pushing = ([r for r in rungs if r.persistent is p] for p in (False, True))
        fixed = [type(wider[0])(sigma) for sigma in (1.0, 1.5, 2.0, 3.0)]
        pushes = [type(pushing[0])(tau) for tau in (0.5, 1.0, 2.0)]
        halves = [0.5 / len(fixed)] * len(fixed) + [0.5 / len(pushes)] * len(pushes)
        return fixed + pushes, np.array(halves)

    return ladder


def _untilted(was: Callable[..., Any]) -> Callable[..., Any]:
    """Outcomes made alike, none preferred."""

    def outcome_ladder() -> tuple[list[Any], FloatArray]:
        rungs, _ = was()
        kept = [rung for rung in rungs if rung.tilt == 0.0]
        return kept, np.full(len(kept), 1.0 / len(kept))

    return outcome_ladder


def _whatever_failed(was: Callable[..., Any]) -> Callable[..., Any]:
    def exploration_size(simulation: Any, config: Any, failures: int) -> Any:
        return was(simulation, config, 0)

    return exploration_size


def _without_jump(was: Callable[..., Any]) -> Callable[..., Any]:
    """The quantile alone; it may stay on a plateau."""

    def _lower_level(self: Any) -> None:
        from apeval.learn.ape import learner

        if self.problem.margin is None or self.memory.failed.sum() >= self._enough:
            self.level = 0.0
            return
        quantile = np.quantile(self._last_margin, learner._LEVEL, method="lower")
        self.level = min(self.level, max(0.0, float(quantile)))

    return _lower_level


def _after_five(was: Callable[..., Any]) -> Callable[..., Any]:
    def _lower_level(self: Any) -> None:
        if self.memory.failed.sum() >= 5:
            self.level = 0.0
        else:
            was(self)

    return _lower_level


def _widened_alone(was: Callable[..., Any]) -> Callable[..., Any]:
    def _explorers(self: Any, learning: bool) -> dict[int, float]:
        return {self._watching: self.config.defensive_share}

    return _explorers


def _no_search(was: Callable[..., Any]) -> Callable[..., Any]:
    def _can_miss_modes(self: Any, finished: bool) -> bool:
        return False

    return _can_miss_modes


def _one_group(was: Callable[..., Any]) -> Callable[..., Any]:
    def by_kind(kind: IntArray) -> IntArray:
        return np.zeros(len(kind), np.int64)

    return by_kind


def _untempered(was: Callable[..., Any]) -> Callable[..., Any]:
    def tempered(log_w: FloatArray, least: float) -> tuple[FloatArray, float]:
        return np.exp(log_w - log_w.max()), 1.0

    return tempered


def _by_own_batch(was: Callable[..., Any]) -> Callable[..., Any]:
    """Each episode weighted by the proposal that drew it, not by the mixture of all."""

    def log_weights(self: Any) -> FloatArray:
        total = np.zeros(len(self.failed))
        for b, proposal in enumerate(self.proposals):
            mine = self.batch == b
            if mine.any():
                columns = [self.ratios[k][mine] + np.log(s) for k, s in proposal.items()]
                total[mine] = -np.logaddexp.reduce(np.stack(columns), axis=0)
        return total

    return log_weights


def _full(was: Callable[..., Any]) -> Callable[..., Any]:
    def batch_size(simulation: Any, half: bool) -> Any:
        return was(simulation, False)

    return batch_size


KNOCK_OUTS = (
    KnockOut(
        "pilot", "a pilot of 5 % from π_E,gt", "1 %", settings={"pilot_share": 0.01}
    ),
    KnockOut(
        "exploration", "12 % of the budget explores", "2 %", settings={"explore_share": 0.02}
    ),
    KnockOut(
        "more exploration", "12 % of the budget explores", "30 %",
        settings={"explore_share": 0.3}, kind="other value",
    ),
    KnockOut(
        "common pushes", "half of the widened proposals push all decisions one way",
        "all widen every decision on its own",
        (use("learner.widened_proposals", _first_rungs, "wider ones only"),),
        needs=frozenset({CONTINUOUS}),
    ),
    KnockOut(
        "widening", "half of the widened proposals widen every decision on its own",
        "all push all decisions one way",
        (use("learner.widened_proposals", _last_rungs, "pushes only"),),
        needs=frozenset({CONTINUOUS}),
    ),
    KnockOut(
        "scaled widening", "how wide depends on decisions and dimensions", "fixed scales",
        (use("learner.widened_proposals", _fixed_rungs, "1, 1.5, 2, 3; 0.5, 1, 2"),),
        needs=frozenset({CONTINUOUS}),
    ),
    KnockOut(
        "longer pushes", "three longer pushes in more than three dimensions", "none",
        (put("widened_proposals._FEW", _NEVER),), needs=frozenset({CONTINUOUS, MANY}),
    ),
    KnockOut(
        "tilted outcomes", "half of the flattened proposals prefer one end of the outcomes",
        "none does", (use("learner.flattened_proposals", _untilted, "flatter ones only"),),
        needs=frozenset({DISCRETE}),
    ),
    KnockOut(
        "less after failures", "exploration shrinks by 1/(1 + k) after k failures in the pilot",
        "it does not", (use("batch_sizes.exploration_size", _whatever_failed, "as after none"),),
        needs=frozenset({NOT_RARE}),
    ),
    KnockOut(
        "levels", "fits come down to failures by levels of the margin",
        "the margin is not looked at", needs=frozenset({MARGIN}), margin=False,
    ),
    KnockOut(
        "jump over plateaus", "a level that does not fall goes to the next margin below it",
        "it stays", (use("learner.ApeLearner._lower_level", _without_jump, "the quantile alone"),),
        needs=frozenset({MARGIN, PLATEAU}),
    ),
    KnockOut(
        "failures per parameter", "levels go on until there are as many failures as parameters",
        "until 20 came",
        (use("learner.ApeLearner._enough", lambda was: property(lambda self: 20.0), "20"),),
        needs=frozenset({MARGIN, LONG}),
    ),
    KnockOut(
        "level kept", "levels go on until 20 failures came", "until five did",
        (use("learner.ApeLearner._lower_level", _after_five, "dropped after five"),),
        needs=frozenset({MARGIN}),
    ),
    KnockOut(
        "last levels look on", "fits of the last levels go on looking for other modes", "none does",
        (use("learner.ApeLearner._explorers", _widened_alone, "widened ones alone"),),
        needs=frozenset({MARGIN}),
    ),
    KnockOut(
        "fits by kind", "every kind of failure has a fit of its own", "one for all",
        (use("learner.by_kind", _one_group, "one group"),), needs=frozenset({MODES}),
    ),
    KnockOut(
        "search for modes", "modes that learning passed over are looked for", "nobody looks",
        (use("learner.ApeLearner._can_miss_modes", _no_search, "never"),),
        needs=frozenset({CONTINUOUS}),
    ),
    KnockOut(
        "giving up", "half-way without anything learned, long episodes are left to Monte Carlo",
        "learning goes on", (put("learner._PATIENCE", 100.0),), needs=frozenset({LONG}),
    ),
    KnockOut(
        "ten elites", "a level is fitted to ten episodes at least", "to three",
        (put("learner._ELITES", 3), put("episode_memory._ELITES", 3)), needs=frozenset({MARGIN}),
    ),
    KnockOut(
        "tempering", "weights are tempered until 20 episodes count", "never",
        (use("learner.tempered", _untempered, "α = 1"),),
    ),
    KnockOut(
        "weights by all proposals", "past episodes are weighted by the mixture of all proposals",
        "each by the proposal that drew it",
        (use("episode_memory.EpisodeMemory.log_weights", _by_own_batch, "own batch"),),
    ),
    KnockOut(
        "forgetting", "at most 3,000 episodes are remembered", "all are",
        (put("episode_memory._KEPT", _NEVER),), needs=frozenset({LARGE}),
    ),
    KnockOut(
        "clipped states", "scaled states beyond 4 count as 4", "as they are",
        (put("episode_features._FARTHEST", 1e6),), needs=frozenset({SEQUENCE}),
    ),
    KnockOut(
        "start at half size", "batches of half the size where the proposal is a guess", "all alike",
        (use("batch_sizes.batch_size", _full, "never half"),), needs=frozenset({CHANCE}),
    ),
    KnockOut(
        "many fits", "a fit for every 3.3 % of the budget", "for every 10 %",
        (put("batch_sizes._BATCH", 0.1), put("batch_sizes._LARGEST", 10**6)), kind="other value",
    ),
)  # fmt: skip
