"""Settings of `ape`. The defaults are meant for every problem."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.problem.settings import setting


@dataclass(frozen=True)
class ApeConfig:
    """Accelerated policy evaluation that ends in an unbiased estimate."""

    learner: str = setting(
        "auto",
        "what learns: 'feedback' (Gaussians that answer to the state; tilts of outcomes where "
        "nature's choices are discrete), 'experts' (the same, or several that take turns with "
        "waiting), 'spline' (Gaussians bent by a conditional spline flow: slower, for failures on "
        "curves), 'tabular' where the problem has tables, or 'auto'",
        choices=("auto", "feedback", "experts", "spline", "tabular"),
    )
    pilot_share: float = setting(
        0.05, "share of the budget that samples π_E,gt itself, first of all", low=0.01, high=0.5
    )
    explore_share: float = setting(
        0.12, "share of the budget that explores with wider disturbances", low=0.01, high=0.9
    )
    learn_share: float = setting(
        0.8, "pilot, exploration and learning end here at the latest", low=0.05, high=0.95
    )
    defensive_share: float = setting(
        0.05, "share of the learned proposals' episodes that still explore", low=0.01, high=0.5
    )
    target_ess: float = setting(
        20.0, "weights are tempered until so many episodes count in a fit", low=2.0, high=1e4
    )
    average: int = setting(3, "fits that sample together", low=1, high=20)
