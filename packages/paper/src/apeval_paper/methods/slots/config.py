"""Settings of the slots, the same for both discretised baselines."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.problem.settings import setting


@dataclass(frozen=True)
class SlotConfig:
    """How s and a_E are cut, and where π_E starts; the paper states none of these values."""

    state_slots: int = setting(
        200,
        "slots per component of s over [−1, 1]; the grid goes on beyond. Whole-number states are "
        "their own slots",
        low=1,
        high=10_000,
    )
    action_slots: int = setting(
        20,
        "slots per component of a_E over its box; outcomes are their own slots",
        low=1,
        high=1000,
    )
    reach: float = setting(
        4.0,
        "where a_E has no box: slots cover ± this many standard deviations, and two more slots "
        "take the tails",
        low=0.5,
        high=30.0,
    )
    warm_scale: float | None = setting(
        None,
        "π_E starts with the nominal's standard deviation times this (None: a pilot finds it, "
        "where warm_shift is 0)",
        low=0.2,
        high=20.0,
    )
    warm_shift: float = setting(
        0.0,
        "π_E starts with the nominal's mean plus this many standard deviations, in every component",
        low=-20.0,
        high=20.0,
    )
    learn_share: float = setting(
        0.5, "share of the budget for learning at the most; the rest estimates", low=0.0, high=0.99
    )
    nominal_share: float = setting(
        0.3, "share of the frozen stage's episodes drawn from π_E,gt", low=0.01, high=1.0
    )

    @staticmethod
    def none_stands_for() -> dict[str, str]:
        """What settings at None mean, for `apeval list`."""
        return {"warm_scale": "by a pilot"}

    @property
    def open_start(self) -> bool:
        """Whether a pilot finds the start."""
        return self.warm_scale is None and self.warm_shift == 0.0

    @property
    def start_scale(self) -> float:
        """`warm_scale`, 1 where it is not given."""
        return 1.0 if self.warm_scale is None else self.warm_scale
