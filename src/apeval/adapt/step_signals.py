"""Signals of a specification, read after every environment step: `from_env(fails=apeval.spec(…))`.

A decision of nature may last for several environment steps, and a specification's bounds count
these. So the steps' signals are kept until the decision ends, and the monitors, whose memory is
part of the state, take them in one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.adapt.disturbed import Disturbed, EpisodePlan
from apeval.adapt.judges import StepJudge, StepRecord, as_judge
from apeval.adapt.user_calls import Answer, told
from apeval.errors import ProblemError
from apeval.problem.gym import Running
from apeval.problem.specification.event import FailureEvent
from apeval.problem.types import BoolArray, FloatArray

SIGNALS = "apeval signals"
"""Where `info` holds the decision's signals, (steps, m)."""
_KNOWN_AT_START = {"obs", "env"}


@dataclass(frozen=True)
class SignalPlan(EpisodePlan):
    """An episode's plan with the signals that are read after every step."""

    signals: tuple[StepJudge, ...] = ()
    names: tuple[str, ...] = ()

    def __call__(self) -> Disturbed:
        return WithSignals(self)

    @property
    def sums_rewards(self) -> bool:
        return any(it.asks("total_reward") for it in self.signals)

    def read(self, step: StepRecord, which: Sequence[bool] | None = None) -> list[float]:
        """Every signal of a step, or those that are wanted; 0 for the others."""
        wanted = which or (True,) * len(self.signals)
        rows = zip(self.names, self.signals, wanted, strict=True)
        return [_number(name, signal, step) if want else 0.0 for name, signal, want in rows]


class WithSignals(Disturbed):
    """An environment under way whose signals are kept."""

    plan: SignalPlan

    def __init__(self, plan: SignalPlan) -> None:
        super().__init__(plan)
        self.rows: list[list[float]] = []

    def open(self, a_E: Any) -> None:
        self.rows = []
        super().open(a_E)

    def judge(self, step: StepRecord) -> None:
        self.rows.append(self.plan.read(step))

    def close_decision(self) -> Answer:
        obs, reward, terminated, truncated, info = super().close_decision()
        signals = np.array(self.rows, np.float64).reshape(len(self.rows), len(self.plan.signals))
        return obs, reward, terminated, truncated, {**info, SIGNALS: signals}


@dataclass(frozen=True)
class FromSteps:
    """Signals that were read in the environments. Before the first step there are those that ask
    for nothing but the observation and the environment."""

    plan: SignalPlan

    @property
    def at_start(self) -> tuple[bool, ...]:
        return tuple({*it.positional, *it.named} <= _KNOWN_AT_START for it in self.plan.signals)

    def first(self, x: Running) -> FloatArray:
        rows = [
            self.plan.read(
                StepRecord(obs, 0.0, 0.0, None, info, False, False, env.moment.env), self.at_start
            )
            for obs, info, env in zip(x.observations, x.infos, x.envs, strict=True)
        ]
        return np.array(rows, np.float64).reshape(len(x), len(self.plan.signals))

    def after(self, x: Running) -> tuple[FloatArray, BoolArray]:
        kept = [info[SIGNALS] for info in x.infos]
        longest = max(len(rows) for rows in kept)
        values = np.zeros((longest, len(kept), len(self.plan.signals)))
        there = np.zeros((longest, len(kept)), bool)
        for i, rows in enumerate(kept):
            values[: len(rows), i], there[: len(rows), i] = rows, True
        return values, there


def as_signals(event: FailureEvent) -> tuple[tuple[str, ...], tuple[StepJudge, ...]]:
    """The event's signals by name, as functions of a step.

    Raises:
        ProblemError: One is neither a function nor a name that `from_env` knows.
    """
    names = tuple(name for name, _ in event.signals)
    return names, tuple(as_judge(f"signal '{name}'", given) for name, given in event.signals)


def _number(name: str, signal: StepJudge, step: StepRecord) -> float:
    said = told(f"signal '{name}'", signal, step)
    try:
        return float(np.reshape(np.asarray(said, np.float64), ()))
    except (TypeError, ValueError):
        raise ProblemError(
            f"signal '{name}' returned a {type(said).__name__}, expected one number for a step"
        ) from None
