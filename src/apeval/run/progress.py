"""What a run shows while it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apeval.simulate.simulation import Simulation


@dataclass(frozen=True)
class Progress:
    """Where a run stands."""

    phase: str
    done: int
    total: int
    episodes: int
    failures: int
    estimate: float | None = None
    interval: tuple[float, float] | None = None


Listener = Callable[[Progress], None]


def tell(
    listener: Listener | None,
    phase: str,
    simulation: Simulation,
    value: float | None,
    interval: tuple[float, float] | None,
) -> None:
    """Tell the listener, if there is one."""
    if listener is None:
        return
    budget = simulation.budget
    done, total = (
        (simulation.steps, budget.steps)
        if budget.steps is not None
        else (simulation.episodes, budget.episodes)
    )
    listener(
        Progress(phase, done, total or 0, simulation.episodes, simulation.failures, value, interval)
    )
