"""Settings of `cem`."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.problem.settings import setting


@dataclass(frozen=True)
class CemConfig:
    """The cross-entropy method on whole episodes, with no state feedback."""

    learn_share: float = setting(
        0.7, "share of the budget for learning at the most; the rest estimates", low=0.0, high=0.99
    )
    updates: int = setting(
        5, "batches that the learning budget is cut into, at the least", low=1, high=10_000
    )
    batch: int = setting(
        1_000,
        "episodes of a batch at the most: larger budgets have more batches",
        low=10,
        high=10**6,
    )
    elite: float = setting(
        0.1, "ρ: share of a batch, by margin, that the next level keeps", low=0.001, high=0.5
    )
    smoothing: float = setting(
        0.7, "α: weight of the new parameters against the old ones", low=0.01, high=1.0
    )
    smallest_std: float = setting(0.5, "floor of σ_t in whitened coordinates", low=1e-3, high=1.0)
    floor: float = setting(0.1, "share of the nominal in each discrete law", low=1e-6, high=1.0)
    nominal_share: float = setting(
        0.2, "share of the frozen stage's episodes drawn from π_E,gt", low=0.01, high=1.0
    )
