"""Settings of `cem-discrete`."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.problem.settings import setting
from apeval_paper.methods.slots.config import SlotConfig


@dataclass(frozen=True)
class CemDiscreteConfig(SlotConfig):
    """The cross-entropy method on slots."""

    episodes_per_update: int = setting(50, "k: episodes before each update", low=1, high=10**6)
    delta: float = setting(
        0.1,
        "δ_CEM times the number of joint slots, applied before normalisation",
        low=1e-12,
        high=1.0,
    )
    time_in_state: bool = setting(False, "learn π_E(· | s, t) instead of π_E(· | s)")
