"""What an evaluation answers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apeval.estimate.diagnostics import Diagnostics
from apeval.estimate.sample import AUTO
from apeval.estimate.tail import TailPoint
from apeval.run.answers import BelowAnswer, TargetAnswer
from apeval.run.modes import Mode

SCHEMA_VERSION = 2


@dataclass(frozen=True)
class FinalStage:
    """The frozen stage, which the estimate comes from."""

    steps: int
    episodes: int
    failures: int
    failure_rate: float
    ess: float
    given_up: int = 0
    """Episodes that ended early because they could hardly fail any more."""


@dataclass(frozen=True)
class Kind:
    """The part of one kind of failure."""

    probability: float
    interval: tuple[float, float]
    failures: int
    """Of the frozen stage."""


@dataclass(frozen=True)
class Result:
    """The estimate with its interval, and what it rests on."""

    problem: str
    view: str
    method: str
    seed: int
    settings: Mapping[str, Any]
    parameters: Mapping[str, Any]
    budget: Mapping[str, int]
    """What the run was allowed, in steps or in episodes."""
    estimate: float
    value: float | None
    value_function: Mapping[str, Any] | None
    standard_error: float
    interval: tuple[float, float]
    confidence: float
    monte_carlo_episodes: float | None
    target: TargetAnswer | None
    below: BelowAnswer | None
    steps: int
    episodes: int
    failures: int
    failure_rate: float
    final: FinalStage
    kinds: Mapping[str, Kind]
    modes: tuple[Mode, ...]
    tail: tuple[TailPoint, ...]
    unresolved: Mapping[str, float]
    detection_limit: float | None
    diagnostics: Diagnostics
    trusted: bool
    warnings: tuple[str, ...]
    seconds: float
    truth: float | None
    interrupted: bool = False
    """Stopped by somebody before its end."""
    block: int = 0
    """Episodes that were simulated together; 0 in results that do not say."""
    on_fault: str = "stop"
    """What was to happen to episodes that do not come back."""
    checked: bool = True
    """Whether the problem was looked over before the run, and episodes repeated after it."""
    estimator: str = AUTO
    """How the interval was made, by name."""
    curve: tuple[tuple[int, float], ...] = field(default=(), repr=False)
    records: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    def as_json(self) -> dict[str, Any]:
        """Plain data; a non-finite number is null."""
        data = {k: v for k, v in vars(self).items() if k not in ("records", "curve")}
        return {"schema_version": SCHEMA_VERSION, **plain(data)}

    def __str__(self) -> str:
        from apeval.run.view import describe

        return describe(self)


def plain(value: Any) -> Any:
    """A value as JSON has it; a non-finite number is None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(vars(value))
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | int | bool) or value is None:
        return value
    return str(value)
