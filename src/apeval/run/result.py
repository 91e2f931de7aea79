"""What an evaluation answers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from apeval.estimate.diagnostics import Diagnostics
from apeval.estimate.sample import AUTO
from apeval.estimate.tail import TailPoint
from apeval.notebook_cards import card_of_text
from apeval.run.failure_modes import Mode
from apeval.run.second_opinion import SecondOpinion
from apeval.run.target_answers import BelowAnswer, TargetAnswer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA_VERSION = 2


@dataclass(frozen=True)
class FinalStage:
    """The frozen stage, which the estimate comes from."""

    steps: int
    """Decisions in the frozen stage."""
    episodes: int
    """Episodes in the frozen stage."""
    failures: int
    """Failing episodes among them."""
    failure_rate: float
    """`failures` / `episodes`, unweighted."""
    ess: float
    """Effective sample size of the failures, (Σw)²/Σw²."""
    ended_by_roulette: int = 0
    """Episodes that ended early because they could hardly fail any more."""


@dataclass(frozen=True)
class Kind:
    """The part of one kind of failure."""

    probability: float
    """Of failing in this way; the kinds add up to the estimate."""
    interval: tuple[float, float]
    """Of `probability`."""
    failures: int
    """Failing episodes of this kind in the frozen stage."""


@dataclass(frozen=True)
class Result:
    """The estimate with its interval, and what it rests on."""

    problem: str
    """The problem's name."""
    view: str
    """What the method saw of the simulator's state."""
    method: str
    """The method's name."""
    seed: int
    """Of all random numbers."""
    settings: Mapping[str, Any]
    """Every setting of the method, defaults included."""
    parameters: Mapping[str, Any]
    """The problem's parameters."""
    budget: Mapping[str, int]
    """What the run was allowed, in steps or in episodes."""
    estimate: float
    """The failure probability: the trajectory-weight estimate of the frozen stage."""
    value: float | None
    """The learned v(s0); None where the method learns none."""
    value_function: Mapping[str, Any] | None
    """log v(s, t) as numbers, where the method learns it; `ape` describes the fields."""
    standard_error: float
    """Of `estimate`."""
    interval: tuple[float, float]
    """The confidence interval of the failure probability, (low, high)."""
    confidence: float
    """Of `interval`, and of every other interval here."""
    monte_carlo_episodes: float | None
    """Episodes after which Monte Carlo would have the same standard error."""
    target: TargetAnswer | None
    """The answer to `target_error`; None where none was asked."""
    below: BelowAnswer | None
    """The answer to `below`; None where none was asked."""
    steps: int
    """Decisions of nature simulated in all."""
    episodes: int
    """Episodes simulated in all."""
    failures: int
    """Failing episodes in all, unweighted."""
    failure_rate: float
    """`failures` / `episodes`: how often failure was made to happen."""
    final: FinalStage
    """The frozen stage, which the estimate comes from."""
    kinds: Mapping[str, Kind]
    """For each kind of failure, its part."""
    modes: tuple[Mode, ...]
    """Ways to fail, the likeliest first."""
    tail: tuple[TailPoint, ...]
    """P(margin ≤ m) on a grid of margins; empty where the problem has no margin."""
    unresolved: Mapping[str, float]
    """`episodes` without a known outcome, and their nominal `probability`."""
    detection_limit: float | None
    """A failure mode that the learned adversary never produces, but more likely than this, would
    have been seen; None where no episode was drawn from the nominal."""
    diagnostics: Diagnostics
    """The numbers behind the warnings."""
    trusted: bool
    """False where a warning says that the interval itself may be wrong."""
    warnings: tuple[str, ...]
    """What a reader must know before believing the number, each with a remedy."""
    seconds: float
    """Wall-clock time."""
    truth: float | None
    """The known probability; None where unknown. No method sees it."""
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
    second_opinion: SecondOpinion | None = None
    """What another method says, and whether the two agree; None where nobody asked."""
    truth_error: float = 0.0
    """The standard error of `truth`, where it was counted and is not exact."""
    policy_memory: bool = False
    """Whether the policy has memory: `view` says what the method saw."""
    curve: tuple[tuple[int, float], ...] = field(default=(), repr=False)
    """(steps, learned v(s0)) along the way."""
    records: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    """Replay records of the first failures of the sample, for `apeval.replay`."""

    def as_json(self) -> dict[str, Any]:
        """The result as plain data, without `records` and `curve`.

        Returns:
            What `result.json` holds; a non-finite number is None.
        """
        data = {k: v for k, v in vars(self).items() if k not in ("records", "curve")}
        return {"schema_version": SCHEMA_VERSION, **plain(data)}

    def plot(self) -> Figure:
        """The estimate and its parts with their intervals; and P(margin ≤ m), where there is a
        margin.

        Returns:
            A Matplotlib figure.

        Raises:
            ApevalError: Matplotlib is not installed.
        """
        from apeval.run.figures import figure_of_result

        return figure_of_result(self)

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return card_of_text(str(self))

    def __str__(self) -> str:
        from apeval.run.result_text import describe

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
