"""How a gate ends: it passes, or one of two errors says why not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SHOWN, REFUTED, UNDECIDED = "shown", "refuted", "undecided"


@dataclass(frozen=True)
class GateRecord:
    """What a gate found, as plain data."""

    verdict: str
    """shown, refuted or undecided; an answer that is not trusted is undecided."""
    problem: str
    """The problem's name."""
    below: float
    """The bound in question."""
    estimate: float
    """The failure probability."""
    interval: tuple[float, float]
    """Its interval."""
    confidence: float
    """Of the interval."""
    bound: float
    """The one-sided bound that the verdict rests on."""
    budget: int | None
    """When undecided: the budget that would decide if the estimate stays where it is; None where
    it lies too near the bound to say, or where the budget is not what is missing."""
    unit: str
    """Of `budget`: steps or episodes."""
    target_error: float | None
    """When undecided although the target error was reached: the smaller one that would decide."""
    trusted: bool
    """Whether the interval is trusted."""
    warnings: tuple[str, ...]
    """The run's warnings."""
    folder: str
    """Where the run is kept."""
    simulated: bool
    """False where a stored run was judged."""

    def as_json(self) -> dict[str, Any]:
        """Plain data, which `GateRecord(**data)` takes back."""
        return {**asdict(self), "interval": list(self.interval), "warnings": list(self.warnings)}

    def __str__(self) -> str:
        low, high = self.interval
        kept = "run kept in" if self.simulated else "judged again from"
        lines = [
            f"{self.verdict}: is the failure probability below {self.below:g}? Estimate "
            f"{self.estimate:.3g}, {100 * self.confidence:g} % interval {low:.3g} … {high:.3g}",
            f"  {kept} {self.folder}",
        ]
        if self.verdict == UNDECIDED:
            lines += [f"  {text}" for text in self._remedies()]
        return "\n".join(lines)

    def _remedies(self) -> list[str]:
        if not self.trusted:
            return [f"not trusted: {text}" for text in self.warnings]
        if self.budget is None:
            return ["the estimate lies too near the bound for a budget to promise a decision"]
        given = [] if self.target_error is None else [f"target_error={self.target_error:.2g}"]
        given.append(f"{'budget' if self.unit == 'steps' else 'episodes'}={self.budget}")
        return [f"{' and '.join(given)} would decide, if the estimate stays where it is"]


class GateError(Exception):
    """A gate that did not pass."""

    def __init__(self, record: GateRecord) -> None:
        self.record = record
        """What it found."""
        super().__init__(str(record))


class GateRefutedError(GateError, AssertionError):
    """The failure probability is shown not to be below the bound."""


class GateUndecidedError(GateError):
    """Nothing is shown yet: the interval holds the bound, or is not trusted."""
