"""Settings of `ape-discrete`."""

from __future__ import annotations

from dataclasses import dataclass

from apeval.learn.ape_tabular.config import TdConfig
from apeval.problem.settings import setting
from apeval_paper.methods.slots.config import SlotConfig


@dataclass(frozen=True)
class ApeDiscreteConfig(SlotConfig, TdConfig):
    """Tabular APE on slots."""

    delta: float = setting(
        0.1,
        "δ of Eq. MDP_p_update times the number of joint slots, applied before normalisation",
        low=1e-12,
        high=1.0,
    )
    policy_update: str = setting(
        "visited",
        "Eq. MDP_p_update for the visited slot alone ('visited', as printed) or for all tried "
        "slots of the visited state with their last successors ('row')",
        choices=("visited", "row"),
    )
